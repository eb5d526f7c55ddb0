"""Reading one table version in tasks, with or without the filters of the query.

Two readers, because Spark refuses one that takes filters over in every session that has not switched that on
(`spark.sql.python.filterPushdown.enabled`), and most sessions have not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from omnigraph.spark.session.worker_daemon import settle_worker
from omnigraph.spark.source.plain_errors import plain_errors, plain_errors_of_rows
from omnigraph.spark.source.scan_plan import ScanPlan, Stretch
from omnigraph.spark.source.spark_filters import is_exact, to_condition
from omnigraph.spark.source.task_reads import BATCH_BYTES, BATCH_ROWS
from omnigraph.spark.types import to_travelling, travelling_schema
from omnigraph.storage.reading.filters import Filter, and_
from omnigraph.storage.reading.fitting_batches import pieces
from omnigraph.storage.uri import parse_root

if TYPE_CHECKING:
    from omnigraph.storage.tables import TableStore


@dataclass
class StretchPartition(InputPartition):  # type: ignore[misc]  # PySpark has no types here
    """What one task reads."""

    stretch: Stretch


class Reader(DataSourceReader):  # type: ignore[misc]  # PySpark has no types here
    """Reads one table version, some columns, under the condition of its plan."""

    def __init__(self, uri: str, plan: ScanPlan, columns: dict[str, bool], rows_per_partition: int) -> None:
        self.uri = uri
        self.plan = plan
        self.columns = columns
        """Each with whether the frame takes it for one that may be null."""
        self.rows_per_partition = rows_per_partition
        self.condition: Filter | None = plan.condition

    @plain_errors
    def partitions(self) -> list[StretchPartition]:
        """About `rows_per_partition` rows each."""
        stretches = self.plan.stretches(self.rows_per_partition, filtered=self.condition is not None)
        return [StretchPartition(stretch) for stretch in stretches]

    @plain_errors_of_rows
    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        """The rows of some fragments as Arrow batches."""
        if not isinstance(partition, StretchPartition):
            return
        tables = tables_of(self.uri)
        settle_worker()
        stored = travelling_schema(tables.schema(self.plan.table), list(self.columns))
        # Spark compares what comes with what the frame was told, nullability included.
        target = pa.schema([field.with_nullable(self.columns[field.name]) for field in stored])
        reader = tables.scan(
            self.plan.table,
            columns=list(self.columns),
            filter=self.condition,
            fragments=list(partition.stretch.fragments),
            offset=partition.stretch.offset,
            limit=partition.stretch.limit,
            batch_size=BATCH_ROWS,
            blobs="bytes",
        )
        for batch in reader:
            for piece in pieces(batch, BATCH_BYTES):
                yield to_travelling(piece, target)


class FilteringReader(Reader):
    """Reads one table version, some columns, with the filters that Lance takes over."""

    def pushFilters(self, filters: list[Any]) -> Iterable[Any]:  # noqa: N802 - Spark's name
        """Take over what Lance evaluates; give back what Spark must (also) look at."""
        taken = [] if self.plan.condition is None else [self.plan.condition]
        for item in filters:
            condition = to_condition(item, self.plan.filterable)
            if condition is not None:
                taken.append(condition)
            if condition is None or not is_exact(item):
                yield item
        self.condition = and_(*taken) if taken else None


def tables_of(uri: str) -> TableStore:
    """The tables of a graph. Opened anew each time: another graph may have been made at the same place meanwhile."""
    from omnigraph.storage.tables import TableStore

    return TableStore(parse_root(uri))
