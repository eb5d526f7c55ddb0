"""Binding a variable to nothing but the best rows of its table, when that is all that a stage asks for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from omnigraph.query import ir
from omnigraph.read.codes.arrays import Codes
from omnigraph.read.matching.scan import parted
from omnigraph.read.plan.top import TopScan, implied_search
from omnigraph.read.search.best_rows import Best, best_by_distance, best_by_text
from omnigraph.read.search.ranking import (
    Scores,
    fused_depth,
    fusion_constant,
    places_of,
    query_vector,
    shares,
)
from omnigraph.read.search.searched import Searched, searched_by
from omnigraph.read.state.frame import Frame
from omnigraph.read.state.run_state import Run, id_property
from omnigraph.read.state.spaces import SMALL_TABLE, identity_of
from omnigraph.read.state.union import UnionSpace
from omnigraph.read.tables.values import conjunction

SHOWN_ROWS = 256
"""The other properties of so few rows are read along with them."""
FEW_ROWS = 4096
"""Up to so many rows are put in order here, by their scores and ids, which are at hand."""


@dataclass(frozen=True, slots=True)
class Ranked:
    """Rows with their scores and how they were found: either the best ones in order, or some that include them."""

    frame: Frame
    way: str
    in_order: bool = False


def ranked_scan(run: Run, top: TopScan, wanted: int) -> Ranked | None:
    """Rows that include the best `wanted`; None: look at all rows instead."""
    filters = [_filter_of(run, top, table_key) for table_key in top.step.tables]
    if any(each is None for each in filters):
        return None
    predicates = [each[0] for each in filters if each is not None]
    if isinstance(top.operator, ir.Fuse):
        return _fused(run, top, top.operator, predicates, wanted)
    if top.settled and len(top.step.tables) == len(run.variables[top.step.var]) == 1:
        return _first(run, top, top.operator, predicates[0], wanted)
    codes, scores, way = _best(run, top, top.operator.ranking, predicates, wanted)
    return Ranked(_scored(top, codes, scores), way)


def _first(run: Run, top: TopScan, operator: ir.Rank, predicate: ir.Expr | None, wanted: int) -> Ranked:
    """The best rows of one table. A few are put in order by what is known of them: that is all the sorting needed."""
    table_key = top.step.tables[0]
    searched = searched_by(run.catalog, operator.ranking, table_key)
    shown = _shown(run, top, table_key) if wanted <= SHOWN_ROWS else ()
    best = _of_table(run, operator.ranking, searched, predicate, wanted, shown)
    space = run.space(table_key)
    if best.rows is not None:
        space.bind(best.rows, shown)
    ids, scores = best.ids, best.scores
    if len(ids) <= FEW_ROWS:
        names, values = ids.to_pylist(), scores.tolist()
        sign = -1 if isinstance(operator.ranking, ir.Bm25) else 1
        there = [place for place, value in enumerate(values) if value == value]
        order = sorted(there, key=lambda place: (sign * values[place], names[place]))[:wanted]
        ids = pa.array([names[place] for place in order], pa.large_string())
        return Ranked(_scored(top, space.encode(ids), scores[order]), best.way, True)
    kept = ~np.isnan(scores)
    return Ranked(_scored(top, space.encode(ids)[kept], scores[kept]), best.way)


def _shown(run: Run, top: TopScan, table_key: str) -> tuple[str, ...]:
    """The properties to read along with the best rows, so that they need not be looked up again by their ids."""
    if table_key in run.in_memory:
        return ()
    key = id_property(run.catalog, table_key)
    return tuple(name for name in run.shown.get(top.step.var, ()) if name != key)


def _scored(top: TopScan, codes: Codes, scores: Scores) -> Frame:
    return Frame(len(codes), {top.step.var: codes}, {top.operator.column: pa.array(scores, pa.float64())})


def _filter_of(run: Run, top: TopScan, table_key: str) -> tuple[ir.Expr | None] | None:
    """The condition that is asked before ranking; None when this table is better looked at row by row."""
    plain, texts = parted(run, table_key, top.step.filters)
    implied = implied_search(top.operator)
    if any(text != implied for text in texts) or any(identity_of(each) is not None for each in plain):
        return None
    predicate = conjunction(plain)
    if predicate is not None and not run.reader.decides(predicate):
        return None
    small = run.reader.row_count(table_key) <= SMALL_TABLE
    if small and not all(_is_indexed(run, ranking, table_key) for ranking in top.rankings):
        return None
    return (predicate,)


def _is_indexed(run: Run, ranking: ir.Nearest | ir.Bm25, table_key: str) -> bool:
    searched = searched_by(run.catalog, ranking, table_key)
    if isinstance(ranking, ir.Bm25):
        return run.reader.text_coverage(table_key, searched.column, searched.settings) is not None
    return run.reader.vector_coverage(table_key, searched.column, searched.metric) is not None


def _best(
    run: Run, top: TopScan, ranking: ir.Nearest | ir.Bm25, predicates: Sequence[ir.Expr | None], wanted: int
) -> tuple[Codes, Scores, str]:
    """The best rows of all tables of the variable."""
    space = run.entities(run.variables[top.step.var])
    found: list[tuple[Codes, Scores]] = []
    ways = []
    for table_key, predicate in zip(top.step.tables, predicates, strict=True):
        best = _of_table(run, ranking, searched_by(run.catalog, ranking, table_key), predicate, wanted)
        codes = run.space(table_key).encode(best.ids)
        codes = space.code(table_key, codes) if isinstance(space, UnionSpace) else codes
        kept = ~np.isnan(best.scores)
        found.append((codes[kept], best.scores[kept]))
        ways.append(best.way)
    return np.concatenate([c for c, _ in found]), np.concatenate([s for _, s in found]), "; ".join(ways)


def _of_table(
    run: Run,
    ranking: ir.Nearest | ir.Bm25,
    searched: Searched,
    predicate: ir.Expr | None,
    wanted: int,
    shown: Sequence[str] = (),
) -> Best:
    if isinstance(ranking, ir.Bm25):
        return best_by_text(run, searched, run.constant(ranking.query) or "", predicate, wanted, shown)
    vector = query_vector(run, ranking, searched)
    if vector is None:
        return Best(pa.array([], pa.large_string()), np.empty(0), "no query")
    return best_by_distance(run, searched, vector, predicate, wanted, ranking.exact, shown)


def _fused(run: Run, top: TopScan, operator: ir.Fuse, predicates: Sequence[ir.Expr | None], wanted: int) -> Ranked:
    depth = fused_depth(wanted)
    assert depth is not None
    k = fusion_constant(run, operator.ranking)
    parts: list[tuple[Codes, Scores]] = []
    ways = []
    for ranking in top.rankings:
        codes, scores, way = _best(run, top, ranking, predicates, depth)
        places = places_of(run, ranking, codes, scores, depth)
        parts.append((codes[places > 0], shares(places[places > 0], k)))
        ways.append(way)
    codes = np.unique(np.concatenate([codes for codes, _ in parts]))
    total = np.zeros(len(codes))
    for own, share in parts:
        total[np.searchsorted(codes, own)] += share
    return Ranked(_scored(top, codes, total), "; ".join(ways))
