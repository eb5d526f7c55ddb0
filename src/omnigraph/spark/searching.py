"""Text and vector search in tasks, exactly: each text and each vector is looked at, no index decides anything.

Matches and distances are properties of one row, so they are computed where the row is, by the functions of the
in-process engine. BM25 needs statistics of the whole column: one pass counts, a second one scores.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from omnigraph.errors import BadRequest
from omnigraph.query import ir
from omnigraph.read.search.ranking import RRF_K
from omnigraph.read.search.text_index import TextIndex, bm25_share, index_texts
from omnigraph.read.search.tokenizer import phrase_tokens, query_tokens, tokenize
from omnigraph.read.search.vectors import cosine_distances

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from omnigraph.spark.lowering import Bindings, Frames

Constant = Callable[[ir.Expr], Any]
QueryVector = Callable[[ir.Nearest, Any], Sequence[float]]
"""The vector for a query value: the value itself, or a text embedded by the graph's provider."""


class Searching:
    """The searches of one query. `frames` gives whole tables, for statistics."""

    def __init__(self, frames: Frames, query_vector: QueryVector) -> None:
        self._frames = frames
        self._query_vector = query_vector

    def matches(self, match: ir.TextMatch, rows: Bindings, constant: Constant) -> Column:
        """Which rows match a text predicate. A missing text, and a query without tokens, match nothing."""
        from pyspark.sql import functions as f

        query = constant(match.query)
        if query is None:
            return f.lit(False)
        edits = None if match.edits is None else constant(match.edits)
        if edits is not None and edits < 0:
            raise BadRequest(f"fuzzy() on `{match.property}` takes 0 or more edits and got {edits}")
        predicate = match.predicate

        def task(texts: pa.Array) -> pa.Array:
            return pa.array(_mask(index_texts([texts]), predicate, query, edits))

        return f.arrow_udf(task, returnType="boolean")(f.col(rows.places[match.var, match.property]))

    def score(self, ranking: ir.Nearest | ir.Bm25, rows: Bindings, constant: Constant) -> Column:
        """The score of each row, null where there is none."""
        from pyspark.sql import functions as f

        value = constant(ranking.query)
        if value is None:
            return f.lit(None).cast("double")
        task = self._distance(ranking, value) if isinstance(ranking, ir.Nearest) else self._bm25(ranking, value)
        return f.arrow_udf(task, returnType="double")(f.col(rows.places[ranking.var, ranking.property]))

    def fused(
        self, ranking: ir.Rrf, rows: Bindings, constant: Constant, name: Callable[[], str]
    ) -> tuple[DataFrame, Column]:
        """Rows with the places of both rankings, and the sum of 1 / (k + place); null where a row is in neither."""
        from pyspark.sql import functions as f

        k = RRF_K if ranking.k is None else constant(ranking.k)
        if k is None or k < 0:
            raise BadRequest(f"the third argument of rrf() must be 0 or more and is {k}")
        frame = rows.frame
        places = []
        for part in (ranking.first, ranking.second):
            key, place = name(), name()
            ranked = self._places(part, rows, constant, key, place)
            frame = frame.join(ranked, f.col(rows.id(part.var)) == f.col(key), "left").drop(key)
            places.append(f.col(place))
        shares = [f.coalesce(f.lit(1.0) / (f.lit(k) + place), f.lit(0.0)) for place in places]
        either = places[0].isNotNull() | places[1].isNotNull()
        return frame, f.when(either, shares[0] + shares[1])

    def _places(
        self, ranking: ir.Nearest | ir.Bm25, rows: Bindings, constant: Constant, key: str, place: str
    ) -> DataFrame:
        """The place of each entity from 1, ties by id; entities without a score have none."""
        from pyspark.sql import Window
        from pyspark.sql import functions as f

        score = self.score(ranking, rows, constant)
        scored = rows.frame.select(f.col(rows.id(ranking.var)).alias(key), score.alias("score")).dropDuplicates([key])
        best = f.col("score").desc() if isinstance(ranking, ir.Bm25) else f.col("score").asc()
        numbered = scored.where(f.col("score").isNotNull()).withColumn(
            place, f.row_number().over(Window.orderBy(best, f.col(key)))
        )
        return numbered.select(key, place)

    def _distance(self, ranking: ir.Nearest, value: Any) -> Callable[[pa.Array], pa.Array]:
        vector = np.asarray(self._query_vector(ranking, value), dtype=np.float32)
        if vector.shape != (ranking.dim,):
            raise BadRequest(
                f"nearest() on `{ranking.property}` needs a vector of {ranking.dim} numbers and got {vector.size}"
            )
        dim = ranking.dim

        def task(vectors: pa.Array) -> pa.Array:
            found = cosine_distances(vectors.cast(pa.list_(pa.float32(), dim)), vector).astype(np.float64)
            return pa.array(found, pa.float64(), mask=np.isnan(found))

        return task

    def _bm25(self, ranking: ir.Bm25, query: str) -> Callable[[pa.Array], pa.Array]:
        tokens = query_tokens(query)
        corpus = corpus_statistics(self._frames(ranking.table_key, [ranking.property]), tokens)

        def task(texts: pa.Array) -> pa.Array:
            scores = bm25_scores(texts, corpus)
            return pa.array(scores, pa.float64(), mask=np.isnan(scores))

        return task


@dataclass(frozen=True, slots=True)
class Corpus:
    """What BM25 knows of a whole column: its texts and tokens, and in how many texts each query token is."""

    texts: int
    tokens: int
    having: tuple[tuple[str, int], ...]


def corpus_statistics(column: DataFrame, tokens: Sequence[str]) -> Corpus:
    """Count over all texts of a column, in one pass."""

    def count(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            texts = batch.column(0)
            found, _ = tokenize(texts)
            index = index_texts([texts])
            having = [int(index.any_of([token]).sum()) for token in tokens]
            counts = [len(texts) - texts.null_count, len(found), *having]
            yield pa.RecordBatch.from_arrays([pa.array([counts], pa.list_(pa.int64()))], names=["counts"])

    totals = [0] * (len(tokens) + 2)
    for row in column.mapInArrow(count, "counts array<bigint>").collect():
        totals = [total + more for total, more in zip(totals, row.counts, strict=True)]
    return Corpus(totals[0], totals[1], tuple(zip(tokens, totals[2:], strict=True)))


def bm25_scores(texts: pa.Array, corpus: Corpus) -> np.ndarray[Any, np.dtype[np.float64]]:
    """The BM25 score of each text, not-a-number where no token matches."""
    scores = np.zeros(len(texts))
    matched = np.zeros(len(texts), dtype=bool)
    if corpus.texts == 0 or corpus.tokens == 0:
        return np.full(len(texts), np.nan)
    average = corpus.tokens / corpus.texts
    found, starts = tokenize(texts)
    sizes = np.diff(starts)
    words = np.asarray(found.to_numpy(zero_copy_only=False))
    owner = np.repeat(np.arange(len(texts)), sizes)
    for token, having in corpus.having:
        places, counts = np.unique(owner[words == token], return_counts=True)
        if not len(places):
            continue
        scores[places] += bm25_share(counts, sizes[places], having, corpus.texts, average)
        matched[places] = True
    scores[~matched] = np.nan
    return scores


def _mask(index: TextIndex, predicate: ir.TextPredicate, query: str, edits: int | None) -> Any:
    if predicate is ir.TextPredicate.SEARCH:
        return index.any_of(query_tokens(query))
    if predicate is ir.TextPredicate.MATCH_TEXT:
        return index.phrase(phrase_tokens(query))
    return index.near_any_of(query_tokens(query), edits)
