"""Text and vector search in tasks, exactly: each text and each vector is looked at, no index decides anything.

Matches and distances are properties of one row, so they are computed where the row is, by the functions of the
in-process engine. BM25 needs statistics of the whole column: one pass counts, a second one scores.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import BadRequest
from omnigraph.query import ir
from omnigraph.read.search.analyzer import analyzer
from omnigraph.read.search.corpora import corpus_of
from omnigraph.read.search.ranking import RRF_K, checked_vector, fused_depth
from omnigraph.read.search.row_sets import checked_query
from omnigraph.read.search.searched import Searched, searched_by
from omnigraph.read.search.texts import Corpus, bm25, counted, matching, rarity
from omnigraph.read.search.vectors import distances
from omnigraph.read.tables.caches import ReadCaches
from omnigraph.read.tables.reader import TableReader
from omnigraph.schema.arrow import arrow_type
from omnigraph.schema.catalog import Catalog
from omnigraph.schema.search_settings import TextSettings
from omnigraph.schema.types import VectorType
from omnigraph.spark.query.bindings import Bindings, Variables, type_name
from omnigraph.spark.query.row_places import all_places, first_places

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from omnigraph.spark.query.tables import Frames

Constant = Callable[[ir.Expr], Any]
QueryVector = Callable[[ir.Nearest, Any], Sequence[float]]
"""The vector for a query value: the value itself, or a text embedded by the graph's provider."""


class Searching:
    """The searches of one query. `frames` gives whole tables, for statistics that no index has, `reader` indexes."""

    def __init__(
        self,
        frames: Frames,
        reader: TableReader,
        caches: ReadCaches,
        catalog: Catalog,
        variables: Variables,
        query_vector: QueryVector,
    ) -> None:
        self._frames = frames
        self._reader = reader
        self._caches = caches
        self._catalog = catalog
        self._variables = variables
        self._query_vector = query_vector

    def matches(self, match: ir.TextMatch, texts: Column, constant: Constant) -> Column:
        """Which texts match a predicate: null where there is no text, or no query; without tokens nothing matches."""
        from pyspark.sql import functions as f

        query = constant(match.query)
        if query is None:
            return f.lit(None).cast("boolean")
        edits = None if match.edits is None else constant(match.edits)
        tables = self._variables.tables(match.var)
        asked = checked_query(match, query, edits, searched_by(self._catalog, match, tables[0]))

        def task(given: pa.Array) -> pa.Array:
            missing = np.asarray(given.is_null().to_numpy(zero_copy_only=False))
            return pa.array(matching(given, asked), mask=missing)

        return f.arrow_udf(task, returnType="boolean")(texts)

    def score(self, ranking: ir.Nearest | ir.Bm25, rows: Bindings, constant: Constant) -> Column:
        """The score of each row, null where there is none."""
        from pyspark.sql import functions as f

        value = constant(ranking.query)
        if value is None:
            return f.lit(None).cast("double")
        task = self._distance(ranking, value) if isinstance(ranking, ir.Nearest) else self._bm25(ranking, value)
        type_ = arrow_type(VectorType(ranking.dim)) if isinstance(ranking, ir.Nearest) else pa.string()
        looked_at = [f.col(rows.place(ranking.var, ranking.property, type_))]
        if isinstance(ranking, ir.Bm25):
            looked_at.append(self._variables.type_of(rows, ranking.var))
        return f.arrow_udf(task, returnType="double")(*looked_at)

    def fused(
        self, ranking: ir.Rrf, rows: Bindings, constant: Constant, name: Callable[[], str], wanted: int | None
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
            ranked = self._places(part, rows, constant, key, place, fused_depth(wanted))
            frame = frame.join(ranked, f.col(rows.key(part.var)) == f.col(key), "left").drop(key)
            places.append(f.col(place))
        shares = [f.coalesce(f.lit(1.0) / (f.lit(k) + place), f.lit(0.0)) for place in places]
        either = places[0].isNotNull() | places[1].isNotNull()
        return frame, f.when(either, shares[0] + shares[1])

    def _places(
        self, ranking: ir.Nearest | ir.Bm25, rows: Bindings, constant: Constant, key: str, place: str, depth: int | None
    ) -> DataFrame:
        """The place of each entity from 1 to `depth`, ties by id; entities without a score have none."""
        from pyspark.sql import functions as f

        score = self.score(ranking, rows, constant)
        scored = rows.frame.select(f.col(rows.key(ranking.var)).alias(key), score.alias("score")).dropDuplicates([key])
        scored = scored.where(f.col("score").isNotNull())
        order = [f.col("score").desc() if isinstance(ranking, ir.Bm25) else f.col("score").asc(), f.col(key).asc()]
        if depth is None:
            return all_places(scored, order, place)[0].select(key, place)
        return first_places(scored, order, place, depth).select(key, place)

    def _distance(self, ranking: ir.Nearest, value: Any) -> Callable[[pa.Array], pa.Array]:
        metric = searched_by(self._catalog, ranking, self._variables.tables(ranking.var)[0]).metric
        vector = checked_vector(ranking, self._query_vector(ranking, value), metric)
        dim = ranking.dim

        def task(vectors: pa.Array) -> pa.Array:
            found = distances(vectors.cast(pa.list_(pa.float32(), dim)), vector, metric).astype(np.float64)
            return pa.array(found, pa.float64(), mask=np.isnan(found))

        return task

    def _bm25(self, ranking: ir.Bm25, query: str) -> Callable[[pa.Array, pa.Array], pa.Array]:
        """Scores by the statistics of the column of each entity's own table."""
        corpora = {}
        for table_key in self._variables.tables(ranking.var):
            searched = searched_by(self._catalog, ranking, table_key)
            tokens = analyzer(searched.settings).tokens(query)
            corpora[type_name(table_key)] = (searched.settings, tokens, self._corpus(searched, query, tokens))

        def task(texts: pa.Array, types: pa.Array) -> pa.Array:
            scores = np.full(len(texts), np.nan)
            for name, (settings, tokens, corpus) in corpora.items():
                own = np.asarray(pc.fill_null(pc.equal(types, name), False).to_numpy(zero_copy_only=False))
                scores[own] = bm25(counted(texts.filter(pa.array(own)), tokens, settings), corpus)
            return pa.array(scores, pa.float64(), mask=np.isnan(scores))

        return task

    def _corpus(self, searched: Searched, query: str, tokens: list[str]) -> Corpus:
        """The statistics of the index, as in process; where there is none, those of all texts."""
        coverage = self._reader.text_coverage(searched.table_key, searched.column, searched.settings)
        if coverage is not None:
            known = corpus_of(self._reader, self._caches, searched, coverage, query, tokens)
            if known is not None:
                return known
        column = self._frames(searched.table_key, [searched.column], None)
        return corpus_statistics(column, tokens, searched.settings)


def corpus_statistics(column: DataFrame, tokens: list[str], settings: TextSettings) -> Corpus:
    """Count over all texts of a column, in one pass."""

    def count(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            found = counted(batch.column(0), tokens, settings)
            having = (found.counts > 0).sum(axis=1).tolist()
            counts = [int((found.sizes > 0).sum()), int(found.sizes.sum()), *having]
            yield pa.RecordBatch.from_arrays([pa.array([counts], pa.list_(pa.int64()))], names=["counts"])

    totals = [0] * (len(tokens) + 2)
    for row in column.mapInArrow(count, "counts array<bigint>").collect():
        totals = [total + more for total, more in zip(totals, row.counts, strict=True)]
    return Corpus(totals[1] / max(totals[0], 1) or 1.0, tuple(rarity(totals[0], having) for having in totals[2:]))
