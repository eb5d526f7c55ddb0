"""Running a plan: the steps of the block one after the other, then the operators above it."""

from __future__ import annotations

import time

from omnigraph.errors import BadRequest
from omnigraph.query import ir
from omnigraph.read.matching import expand, join, scan
from omnigraph.read.operators import group, sort
from omnigraph.read.operators.product import first_rows, product_of
from omnigraph.read.plan.steps import (
    AntiStep,
    CheckStep,
    CombineStep,
    ExistsStep,
    ExpandStep,
    FilterStep,
    Plan,
    ScanStep,
    Step,
)
from omnigraph.read.search import ranking
from omnigraph.read.state.frame import UNIT, Frame
from omnigraph.read.state.run_state import Run
from omnigraph.schema.types import EntityType


def execute(run: Run, plan: Plan) -> Frame:
    """The rows of a plan in their order, ready to be projected."""
    started = time.perf_counter()
    limit = _limit(run, plan)
    frame = _empty(plan) if limit == 0 else _block(run, plan, limit)
    top = _top(plan, limit)
    for operator in plan.upper:
        with run.profile.step(operator) as record:
            frame = run.hold(_upper(run, frame, operator, limit, top))
            record.rows += frame.length
    run.profile.total_seconds = time.perf_counter() - started
    run.profile.result_rows = frame.length
    run.profile.peak_bytes = run.memory.peak
    return frame


def _block(run: Run, plan: Plan, limit: int | None) -> Frame:
    """The rows of the block; those of a product with a limit as far as they are wanted."""
    product = product_of(plan.steps)
    match plan.upper:
        case (ir.Sort(keys=keys, tie_break=tie_break), ir.Limit(), *_) if product is not None and limit is not None:
            pass
        case _:
            return _run_steps(run, plan.steps, UNIT)
    every_key = [*keys, *(ir.SortKey(ir.Entity(var, EntityType(plan.tables[var]))) for var in tie_break)]
    parts = [_run_steps(run, product.first, UNIT)]
    parts += [_run_steps(run, step.steps, UNIT) for step in product.others]
    with run.profile.step(product.others[-1]) as record:
        made = 0

        def kept(frame: Frame) -> Frame:
            nonlocal made
            made += frame.length
            return _run_steps(run, product.conditions, frame)

        frame = first_rows(run, parts, every_key, limit, kept)
        record.rows += made
    return frame


def _run_steps(run: Run, steps: tuple[Step, ...], frame: Frame) -> Frame:
    for step in steps:
        with run.profile.step(step) as record:
            frame = run.hold(_step(run, step, frame))
            record.rows += frame.length
    return frame


def _step(run: Run, step: Step, frame: Frame) -> Frame:
    match step:
        case ScanStep():
            return scan.scan(run, step)
        case ExpandStep():
            return expand.expand(run, frame, step)
        case CheckStep():
            return expand.check(run, frame, step)
        case ExistsStep():
            return expand.exists(run, frame, step)
        case FilterStep(predicate=ir.TextMatch() as match):
            return frame.keep(ranking.text_mask(run, match, frame.bindings[match.var]))
        case FilterStep(predicate=predicate):
            return frame.keep(run.mask(predicate, frame))
        case AntiStep():
            return join.anti_join(run, frame, step, lambda steps, seed: _run_steps(run, steps, seed))
        case CombineStep(steps=steps, on=on):
            return join.combine(run, frame, _run_steps(run, steps, UNIT), on)


def _upper(run: Run, frame: Frame, operator: ir.Operator, limit: int | None, top: int | None) -> Frame:
    match operator:
        case ir.Rank():
            return ranking.rank(run, frame, operator, top)
        case ir.Fuse():
            return ranking.fuse(run, frame, operator)
        case ir.GroupBy():
            return group.group(run, frame, operator)
        case ir.Filter(predicate=predicate):
            return frame.keep(run.mask(predicate, frame))
        case ir.Sort():
            return sort.sort(run, frame, operator, limit)
        case ir.Limit():
            return frame if limit is None or limit >= frame.length else frame.slice(0, limit)
        case ir.Project():
            return frame
        case _:
            raise TypeError(f"{type(operator).__name__} cannot stand above a block")


def _limit(run: Run, plan: Plan) -> int | None:
    for operator in plan.upper:
        if isinstance(operator, ir.Limit):
            count = run.constant(operator.count)
            if not isinstance(count, int) or isinstance(count, bool) or count < 0:
                raise BadRequest(f"limit must be a non-negative whole number and is {count!r}")
            return count
    return None


def _top(plan: Plan, limit: int | None) -> int | None:
    """How many of the nearest rows are wanted, when a query asks for nothing but the nearest rows."""
    match plan.upper:
        case (
            ir.Rank(column=name),
            ir.Filter(predicate=ir.IsNull(item=ir.ColumnRef(name=kept), negated=True)),
            ir.Sort(keys=(ir.SortKey(expr=ir.ColumnRef(name=first), descending=False), *_)),
            *_,
        ) if name == kept == first:
            return limit
        case _:
            return None


def _empty(plan: Plan) -> Frame:
    """No rows with all variables bound: what `limit 0` needs."""
    import numpy as np

    return Frame(0, {variable.name: np.empty(0, dtype=np.int64) for variable in plan.query.variables})
