"""Committed rows as one bucket of keys sees them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.ledger.values import Snapshot
from omnigraph.spark.load.known.known_ids import KnownIds
from omnigraph.spark.load.load_messages import bucket_of
from omnigraph.write.committed import CommittedRows
from omnigraph.write.validate.key_changes import no_ids, one_array

MOST_IDS = 1_000_000
"""Committed ids of one bucket that are held at once; of more, only those that are asked for are looked up."""

_FEW_TIMES = 12
"""To look up one id takes as long as to read so many and make them ready."""

_ROWS_TOGETHER = 250_000


class BucketOfCommitted(CommittedRows):
    """Committed rows as one bucket sees them: a scan by an end gives the rows of this bucket only."""

    def __init__(
        self, store: Any, snapshot: Snapshot, *, buckets: int = 1, bucket: int = 0, most_ids: int = MOST_IDS
    ) -> None:
        super().__init__(store, snapshot)
        self._buckets = buckets
        self._bucket = bucket
        self._most_ids = most_ids
        self._ids: dict[str, KnownIds] = {}

    def unknown_ids(self, table_key: str, ids: pa.ChunkedArray | pa.Array) -> pa.Array:
        """Of these ids those that no row has, each once.

        When there are not very few of them, the ids of the bucket are read as they are, once for both ends of an edge:
        that is cheaper than to look for each.
        """
        rows = self.count(table_key)
        if len(ids) * self._buckets * _FEW_TIMES < rows or rows > self._buckets * self._most_ids:
            return super().unknown_ids(table_key, ids)
        return self.known_ids(table_key).missing(ids)

    def known_ids(self, table_key: str) -> KnownIds:
        """The ids of the bucket."""
        if table_key not in self._ids:
            self._ids[table_key] = KnownIds(pa.concat_arrays([no_ids(), *self._ids_here(table_key)]))
        return self._ids[table_key]

    def _ids_here(self, table_key: str) -> Iterator[pa.Array]:
        """The ids of the bucket, in pieces that are worth the call that tells whose they are."""
        waiting: list[pa.Table] = []
        for rows in CommittedRows.scan(self, table_key, ["id"]):
            waiting.append(rows)
            if sum(part.num_rows for part in waiting) >= _ROWS_TOGETHER:
                yield self._of_bucket(waiting)
                waiting = []
        if waiting:
            yield self._of_bucket(waiting)

    def _of_bucket(self, parts: list[pa.Table]) -> pa.Array:
        ids = one_array(pa.concat_tables(parts)["id"])
        if self._buckets == 1:
            return ids
        return ids.filter(pa.array(bucket_of(pa.chunked_array([ids]), self._buckets) == self._bucket))

    def scan(self, table_key: str, columns: Sequence[str]) -> Iterator[pa.Table]:
        """The rows of this bucket, by the last of the columns (the end that is looked at)."""
        for rows in super().scan(table_key, columns):
            if self._buckets == 1:
                yield rows
                continue
            here = bucket_of(rows[columns[-1]], self._buckets) == self._bucket
            yield rows.filter(pc.fill_null(pa.array(here), False))
