"""Running a plan: the steps of the block one after the other, then the operators above it."""

from __future__ import annotations

import time

from omnigraph.errors import BadRequest
from omnigraph.query import ir
from omnigraph.query.predicates import leaves
from omnigraph.read.matching import expand, join, scan
from omnigraph.read.operators import group, sort
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


def execute(run: Run, plan: Plan) -> Frame:
    """The rows of a plan in their order, ready to be projected."""
    started = time.perf_counter()
    limit = _limit(run, plan)
    frame = Frame(0) if limit == 0 else _run_steps(run, plan.steps, UNIT)
    if limit == 0:
        frame = _empty(plan)
    top = _top(plan, limit)
    for operator in plan.upper:
        with run.profile.step(operator) as record:
            frame = run.hold(_upper(run, frame, operator, limit, top))
            record.rows += frame.length
    run.profile.total_seconds = time.perf_counter() - started
    run.profile.result_rows = frame.length
    run.profile.peak_bytes = run.memory.peak
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
    ranks = [operator for operator in plan.upper if isinstance(operator, ir.Rank | ir.Fuse)]
    sorts = [operator for operator in plan.upper if isinstance(operator, ir.Sort)]
    grouped = any(isinstance(operator, ir.GroupBy | ir.Filter) for operator in plan.upper)
    if limit is None or grouped or len(ranks) != 1 or len(sorts) != 1 or not isinstance(ranks[0], ir.Rank):
        return None
    keys = sorts[0].keys
    column = ranks[0].column
    wanted = (ir.IsNull, ir.ColumnRef)
    if len(keys) < 2 or any(key.descending for key in keys[:2]) or not isinstance(keys[1].expr, ir.ColumnRef):
        return None
    if not isinstance(keys[0].expr, wanted) or any(leaf != keys[1].expr for leaf in leaves(keys[0].expr)):
        return None
    return limit if keys[1].expr.name == column else None


def _empty(plan: Plan) -> Frame:
    """No rows with all variables bound: what `limit 0` needs."""
    import numpy as np

    return Frame(0, {variable.name: np.empty(0, dtype=np.int64) for variable in plan.query.variables})
