"""Scores of entities that a query has bound, however it has bound them: text scores, distances, fused ranks.

A score is a property of its row and of the statistics of the row's own table, so it is the same whichever way the row
was found. The best rows of a whole table are looked for by `top`, which does not bind the others.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.errors import BadRequest
from omnigraph.query import ir
from omnigraph.read.codes.arrays import Codes, combined, distinct_codes
from omnigraph.read.search.analyzer import analyzer
from omnigraph.read.search.corpora import corpus_of, whole_corpus
from omnigraph.read.search.query_texts import text_vector
from omnigraph.read.search.row_sets import FEW_TEXTS, values_of
from omnigraph.read.search.searched import Searched, searched_by
from omnigraph.read.search.texts import Corpus, bm25, counted
from omnigraph.read.search.vectors import distances
from omnigraph.read.state.frame import Frame
from omnigraph.read.state.run_state import Run
from omnigraph.read.state.union import UnionSpace
from omnigraph.schema.search_settings import Metric
from omnigraph.storage.index_search import TextKind, TextQuestion

RRF_K = 60
RRF_DEPTH = 1000
"""A fused ranking takes so many places of each of its rankings, …"""
RRF_SHARE = 10
"""… or so many for each row that is wanted, if that is more."""

Scores = npt.NDArray[np.float64]


def fused_depth(wanted: int | None) -> int | None:
    """How many places of each ranking count; None: all."""
    return None if wanted is None else max(RRF_DEPTH, RRF_SHARE * wanted)


def rank(run: Run, frame: Frame, operator: ir.Rank) -> Frame:
    """Adds the score of a ranking."""
    distinct, inverse = distinct_codes(frame.bindings[operator.ranking.var])
    scores = entity_scores(run, operator.ranking, distinct)[inverse]
    return frame.compute(operator.column, pa.array(scores, pa.float64(), mask=np.isnan(scores)))


def entity_scores(run: Run, ranking: ir.Nearest | ir.Bm25, codes: Codes) -> Scores:
    """The score of each entity, not-a-number for one that has none and for no entity."""
    scores = np.full(len(codes), np.nan)
    present = np.flatnonzero(codes >= 0)
    tables = run.variables[ranking.var]
    space = run.entities(tables)
    for table_key in tables:
        at, local = space.part(codes[present], table_key) if isinstance(space, UnionSpace) else (None, codes[present])
        searched = searched_by(run.catalog, ranking, table_key)
        scores[present if at is None else present[at]] = _table_scores(run, ranking, searched, local)
    return scores


def _table_scores(run: Run, ranking: ir.Nearest | ir.Bm25, searched: Searched, codes: Codes) -> Scores:
    scores = np.full(len(codes), np.nan)
    if isinstance(ranking, ir.Nearest):
        vector = query_vector(run, ranking, searched)
        if vector is not None:
            for places, vectors in values_of(run, searched.table_key, searched.column, codes):
                scores[places] = distances(vectors, vector, searched.metric)
        return scores
    query = run.constant(ranking.query)
    tokens = [] if query is None else analyzer(searched.settings).tokens(query)
    if not tokens or len(codes) == 0:
        return scores
    wanted, corpus = _scored_texts(run, searched, query, tokens, codes)
    for places, texts in values_of(run, searched.table_key, searched.column, codes[wanted]):
        scores[wanted[places]] = bm25(counted(texts, tokens, searched.settings), corpus)
    return scores


def _scored_texts(run: Run, searched: Searched, query: str, tokens: list[str], codes: Codes) -> tuple[Codes, Corpus]:
    """Which of many entities can have a score at all, as the index knows, and the statistics to score them by."""
    every = np.arange(len(codes), dtype=np.int64)
    coverage = run.reader.text_coverage(searched.table_key, searched.column, searched.settings)
    corpus = None if coverage is None else corpus_of(run.reader, run.caches, searched, coverage, query, tokens)
    if coverage is None or corpus is None:
        return every, whole_corpus(run, searched, tokens)
    if len(codes) <= FEW_TEXTS:
        return every, corpus
    space = run.space(searched.table_key)
    question = TextQuestion(searched.column, TextKind.ANY, query)
    parts = [space.encode(combined(run.reader.ask_text(searched.table_key, question, ["id"]).column("id")))]
    if coverage.uncovered:
        uncovered = run.reader.batches(searched.table_key, ["id"], None, coverage.uncovered)
        parts += [space.encode(combined(batch.column(0))) for batch in uncovered]
    return np.flatnonzero(np.isin(codes, np.concatenate(parts))).astype(np.int64), corpus


def fuse(run: Run, frame: Frame, operator: ir.Fuse, wanted: int | None) -> Frame:
    """Adds the sum of 1 / (k + rank) over both rankings; null where an entity is in neither."""
    total = np.zeros(frame.length)
    ranked = np.zeros(frame.length, dtype=bool)
    for ranking in (operator.ranking.first, operator.ranking.second):
        distinct, inverse = distinct_codes(frame.bindings[ranking.var])
        scores = entity_scores(run, ranking, distinct)
        places = places_of(run, ranking, distinct, scores, fused_depth(wanted))[inverse]
        share = shares(places, fusion_constant(run, operator.ranking))
        total, ranked = total + share, ranked | (places > 0)
    return frame.compute(operator.column, pa.array(total, pa.float64(), mask=~ranked))


def fusion_constant(run: Run, ranking: ir.Rrf) -> int:
    """The k of a fusion."""
    k = RRF_K if ranking.k is None else run.constant(ranking.k)
    if k is None or k < 0:
        raise BadRequest(f"the third argument of rrf() must be 0 or more and is {k}")
    return int(k)


def shares(places: Codes, k: int) -> Scores:
    """What the places of a ranking add to a fused score; place 0 adds nothing."""
    with np.errstate(divide="ignore"):
        return np.where(places > 0, 1.0 / (k + places), 0.0)


def places_of(run: Run, ranking: ir.Nearest | ir.Bm25, codes: Codes, scores: Scores, depth: int | None) -> Codes:
    """The rank of each entity from 1, ties by id; 0 for one without a score, or behind the depth."""
    signed = -scores if isinstance(ranking, ir.Bm25) else scores
    order = np.lexsort((run.order(run.variables[ranking.var], codes), signed))
    places = np.empty(len(codes), dtype=np.int64)
    places[order] = np.arange(1, len(codes) + 1)
    places[np.isnan(scores)] = 0
    if depth is not None:
        places[places > depth] = 0
    return places


def query_vector(run: Run, ranking: ir.Nearest, searched: Searched) -> npt.NDArray[np.float32] | None:
    """The vector to compare with: given, or made from text by the graph's provider."""
    value: Any = run.constant(ranking.query)
    if value is None:
        return None
    if isinstance(value, str):
        value = text_vector(value, ranking, searched.table_key, run.catalog, run.provider, run.reader, run.embedded)
    return checked_vector(ranking, value, searched.metric)


def checked_vector(ranking: ir.Nearest, value: Any, metric: Metric = Metric.COSINE) -> npt.NDArray[np.float32]:
    """A query vector that has the right size and, by cosine, a direction."""
    vector = np.asarray(value, dtype=np.float32)
    if vector.shape != (ranking.dim,):
        raise BadRequest(
            f"nearest() on `{ranking.property}` needs a vector of {ranking.dim} numbers and got {vector.size}"
        )
    if metric is Metric.COSINE and not vector.any():
        raise BadRequest(
            f"nearest() on `{ranking.property}` got a vector of zeros, which points nowhere, so nothing is near it; "
            "pass a vector with a number other than 0"
        )
    return vector
