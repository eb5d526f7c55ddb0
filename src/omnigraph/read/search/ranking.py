"""Text and vector search over entities that a query has bound, however it has bound them.

Everything is computed from values, exactly, for the entities that passed the filters: ranks and matches never
depend on an index, on its coverage or on how the variable was reached. BM25 takes its statistics from the whole
column.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.errors import BadRequest
from omnigraph.query import ir
from omnigraph.read.codes.arrays import Codes, Mask, distinct_codes
from omnigraph.read.search.text_index import TextIndex, build_text_index, index_texts
from omnigraph.read.search.tokenizer import phrase_tokens, query_tokens
from omnigraph.read.search.vectors import best_candidates, cosine_distances, lengths, matrix
from omnigraph.read.state.frame import Frame
from omnigraph.read.state.run_state import Run
from omnigraph.read.state.union import UnionSpace
from omnigraph.read.tables.values import true_mask

RRF_K = 60
WHOLE_INDEX_SHARE = 16
"""The index of a whole column is made when one text in so many has to be looked at."""


def table_mask(run: Run, match: ir.TextMatch, table_key: str, codes: Codes) -> Mask:
    """Which of these entities of one table match. A missing text, and a query without tokens, match nothing."""
    found = _looked_up(run, match, table_key, codes)
    return np.zeros(len(codes), dtype=bool) if found is None else found[0]


def table_truth(run: Run, match: ir.TextMatch, table_key: str, codes: Codes) -> pa.Array:
    """Whether entities of one table match, unknown where there is no text (or no query)."""
    found = _looked_up(run, match, table_key, codes)
    if found is None:
        return pa.nulls(len(codes), pa.bool_())
    return pa.array(found[0], mask=~found[1])


def frame_mask(run: Run, match: ir.TextMatch, frame: Frame) -> Mask:
    """Which rows match, by the entities that they bind."""
    return true_mask(run.evaluate(match, frame))


def _looked_up(run: Run, match: ir.TextMatch, table_key: str, codes: Codes) -> tuple[Mask, Mask] | None:
    """Which entities match and which have a text; None when there is no query."""
    query = run.constant(match.query)
    if query is None:
        return None
    edits = None if match.edits is None else run.constant(match.edits)
    if edits is not None and edits < 0:
        raise BadRequest(f"fuzzy() on `{match.property}` takes 0 or more edits and got {edits}")
    if len(codes) == 0:
        return np.empty(0, dtype=bool), np.empty(0, dtype=bool)
    index, places = _index_for(run, match, table_key, codes)
    return matching_texts(index, match.predicate, query, edits)[places], index.present[places]


def _index_for(run: Run, match: ir.TextMatch, table_key: str, codes: Codes) -> tuple[TextIndex, Codes]:
    """An index that has the texts of these entities, and where they are in it."""
    space = run.space(table_key)
    rows = space.rows(codes)
    key = (run.reader.state(table_key), ir.searched_column(match))
    many = len(codes) * WHOLE_INDEX_SHARE >= run.reader.row_count(table_key)
    if rows is not None and (many or run.caches.texts.peek(key) is not None):
        return text_index_of(run, table_key, ir.searched_column(match)), rows
    texts = space.columns(codes, [ir.searched_column(match)])[0]
    return index_texts([texts]), np.arange(len(codes), dtype=np.int64)


def text_index_of(run: Run, table_key: str, name: str) -> TextIndex:
    """The tokens of every value of a text column, kept between queries."""
    key = (run.reader.state(table_key), name)
    found: TextIndex = run.caches.texts.get(key, lambda: build_text_index(run.reader.batches(table_key, [name])))
    return found


def _lengths_of(run: Run, ranking: ir.Nearest) -> npt.NDArray[np.float64]:
    """The length of every vector of a column, kept between queries."""
    table_key, name = ranking.table_key, ir.searched_column(ranking)
    key = (run.reader.state(table_key), name)
    column = run.caches.column(run.reader, table_key, name)
    found: npt.NDArray[np.float64] = run.caches.lengths.get(key, lambda: lengths(column))
    return found


def matching_texts(index: TextIndex, predicate: ir.TextPredicate, query: str, edits: int | None) -> Mask:
    """Which texts of an index match a predicate."""
    if predicate is ir.TextPredicate.SEARCH:
        return index.any_of(query_tokens(query))
    if predicate is ir.TextPredicate.MATCH_ALL:
        return index.all_of(query_tokens(query))
    if predicate is ir.TextPredicate.MATCH_TEXT:
        return index.phrase(phrase_tokens(query))
    return index.near_any_of(query_tokens(query), edits)


def rank(run: Run, frame: Frame, operator: ir.Rank, top: int | None) -> Frame:
    """Adds the score of a ranking. With `top`, rows that cannot be among the best so many may be left out."""
    ranking = operator.ranking
    if top is not None and isinstance(ranking, ir.Nearest):
        frame = _nearest_candidates(run, frame, ranking, top)
    distinct, inverse = distinct_codes(frame.bindings[ranking.var])
    scores = entity_scores(run, ranking, distinct)[inverse]
    return frame.compute(operator.column, pa.array(scores, pa.float64(), mask=np.isnan(scores)))


def entity_scores(run: Run, ranking: ir.Nearest | ir.Bm25, codes: Codes) -> npt.NDArray[np.float64]:
    """The score of each entity, not-a-number for one that has none and for no entity.

    Each table has scores of its own: BM25 takes its statistics from the column of the entity's own table.
    """
    scores = np.full(len(codes), np.nan)
    present = np.flatnonzero(codes >= 0)
    tables = run.variables[ranking.var]
    space = run.entities(tables)
    for table_key in tables:
        at, local = space.part(codes[present], table_key) if isinstance(space, UnionSpace) else (None, codes[present])
        scores[present if at is None else present[at]] = _table_scores(
            run, replace(ranking, table_key=table_key), local
        )
    return scores


def _table_scores(run: Run, ranking: ir.Nearest | ir.Bm25, codes: Codes) -> npt.NDArray[np.float64]:
    if isinstance(ranking, ir.Nearest):
        vector = query_vector(run, ranking)
        if vector is None:
            return np.full(len(codes), np.nan)
        return _distances(run, ranking, codes, vector)
    query = run.constant(ranking.query)
    rows = run.space(ranking.table_key).rows(codes)
    if query is None:
        return np.full(len(codes), np.nan)
    assert rows is not None, "a table that is ranked by its texts is numbered as a whole"
    index = text_index_of(run, ranking.table_key, ir.searched_column(ranking))
    return index.bm25(query_tokens(query))[rows]


def _distances(run: Run, ranking: ir.Nearest, codes: Codes, vector: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]:
    """Exact distances. A column that is too large for memory is read as a stream when most of it is wanted."""
    space = run.space(ranking.table_key)
    rows = space.rows(codes)
    many = len(codes) * WHOLE_INDEX_SHARE >= run.reader.row_count(ranking.table_key)
    if rows is None or not many or run.caches.has_room_for(run.reader, ranking.table_key, ir.searched_column(ranking)):
        column = space.columns(codes, [ir.searched_column(ranking)])[0]
        return cosine_distances(column, vector).astype(np.float64)
    parts = []
    for batch in run.reader.batches(ranking.table_key, [ir.searched_column(ranking)]):
        run.stop.check()
        parts.append(cosine_distances(batch.column(0), vector))
    return np.concatenate(parts).astype(np.float64)[rows]


def _nearest_candidates(run: Run, frame: Frame, ranking: ir.Nearest, top: int) -> Frame:
    """The rows of the entities that can be among the nearest, found at 32-bit width over the column in memory."""
    tables = run.variables[ranking.var]
    if len(tables) > 1 or bool((frame.bindings[ranking.var] < 0).any()):
        return frame
    vector = query_vector(run, ranking)
    space = run.space(ranking.table_key)
    distinct, inverse = distinct_codes(frame.bindings[ranking.var])
    rows = space.rows(distinct)
    cached = run.caches.cached_column(run.reader.state(ranking.table_key), ir.searched_column(ranking))
    if vector is None or rows is None or cached is None or len(distinct) <= 4 * top or top == 0:
        return frame
    sizes = _lengths_of(run, ranking)
    whole = len(rows) == len(cached)
    vectors = matrix(cached)
    near = best_candidates(vectors if whole else vectors[rows], sizes if whole else sizes[rows], vector, top)
    if len(near) < top:
        return frame
    if whole:
        near = np.flatnonzero(np.isin(rows, near))
    kept = np.zeros(len(distinct), dtype=bool)
    kept[near] = True
    return frame.keep(kept[inverse])


def fuse(run: Run, frame: Frame, operator: ir.Fuse) -> Frame:
    """Adds the sum of 1 / (k + rank) over both rankings; null where an entity is in neither."""
    k = RRF_K if operator.ranking.k is None else run.constant(operator.ranking.k)
    if k is None or k < 0:
        raise BadRequest(f"the third argument of rrf() must be 0 or more and is {k}")
    total = np.zeros(frame.length)
    ranked = np.zeros(frame.length, dtype=bool)
    for ranking in (operator.ranking.first, operator.ranking.second):
        distinct, inverse = distinct_codes(frame.bindings[ranking.var])
        places = _places(run, ranking, distinct)[inverse]
        with np.errstate(divide="ignore"):
            total += np.where(places > 0, 1.0 / (k + places), 0.0)
        ranked |= places > 0
    return frame.compute(operator.column, pa.array(total, pa.float64(), mask=~ranked))


def _places(run: Run, ranking: ir.Nearest | ir.Bm25, codes: Codes) -> Codes:
    """The rank of each entity from 1, ties by id; 0 for one without a score."""
    scores = entity_scores(run, ranking, codes)
    if isinstance(ranking, ir.Bm25):
        scores = -scores
    order = np.lexsort((run.order(run.variables[ranking.var], codes), scores))
    places = np.empty(len(codes), dtype=np.int64)
    places[order] = np.arange(1, len(codes) + 1)
    places[np.isnan(scores)] = 0
    return places


def query_vector(run: Run, ranking: ir.Nearest) -> npt.NDArray[np.float32] | None:
    """The vector to compare with: given, or made from text by the graph's provider."""
    value: Any = run.constant(ranking.query)
    if value is None:
        return None
    if isinstance(value, str):
        value = _embedded(run, value, ranking)
    return checked_vector(ranking, value)


def checked_vector(ranking: ir.Nearest, value: Any) -> npt.NDArray[np.float32]:
    """A query vector that has the right size and a direction."""
    vector = np.asarray(value, dtype=np.float32)
    if vector.shape != (ranking.dim,):
        raise BadRequest(
            f"nearest() on `{ranking.property}` needs a vector of {ranking.dim} numbers and got {vector.size}"
        )
    if not vector.any():
        raise BadRequest(
            f"nearest() on `{ranking.property}` got a vector of zeros, which points nowhere, so nothing is near it; "
            "pass a vector with a number other than 0"
        )
    return vector


def _embedded(run: Run, text: str, ranking: ir.Nearest) -> Sequence[float]:
    if run.provider is None:
        raise BadRequest(
            f"nearest() on `{ranking.property}` got a text, and the graph has no embedding provider; "
            "configure one, or pass a vector"
        )
    graph_type = run.catalog.table(ranking.table_key)
    known = graph_type.by_name.get(ranking.property) if graph_type is not None else None
    model = known.embed.model if known is not None and known.embed is not None else None
    key = (text, ranking.dim, model)
    if key not in run.embedded:
        run.embedded[key] = run.provider.embed([text], dim=ranking.dim, model=model)[0]
    return run.embedded[key]
