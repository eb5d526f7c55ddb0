"""The tables of one snapshot as frames whose tasks read them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from omnigraph.ledger.snapshots import table_of
from omnigraph.spark.source.scan_plan import scan_plan
from omnigraph.spark.source.task_reads import Batches, ReadTable, read_by_tasks, rows_frame, worked_frame
from omnigraph.storage.reading.filters import Filter

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from omnigraph.ledger.store import GraphStore
    from omnigraph.ledger.values import Snapshot


class SnapshotReads:
    """The tables of one snapshot, as the tasks of one query read them."""

    def __init__(self, session: SparkSession, store: GraphStore, snapshot: Snapshot) -> None:
        self._session = session
        self._store = store
        self._snapshot = snapshot
        self._rows: dict[tuple[Any, ...], DataFrame] = {}

    def rows(self, table_key: str, columns: Sequence[str], condition: Filter | None) -> DataFrame:
        """The rows of a table for which a condition holds, with these columns in this order, called `t0`, `t1` and so
        on. One frame however often it is asked for, so that Spark sees that it is the same."""
        known = (table_key, *columns, condition)
        if known not in self._rows:
            names = [f"t{position}" for position in range(len(columns))]
            self._rows[known] = rows_frame(self._session, self.read(table_key, columns, condition), names)
        return self._rows[known]

    def held(self, rows: pa.Table, schema: Any) -> DataFrame:
        """A few rows that are here, as a frame: in one partition, so that Spark need not look for places to cut an
        order."""
        return self._session.createDataFrame(rows if rows.num_rows else [], schema).coalesce(1)

    def read(self, table_key: str, columns: Sequence[str], condition: Filter | None) -> ReadTable:
        """What tasks have to know."""
        table = table_of(self._snapshot.pin(table_key))
        schema = self._store.tables.schema(table)
        plan = scan_plan(table, schema, self._store.tables.fragments(table))
        cores = int(self._session.sparkContext.defaultParallelism)
        return read_by_tasks(cores, self._store.uri, plan, schema, columns, condition)

    def worked(self, read: ReadTable, work: Callable[[Batches], Batches], schema: Any) -> DataFrame:
        """What a function makes of the stored rows of each task, where they are read."""
        return worked_frame(self._session, read, work, schema)
