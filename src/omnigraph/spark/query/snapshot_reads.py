"""Frames whose tasks read a table of the snapshot themselves.

Not by way of Spark's data sources: those are planned in processes of their own, which costs a query more than reading a
million rows does, and they cannot say how large they are. Here a task is one number of a range, and the numbers before
the next one stand for its rows: so Spark knows about how many there are, and sends small tables to all tasks instead of
sorting both sides of a join.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from omnigraph.ledger.snapshots import table_of
from omnigraph.spark.session.worker_daemon import settle_worker
from omnigraph.spark.source.scan_plan import Stretch, scan_plan
from omnigraph.spark.types import spark_schema, to_travelling, travelling_schema
from omnigraph.storage.reading.filters import Filter
from omnigraph.storage.values import TableVersion

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from omnigraph.ledger.store import GraphStore
    from omnigraph.ledger.values import Snapshot

Batches = Iterator[pa.RecordBatch]
SMALLEST_TASK = 250_000
LARGEST_TASK = 2_000_000
_BATCH_ROWS = 32_768
_ASSUMED_WIDTH = 20
"""Bytes of a value, to Spark."""
_TEXT_WIDTH = 200
"""Bytes of a text that is no id, if it is not a short one."""
_SHORT = ("id", "src", "dst")


@dataclass(frozen=True, slots=True)
class ReadTable:
    """Some columns of one table version, under a condition, as tasks read them."""

    uri: str
    table: TableVersion
    columns: tuple[str, ...]
    condition: Filter | None
    stretches: tuple[Stretch, ...]
    rows: int
    schema: pa.Schema
    """That of the whole table."""

    @property
    def weight(self) -> int:
        """How many times as large rows are as Spark takes them for, which knows neither texts nor vectors: a table that
        is taken for a small one is sent to every task."""
        width = sum(_width(self.schema.field(name).type, name) for name in self.columns)
        return max(1, width // (_ASSUMED_WIDTH * len(self.columns)))

    def stored(self, stretch: Stretch) -> Batches:
        """The rows of a stretch as they are stored."""
        from omnigraph.storage.tables import TableStore
        from omnigraph.storage.uri import parse_root

        # Opened anew each time: another graph may have been made at the same place meanwhile.
        tables = TableStore(parse_root(self.uri))
        settle_worker()
        yield from tables.scan(
            self.table,
            columns=list(self.columns),
            filter=self.condition,
            fragments=list(stretch.fragments),
            offset=stretch.offset,
            limit=stretch.limit,
            batch_size=_BATCH_ROWS,
            blobs="bytes",
        )


class SnapshotReads:
    """The tables of one snapshot, as the tasks of one query read them."""

    def __init__(self, session: SparkSession, store: GraphStore, snapshot: Snapshot) -> None:
        self._session = session
        self._store = store
        self._snapshot = snapshot
        self._rows: dict[tuple[Any, ...], DataFrame] = {}

    def rows(self, table_key: str, columns: Sequence[str], condition: Filter | None) -> DataFrame:
        """The rows of a table for which a condition holds, with these columns in this order. One frame however often it
        is asked for, so that Spark sees that it is the same."""
        known = (table_key, *columns, condition)
        if known not in self._rows:
            read = self.read(table_key, columns, condition)
            target = travelling_schema(read.schema, read.columns)

            def travelling(batches: Batches) -> Batches:
                return (to_travelling(batch, target) for batch in batches)

            self._rows[known] = self.worked(read, travelling, spark_schema(read.schema, read.columns))
        return self._rows[known]

    def held(self, rows: pa.Table, schema: Any) -> DataFrame:
        """A few rows that are here, as a frame: in one partition, so that Spark need not look for places to cut an
        order."""
        return self._session.createDataFrame(rows if rows.num_rows else [], schema).coalesce(1)

    def read(self, table_key: str, columns: Sequence[str], condition: Filter | None) -> ReadTable:
        """What tasks have to know: enough of them that every core has one."""
        table = table_of(self._snapshot.pin(table_key))
        schema = self._store.tables.schema(table)
        plan = scan_plan(table, schema, self._store.tables.fragments(table))
        cores = int(self._session.sparkContext.defaultParallelism)
        size = min(max(-(-plan.rows // cores), SMALLEST_TASK), LARGEST_TASK)
        stretches = plan.stretches(size, filtered=condition is not None)
        return ReadTable(self._store.uri, table, tuple(columns), condition, tuple(stretches), plan.rows, schema)

    def worked(self, read: ReadTable, work: Callable[[Batches], Batches], schema: Any) -> DataFrame:
        """What a function makes of the stored rows of each task, where they are read."""
        from pyspark.sql import functions as f

        stretches = read.stretches or (Stretch(()),)
        apart = max(1, -(-read.rows // len(stretches))) * read.weight

        def task(batches: Batches) -> Batches:
            for batch in batches:
                for number in batch.column(0).to_pylist():
                    stretch = stretches[number // apart]
                    yield from work(read.stored(stretch) if stretch.fragments else iter(()))

        numbers = self._session.range(0, apart * len(stretches), 1, len(stretches))
        return numbers.where(f.col("id") % apart == 0).mapInArrow(task, schema)


def _width(type_: pa.DataType, name: str) -> int:
    """Bytes of a value of a column, rather too many than too few."""
    if pa.types.is_fixed_size_list(type_):
        return int(type_.list_size) * 4
    if name in _SHORT or pa.types.is_primitive(type_):
        return _ASSUMED_WIDTH
    return _TEXT_WIDTH
