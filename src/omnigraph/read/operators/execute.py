"""Running a plan: stage by stage the steps of the block, then the operators above it."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from omnigraph.errors import BadRequest, InternalError
from omnigraph.query import ir
from omnigraph.read.matching import expand, inner, join, ranked_scan, scan
from omnigraph.read.matching.paths import PATH
from omnigraph.read.operators import group, sort
from omnigraph.read.operators.product import first_rows, product_of
from omnigraph.read.plan.steps import (
    CheckStep,
    CombineStep,
    EitherStep,
    ExistsStep,
    ExpandStep,
    FilterStep,
    InnerStep,
    OptionalStep,
    Plan,
    PlannedStage,
    ScanStep,
    Step,
)
from omnigraph.read.plan.top import top_scan
from omnigraph.read.search import ranking
from omnigraph.read.state.frame import UNIT, ComputedColumn, EntityCodes, Frame
from omnigraph.read.state.run_state import Run
from omnigraph.schema.types import EntityType


@dataclass(frozen=True, slots=True)
class Window:
    """Which rows of a stage are wanted: `count` (None: all) behind the first `offset`."""

    count: int | None = None
    offset: int = 0

    @property
    def end(self) -> int | None:
        """How many rows from the first on are enough."""
        return None if self.count is None else self.count + self.offset


def execute(run: Run, plan: Plan) -> Frame:
    """The rows of a plan in their order, ready to be projected."""
    started = time.perf_counter()
    frame = UNIT
    for stage in plan.stages:
        frame = _run_stage(run, stage, frame)
    run.profile.total_seconds = time.perf_counter() - started
    run.profile.result_rows = frame.length
    run.profile.peak_bytes = run.memory.peak
    return frame


def _run_stage(run: Run, stage: PlannedStage, frame: Frame) -> Frame:
    window = _window(run, stage)
    best = _best(run, stage, window)
    done = 0
    if best is not None:
        frame, done = best
    elif window.count == 0 and not stage.block.block.seeded:
        frame = _nothing(run, stage)
    else:
        frame = _block(run, stage, frame, window)
    for place, operator in enumerate(stage.upper):
        with run.profile.step(operator) as record:
            if place >= done:
                frame = run.hold(_upper(run, frame, operator, window))
            record.rows += frame.length
    return frame


def _best(run: Run, stage: PlannedStage, window: Window) -> tuple[Frame, int] | None:
    """The best rows of a scan with their scores, where a stage asks for no others and they can be found alone.

    With them, how many operators above have nothing left to do.
    """
    top = top_scan(stage)
    if top is None or not window.count or window.end is None:
        return None
    with run.profile.step(top.step) as record:
        found = ranked_scan.ranked_scan(run, top, window.end)
        if found is None:
            return None
        record.note = found.way
        record.rows += found.frame.length
    return run.hold(found.frame), top.settled if found.in_order else 0


def _block(run: Run, stage: PlannedStage, frame: Frame, window: Window) -> Frame:
    """The rows of the block; those of a product with a limit as far as they are wanted."""
    product = None if stage.block.block.seeded else product_of(stage.block.steps)
    match stage.upper:
        case (ir.Sort(keys=keys, tie_break=tie_break), ir.Limit(), *_) if product and window.end is not None:
            pass
        case _:
            return _run_steps(run, stage.block.steps, frame)
    every_key = [*keys, *(ir.SortKey(ir.Entity(var, EntityType(run.variables[var][0]))) for var in tie_break)]
    parts = [_run_steps(run, product.first, frame)]
    parts += [_run_steps(run, step.steps, UNIT) for step in product.others]
    with run.profile.step(product.others[-1]) as record:

        def kept(rows: Frame) -> Frame:
            record.rows += rows.length
            return _run_steps(run, product.conditions, rows)

        return first_rows(run, parts, every_key, window.end, kept)


def _run_steps(run: Run, steps: tuple[Step, ...], frame: Frame) -> Frame:
    for step in steps:
        if isinstance(step, OptionalStep):
            frame = _run_steps(run, step.below.steps, frame)
        with run.profile.step(step) as record:
            frame = run.hold(_step(run, step, frame))
            record.rows += frame.length
    return frame


def _step(run: Run, step: Step, frame: Frame) -> Frame:
    def run_steps(steps: tuple[Step, ...], seed: Frame) -> Frame:
        return _run_steps(run, steps, seed)

    match step:
        case ScanStep():
            return scan.scan(run, step)
        case ExpandStep():
            return expand.expand(run, frame, step)
        case CheckStep():
            return expand.check(run, frame, step)
        case ExistsStep():
            return expand.exists(run, frame, step)
        case FilterStep(predicate=predicate):
            return frame.keep(run.mask(predicate, frame))
        case InnerStep():
            return inner.inner(run, frame, step, run_steps)
        case EitherStep():
            return inner.either(run, frame, step, run_steps)
        case OptionalStep():
            return inner.optional(run, frame, step, run_steps)
        case CombineStep(steps=steps, on=on):
            return join.combine(run, frame, _run_steps(run, steps, UNIT), on)


def _upper(run: Run, frame: Frame, operator: ir.Operator, window: Window) -> Frame:
    match operator:
        case ir.Rank(column=column) | ir.Fuse(column=column) if column in frame.columns:
            return frame
        case ir.Rank():
            return ranking.rank(run, frame, operator)
        case ir.Fuse():
            return ranking.fuse(run, frame, operator, window.end)
        case ir.GroupBy():
            return group.group(run, frame, operator)
        case ir.Filter(predicate=predicate):
            return frame.keep(run.mask(predicate, frame))
        case ir.Sort():
            return sort.sort(run, frame, operator, window.end)
        case ir.Limit():
            start = min(window.offset, frame.length)
            stop = frame.length if window.end is None else min(window.end, frame.length)
            return frame if start == 0 and stop == frame.length else frame.slice(start, max(start, stop))
        case ir.Stage():
            return _staged(run, frame, operator)
        case ir.Project():
            return frame
        case _:
            raise InternalError(f"{type(operator).__name__} cannot stand above a block")


def _staged(run: Run, frame: Frame, stage: ir.Stage) -> Frame:
    """Just the variables and columns that the next stage starts from."""
    columns: dict[str, ComputedColumn] = {}
    for column in stage.columns:
        match column.expr:
            case ir.Entity(var=var) if isinstance(column.type, EntityType):
                columns[column.name] = EntityCodes(run.variables[var], frame.bindings[var])
            case ir.ColumnRef(name=name):
                columns[column.name] = frame.columns[name]
            case _:
                columns[column.name] = run.evaluate(column.expr, frame)
    kept = frame.only(stage.variables)
    return Frame(frame.length, kept.bindings, {**kept.columns, **columns})


def _window(run: Run, stage: PlannedStage) -> Window:
    for operator in stage.upper:
        if isinstance(operator, ir.Limit):
            count = None if operator.count is None else _row_count(run, operator.count, "limit")
            offset = 0 if operator.offset is None else _row_count(run, operator.offset, "offset")
            return Window(count, offset)
    return Window()


def _row_count(run: Run, expr: ir.Expr, what: str) -> int:
    count = run.constant(expr)
    if not isinstance(count, int) or isinstance(count, bool) or count < 0:
        raise BadRequest(f"{what} must be a non-negative whole number and is {count!r}")
    return count


def _nothing(run: Run, stage: PlannedStage) -> Frame:
    """No rows with all variables bound: what `limit 0` needs."""
    names = stage.block.block.bound
    bindings = {name: np.empty(0, dtype=np.int64) for name in names if name in run.variables}
    return Frame(0, bindings, {name: pa.array([], PATH) for name in names if name not in run.variables})
