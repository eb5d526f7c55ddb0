"""Stages that ask for nothing but the best rows of one scan, so that an index can find those alone."""

from __future__ import annotations

from dataclasses import dataclass

from omnigraph.query import ir
from omnigraph.query.typing import F64
from omnigraph.read.plan.steps import PlannedStage, ScanStep


@dataclass(frozen=True, slots=True)
class TopScan:
    """A scan whose rows are ranked, ordered by that first, best first, and cut."""

    step: ScanStep
    operator: ir.Rank | ir.Fuse

    @property
    def rankings(self) -> tuple[ir.Nearest | ir.Bm25, ...]:
        """The rankings that decide."""
        if isinstance(self.operator, ir.Rank):
            return (self.operator.ranking,)
        return (self.operator.ranking.first, self.operator.ranking.second)


def top_scan(stage: PlannedStage) -> TopScan | None:
    """The scan and the ranking of a stage that is of this kind."""
    block = stage.block
    if block.block.seeded or len(block.steps) != 1 or not isinstance(block.steps[0], ScanStep):
        return None
    upper = stage.upper
    ranks = [operator for operator in upper if isinstance(operator, ir.Rank | ir.Fuse)]
    match upper[len(ranks) :]:
        case (
            ir.Filter(predicate=ir.IsNull(item=ir.ColumnRef(name=kept), negated=True)),
            ir.Sort(keys=keys),
            ir.Limit(),
            *_,
        ):
            decisive = next((operator for operator in ranks if operator.column == kept), None)
        case _:
            return None
    if decisive is None or not _leads(keys, decisive):
        return None
    found = TopScan(block.steps[0], decisive)
    return found if all(ranking.var == found.step.var for ranking in found.rankings) else None


def _leads(keys: tuple[ir.SortKey, ...], operator: ir.Rank | ir.Fuse) -> bool:
    """Whether rows are ordered by this score before anything else, best first."""
    # No score is null above the filter, so a key that puts those last says nothing.
    says = [key for key in keys if key.expr != ir.IsNull(ir.ColumnRef(operator.column, F64, True))]
    best_is_least = isinstance(operator, ir.Rank) and isinstance(operator.ranking, ir.Nearest)
    match says:
        case [ir.SortKey(expr=ir.ColumnRef(name=name), descending=descending), *_]:
            return name == operator.column and descending != best_is_least
        case _:
            return False
