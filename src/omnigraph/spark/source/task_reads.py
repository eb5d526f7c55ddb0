"""Frames whose tasks read a table version themselves.

Not by way of Spark's data sources: those are planned in processes of their own, which costs a query more than reading a
million rows does, they cannot say how large they are, and Spark copies and counts each of their rows once more. Here a
task is one number of a range, and the numbers before the next one stand for its rows: so Spark knows about how many
there are, and sends small tables to all tasks instead of sorting both sides of a join.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from omnigraph.spark.session.worker_daemon import settle_worker
from omnigraph.spark.source.scan_plan import ScanPlan, Stretch
from omnigraph.spark.types import to_travelling, travelling_schema
from omnigraph.storage.reading.filters import Filter
from omnigraph.storage.reading.fitting_batches import pieces
from omnigraph.storage.values import TableVersion

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Batches = Iterator[pa.RecordBatch]
SMALLEST_TASK = 250_000
LARGEST_TASK = 2_000_000
BATCH_ROWS = 32_768
BATCH_BYTES = 64 << 20
"""What Java takes at once without trouble, as Spark itself has it."""
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
        batches = tables.scan(
            self.table,
            columns=list(self.columns),
            filter=self.condition,
            fragments=list(stretch.fragments),
            offset=stretch.offset,
            limit=stretch.limit,
            batch_size=BATCH_ROWS,
            blobs="bytes",
        )
        for batch in batches:
            yield from pieces(batch, BATCH_BYTES)


def rows_for_each_task(cores: int, rows: int) -> int:
    """Rows of a task, so that every core has one to read: a task costs as much as reading 100 000 rows."""
    return min(max(-(-rows // cores), SMALLEST_TASK), LARGEST_TASK)


def read_by_tasks(
    cores: int, uri: str, plan: ScanPlan, schema: pa.Schema, columns: Sequence[str], condition: Filter | None = None
) -> ReadTable:
    """What tasks have to know to read a table with this schema: enough of them that every core has one."""
    stretches = plan.stretches(rows_for_each_task(cores, plan.rows), filtered=condition is not None)
    return ReadTable(uri, plan.table, tuple(columns), condition, tuple(stretches), plan.rows, schema)


def worked_frame(session: SparkSession, read: ReadTable, work: Callable[[Batches], Batches], schema: Any) -> DataFrame:
    """What a function makes of the stored rows of each task, where they are read."""
    stretches = read.stretches or (Stretch(()),)
    apart = max(1, -(-read.rows // len(stretches))) * read.weight

    def task(batches: Batches) -> Batches:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                stretch = stretches[number // apart]
                yield from work(read.stored(stretch) if stretch.fragments else iter(()))

    numbers = session.range(0, apart * len(stretches), 1, len(stretches))
    return numbers.where(f"id % {apart} = 0").mapInArrow(task, schema)


def rows_frame(session: SparkSession, read: ReadTable, names: Sequence[str] | None = None) -> DataFrame:
    """The rows themselves, in the types in which they cross to Spark, under the names of their columns or others."""
    from pyspark.sql.pandas.types import from_arrow_schema

    stored = travelling_schema(read.schema, read.columns)
    given = stored if names is None else pa.schema([field.with_name(name) for field, name in zip(stored, names)])

    def travelling(batches: Batches) -> Batches:
        for batch in batches:
            rows = to_travelling(batch, stored)
            yield rows if names is None else pa.RecordBatch.from_arrays(rows.columns, schema=given)

    return worked_frame(session, read, travelling, from_arrow_schema(given))


def _width(type_: pa.DataType, name: str) -> int:
    """Bytes of a value of a column, rather too many than too few."""
    if pa.types.is_fixed_size_list(type_):
        return int(type_.list_size) * 4
    if name in _SHORT or pa.types.is_primitive(type_):
        return _ASSUMED_WIDTH
    return _TEXT_WIDTH
