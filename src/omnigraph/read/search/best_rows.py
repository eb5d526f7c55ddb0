"""The best rows of a table by a text score or a distance, without looking at all of them.

Covered fragments are asked of the index, with the filter before the ranking; the others are read as a stream and
scored here. What the index gives are candidates: each is scored again by the functions that score every other row, so
the score of a row never depends on how it was found, and ties at the edge are all fetched, so ids decide them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.query import ir
from omnigraph.read.codes.arrays import combined, gathered
from omnigraph.read.search.analyzer import analyzer
from omnigraph.read.search.corpora import corpus_of
from omnigraph.read.search.kept_rows import kept_rows
from omnigraph.read.search.probing import ladder, lies_early
from omnigraph.read.search.searched import Searched
from omnigraph.read.search.texts import Corpus, Counted, bm25, counted, may_have, rarity, scored
from omnigraph.read.search.vectors import distances, matrix, may_be_near
from omnigraph.read.state.run_state import Run
from omnigraph.schema.search_settings import Metric
from omnigraph.storage.index_search import Coverage, TextKind, TextQuestion, VectorQuestion

SPARE = 8
"""Candidates beyond what is wanted, so that the first answer of an index nearly always settles ties at the edge."""
FEW_CANDIDATES = 4096
"""When a filter leaves no more rows than this, their vectors are read and measured: quicker, and exact."""
MUCH_SHARE = 8
"""Every vector is measured when one row in so many is wanted."""
TIE = 1e-5
"""Scores of an index that differ by less than this part may be equal."""


@dataclass(frozen=True, slots=True)
class Best:
    """Rows that are sure to include the best ones (as sure as the index is), by id, and how they were found."""

    ids: pa.Array
    scores: npt.NDArray[np.float64]
    way: str
    rows: pa.Table | None = None
    """What was read of rows along with their ids, each once; others may be among the best too."""


def best_by_text(
    run: Run, searched: Searched, query: str, predicate: ir.Expr | None, count: int, shown: Sequence[str] = ()
) -> Best:
    """The rows with the highest BM25 scores among those that pass the predicate, read along with what is shown."""
    tokens = analyzer(searched.settings).tokens(query)
    if not tokens:
        return Best(pa.array([], pa.large_string()), np.empty(0), "no tokens")
    coverage = run.reader.text_coverage(searched.table_key, searched.column, searched.settings)
    corpus = None if coverage is None else corpus_of(run.reader, run.caches, searched, coverage, query, tokens)
    if coverage is None or corpus is None:
        ids, found, exact = _read_texts(run, searched, tokens, predicate, None)
        return Best(ids, bm25(found, exact), "read the column: no index")
    ids, scores, rows = _asked_texts(run, searched, query, tokens, corpus, predicate, count, shown)
    asked = len(ids)
    way = f"text index, {asked} candidates"
    if coverage.uncovered:
        more, found, _ = _read_texts(run, searched, tokens, predicate, coverage.uncovered)
        ids, scores = pa.concat_arrays([combined(ids), more]), np.concatenate([scores, bm25(found, corpus)])
        way += f", {len(coverage.uncovered)} uncovered fragments read"
    return Best(ids, scores, way, rows if shown and rows.num_rows == asked else None)


def _asked_texts(
    run: Run,
    searched: Searched,
    query: str,
    tokens: list[str],
    corpus: Corpus,
    predicate: ir.Expr | None,
    count: int,
    shown: Sequence[str],
) -> tuple[pa.Array, npt.NDArray[np.float64], pa.Table]:
    columns = list(dict.fromkeys(["id", searched.column, *shown]))
    question = TextQuestion(searched.column, TextKind.ANY, query)
    limit = count + max(SPARE, count // 8)
    while True:
        run.stop.check()
        rows = run.reader.ask_text(searched.table_key, question, columns, predicate, limit)
        scores = scored(gathered(rows.column(searched.column)), tokens, searched.settings, corpus)
        ids, own = _once(gathered(rows.column("id")), scores)
        if rows.num_rows < limit or _settled(rows.column("_score"), own, count):
            return ids, own, rows
        limit *= 4


def _settled(asked: pa.ChunkedArray, scores: npt.NDArray[np.float64], count: int) -> bool:
    """Whether a row that the index did not give can be none of the best: the last that it gave is clearly behind."""
    return len(scores) >= count and min(asked.to_pylist()) < sorted(scores.tolist())[-count] * (1 - TIE)


def _once(ids: pa.Array, scores: npt.NDArray[np.float64]) -> tuple[pa.Array, npt.NDArray[np.float64]]:
    """The rows that have a score, each once: an index of several segments may tell of one that changed in each."""
    names = ids.to_pylist()
    if len(set(names)) == len(names) and not np.isnan(scores).any():
        return ids, scores
    first = {name: place for place, name in reversed(list(enumerate(names))) if not np.isnan(scores[place])}
    kept = np.sort(np.fromiter(first.values(), np.int64, len(first)))
    return ids.take(pa.array(kept)), scores[kept]


def _read_texts(
    run: Run, searched: Searched, tokens: list[str], predicate: ir.Expr | None, fragments: Sequence[int] | None
) -> tuple[pa.Array, Counted, Corpus]:
    """Texts that have a token and pass the predicate, and of a whole column the statistics of all its texts."""
    ids: list[pa.Array] = [pa.array([], pa.large_string())]
    parts: list[Counted] = []
    texts = total = 0
    having = np.zeros(len(tokens), dtype=np.int64)
    for batch, passing in run.reader.judged(searched.table_key, ["id", searched.column], predicate, fragments):
        run.stop.check()
        column = batch.column(searched.column)
        if fragments is not None:
            # Statistics come from the index: only texts that can match are taken apart.
            can = np.flatnonzero(passing & may_have(column, tokens, searched.settings))
            batch, passing = batch.take(pa.array(can)), passing[can]
            column = batch.column(searched.column)
        found = counted(column, tokens, searched.settings)
        texts += int((found.sizes > 0).sum())
        total += int(found.sizes.sum())
        having += (found.counts > 0).sum(axis=1)
        at = np.flatnonzero(found.matched & passing)
        ids.append(combined(batch.column("id").take(pa.array(at))))
        parts.append(Counted(found.sizes[at], found.counts[:, at]))
    sizes = np.concatenate([part.sizes for part in parts]) if parts else np.empty(0, dtype=np.int64)
    counts = np.concatenate([part.counts for part in parts], axis=1) if parts else np.empty((len(tokens), 0), np.int64)
    exact = Corpus(total / max(texts, 1) or 1.0, tuple(rarity(texts, int(each)) for each in having))
    return pa.concat_arrays(ids), Counted(sizes, counts), exact


def best_by_distance(
    run: Run,
    searched: Searched,
    vector: npt.NDArray[np.float32],
    predicate: ir.Expr | None,
    count: int,
    exact: bool,
    shown: Sequence[str] = (),
) -> Best:
    """The rows with the nearest vectors among those that pass the predicate, read along with what is shown."""
    coverage = run.reader.vector_coverage(searched.table_key, searched.column, searched.metric)
    much = count * MUCH_SHARE >= run.reader.row_count(searched.table_key)
    if exact or much or coverage is None or not coverage.covered:
        ids, scores = _read_vectors(run, searched, vector, predicate, count, None)
        why = "asked for" if exact else "no index" if coverage is None else "much of the table is wanted"
        return Best(ids, scores, f"exact: {why}")
    if predicate is not None:
        few = _few(run, searched, predicate)
        if few is not None:
            scores = distances(combined(few.column(searched.column)), vector, searched.metric).astype(np.float64)
            return Best(combined(few.column("id")), scores, f"exact: {few.num_rows} rows pass the filter")
    ids, scores, probes, rows = _asked_vectors(run, searched, vector, predicate, count, coverage, shown)
    asked = len(ids)
    way = f"vector index, {probes} of {coverage.partitions} partitions probed"
    if coverage.uncovered:
        more, extra = _read_vectors(run, searched, vector, predicate, count, coverage.uncovered)
        ids, scores = pa.concat_arrays([ids, more]), np.concatenate([scores, extra])
        way += f", {len(coverage.uncovered)} uncovered fragments read"
    return Best(ids, scores, way, rows if shown and rows.num_rows == asked else None)


def _few(run: Run, searched: Searched, predicate: ir.Expr) -> pa.Table | None:
    """The rows that pass, if they are few; that they are many is remembered."""
    key = (run.reader.state(searched.table_key), predicate)
    if run.caches.many.peek(key):
        return None
    found = run.reader.few(searched.table_key, ["id", searched.column], predicate, FEW_CANDIDATES)
    if found is None:
        run.caches.many.get(key, lambda: True)
    return found


def _asked_vectors(
    run: Run,
    searched: Searched,
    vector: npt.NDArray[np.float32],
    predicate: ir.Expr | None,
    count: int,
    coverage: Coverage,
    shown: Sequence[str],
) -> tuple[pa.Array, npt.NDArray[np.float64], int, pa.Table]:
    """Candidates of the index: more partitions are probed until the answer stands."""
    columns = list(dict.fromkeys(["id", searched.column, *shown]))
    products = searched.metric is Metric.DOT
    centres = None if products else run.reader.vector_centres(searched.table_key, searched.column, coverage)
    before: frozenset[str] | None = None
    limit = (count + max(SPARE, count // 4)) * (2 if coverage.may_be_stale else 1)
    for probes in ladder(coverage.partitions, centres is not None):
        run.stop.check()
        last = probes >= coverage.partitions
        question = VectorQuestion(searched.column, vector, searched.metric, limit, None if last else probes)
        rows = run.reader.ask_vectors(searched.table_key, question, columns, predicate)
        column = combined(rows.column(searched.column))
        measured = distances(column, vector, searched.metric).astype(np.float64)
        ids, scores = _once(combined(rows.column("id")), measured)
        if last:
            break
        if centres is not None:
            best = np.argsort(measured, kind="stable")[:count]
            if len(scores) >= count and lies_early(matrix(column)[best], vector, centres, searched.metric, probes):
                break
            continue
        nearest = frozenset(ids.take(pa.array(np.argsort(scores, kind="stable")[:count])).to_pylist())
        if nearest == before:
            break
        before = nearest
    return ids, scores, min(probes, coverage.partitions), rows


def _read_vectors(
    run: Run,
    searched: Searched,
    vector: npt.NDArray[np.float32],
    predicate: ir.Expr | None,
    count: int,
    fragments: Sequence[int] | None,
) -> tuple[pa.Array, npt.NDArray[np.float64]]:
    """The nearest of the rows that are read, ties at the edge included. Memory holds one batch and the best so far."""
    ids = pa.array([], pa.large_string())
    scores = np.empty(0)
    batches = kept_rows(run, searched, predicate) if fragments is None else None
    if batches is None:
        batches = run.reader.batches(searched.table_key, ["id", searched.column], predicate, fragments)
    for batch in batches:
        run.stop.check()
        bound = float(np.partition(scores, count - 1)[count - 1]) if 0 < count <= len(scores) else np.inf
        near = may_be_near(batch.column(searched.column), vector, searched.metric, bound, count)
        exact = distances(batch.column(searched.column).take(pa.array(near)), vector, searched.metric)
        kept = near[exact <= bound]
        ids = pa.concat_arrays([ids, combined(batch.column("id").take(pa.array(kept)))])
        scores = np.concatenate([scores, exact[exact <= bound].astype(np.float64)])
        if 0 < count < len(scores):
            best = np.flatnonzero(scores <= np.partition(scores, count - 1)[count - 1])
            ids, scores = ids.take(pa.array(best)), scores[best]
    return ids, scores
