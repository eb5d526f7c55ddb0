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
    settled: int
    """So many operators of the stage have nothing left to do on the best rows in order of score and id; 0 when other
    keys have a say in the order."""

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
    step, upper = block.steps[0], stage.upper
    ranks = [operator for operator in upper if isinstance(operator, ir.Rank | ir.Fuse)]
    match upper[len(ranks) :]:
        case (
            ir.Filter(predicate=ir.IsNull(item=ir.ColumnRef(name=kept), negated=True)),
            ir.Sort(keys=keys, tie_break=tie_break),
            ir.Limit(),
            *_,
        ):
            decisive = next((operator for operator in ranks if operator.column == kept), None)
            filters = 1
        case (ir.Sort(keys=keys, tie_break=tie_break), ir.Limit(), *_):
            # The rows that a search keeps have a score by the same words: there is nothing to filter.
            decisive = next((operator for operator in ranks if implied_search(operator) in step.filters), None)
            filters = 0
        case _:
            return None
    if decisive is None:
        return None
    # No score is null above the filter, so a key that puts those last says nothing.
    says = [key for key in keys if key.expr != ir.IsNull(ir.ColumnRef(decisive.column, F64, True))]
    if not _leads(says, decisive):
        return None
    alone = len(says) == len(ranks) == 1 and tie_break == (step.var,)
    found = TopScan(step, decisive, len(ranks) + filters + 1 if alone else 0)
    return found if all(ranking.var == found.step.var for ranking in found.rankings) else None


def implied_search(operator: ir.Rank | ir.Fuse) -> ir.Expr | None:
    """The predicate that every row with a text score fulfils, and no other row."""
    if not isinstance(operator, ir.Rank) or not isinstance(operator.ranking, ir.Bm25):
        return None
    ranking = operator.ranking
    return ir.TextMatch(ir.TextPredicate.SEARCH, ranking.var, ranking.table_key, ranking.property, ranking.query)


def _leads(keys: list[ir.SortKey], operator: ir.Rank | ir.Fuse) -> bool:
    """Whether rows are ordered by this score before anything else, best first."""
    best_is_least = isinstance(operator, ir.Rank) and isinstance(operator.ranking, ir.Nearest)
    match keys:
        case [ir.SortKey(expr=ir.ColumnRef(name=name), descending=descending), *_]:
            return name == operator.column and descending != best_is_least
        case _:
            return False
