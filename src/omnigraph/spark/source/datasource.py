"""`omnigraph` as a Spark data source: `spark.read.format("omnigraph")` and `df.write.format("omnigraph")`.

A read is pinned to one snapshot when the DataFrame is made. Python data sources have no column pruning of their own in
Spark 4.3, so columns are chosen when the frame is made: by `option("columns", "id,name")`, by `.schema(…)`, or by
`to_spark(columns=…)`. Filters are pushed down into Lance. This module imports PySpark: import it only to run Spark. It
does not import Lance: the processes in which Spark plans have no use for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from omnigraph.choices import Target
from omnigraph.diagnostics import did_you_mean
from omnigraph.errors import BadRequest, NotFound
from omnigraph.spark.session.worker_daemon import settle_worker
from omnigraph.spark.source.scan_plan import ScanPlan, Stretch, plan_from_text, scan_plan
from omnigraph.spark.source.spark_filters import is_exact, to_condition
from omnigraph.spark.types import spark_schema, to_travelling, travelling_schema
from omnigraph.storage.reading.filters import Filter, and_
from omnigraph.storage.uri import parse_root
from omnigraph.storage.values import TableVersion

if TYPE_CHECKING:
    from omnigraph.ledger.store import GraphStore
    from omnigraph.storage.tables import TableStore

FORMAT = "omnigraph"
ROWS_PER_PARTITION = 500_000
SMALLEST_PARTITION = 250_000
LARGEST_PARTITION = 2_000_000
_BATCH_ROWS = 32_768


def register(session: SparkSession) -> None:
    """Make the format known to a session. Filters are pushed down only if the session allows it, so it is told to."""
    session.dataSource.register(OmniGraphDataSource)
    session.conf.set("spark.sql.python.filterPushdown.enabled", "true")


def to_spark(
    session: SparkSession,
    store: GraphStore,
    type: str,
    *,
    columns: Sequence[str] | None = None,
    at: Target = None,
    branch: str = "main",
    push_down: bool = False,
) -> DataFrame:
    """The rows of one type at one snapshot as a DataFrame. Blobs come only when named in `columns`.

    With `push_down` Lance evaluates the filters on it: only for a frame that stands once in a query.
    """
    table = table_at(store, type, at, branch)
    return table_frame(session, store.uri, store.tables, table, columns, push_down=push_down)


def table_frame(
    session: SparkSession,
    uri: str,
    tables: TableStore,
    table: TableVersion,
    columns: Sequence[str] | None = None,
    *,
    push_down: bool = False,
) -> DataFrame:
    """The rows of one table version as a DataFrame, partitioned by fragments."""
    schema = tables.schema(table)
    wanted = checked_columns(schema, columns)
    plan = scan_plan(table, schema, tables.fragments(table))
    return _planned_frame(session, uri, schema, wanted, plan, push_down=push_down)


def fixed_frame(
    session: SparkSession,
    uri: str,
    tables: TableStore,
    table: TableVersion,
    columns: Sequence[str],
    condition: Filter | None,
) -> DataFrame:
    """The rows of one table version for which a condition holds, to be used several times in one query.

    Spark pushes no filter down into it: it keeps what it pushed with the frame, not with the scan, and would read every
    scan of the frame under the filters of one of them.
    """
    schema = tables.schema(table)
    plan = scan_plan(table, schema, tables.fragments(table))
    return _planned_frame(session, uri, schema, columns, replace(plan, filterable=pa.schema([]), condition=condition))


def _planned_frame(
    session: SparkSession,
    uri: str,
    schema: pa.Schema,
    wanted: Sequence[str],
    plan: ScanPlan,
    *,
    push_down: bool = False,
) -> DataFrame:
    register(session)
    return (
        session.read.format(FORMAT)
        .schema(spark_schema(schema, wanted))
        .option("plan", plan.to_text())
        .option("rowsPerPartition", _rows_for(session, plan.rows))
        .option("pushDown", push_down)
        .load(uri)
    )


def _rows_for(session: SparkSession, rows: int) -> int:
    """Rows per partition that give every core one to read: a task costs as much as reading 100 000 rows."""
    context = getattr(session, "sparkContext", None) if "connect" not in type(session).__module__ else None
    cores = int(context.defaultParallelism) if context is not None else 1
    return min(max(-(-rows // cores), SMALLEST_PARTITION), LARGEST_PARTITION)


def table_at(store: GraphStore, type_name: str, at: Target, branch: str) -> TableVersion:
    """The version of a type's table that a snapshot publishes."""
    from omnigraph.ledger.snapshots import find_type, table_of

    snapshot = store.snapshot(at, branch=branch)
    graph_type = find_type(store.catalog(snapshot.schema_digest), type_name)
    return table_of(snapshot.pin(graph_type.table_key))


def checked_columns(schema: pa.Schema, columns: Sequence[str] | None) -> list[str]:
    """The columns to read: those named, or all but the blobs."""
    from omnigraph.storage.reading.blobs import is_blob_field

    if columns is None:
        return [field.name for field in schema if not is_blob_field(field)]
    for name in columns:
        if name not in schema.names:
            hint = did_you_mean(name, schema.names)
            raise NotFound(f"There is no column `{name}`" + (f"; {hint}" if hint else f"; there are {schema.names}"))
    return list(columns)


class OmniGraphDataSource(DataSource):  # type: ignore[misc]
    """Options: `type`; `branch`, `snapshot` (a commit or tag) or `version` (of the branch's manifest); `columns`;
    `pushDown` for a frame that stands once in a query.

    Spark keeps the filters that a Python source took over with the frame, not with the scan: of a frame that stands
    twice in one query both places would be read under the filters of one. So none are taken over unless that is asked
    for.
    """

    @classmethod
    def name(cls) -> str:
        """The name of the format."""
        return FORMAT

    def __init__(self, options: Any) -> None:
        self.options = dict(options)
        self.plan: ScanPlan | None = None

    @property
    def uri(self) -> str:
        """Where the graph lies. A local path is absolute from here on: executors work in directories of their own."""
        if not self.options.get("path"):
            raise BadRequest('Say which graph: .load("graph.omni") or .save("s3://bucket/graph").')
        return parse_root(self.options["path"]).uri

    def schema(self) -> StructType:
        """Binds the frame to a snapshot, which travels with this object from here on."""
        names = self.options.get("columns")
        schema = tables_of(self.uri).schema(self.resolve().table)
        return spark_schema(schema, checked_columns(schema, _split(names) if names else None))

    def reader(self, schema: StructType) -> DataSourceReader:
        """A reader of the columns that the frame has."""
        plan = self.resolve()
        if self._option("pushdown", "false").lower() != "true":
            plan = replace(plan, filterable=pa.schema([]))
        return Reader(self.uri, plan, tuple(schema.fieldNames()), self._rows_per_partition())

    def writer(self, schema: StructType, overwrite: bool) -> Any:
        """A writer that loads the frame's rows as one commit."""
        from omnigraph.spark.source.datasource_writer import Writer

        return Writer(self.uri, self.options, schema.fieldNames(), overwrite)

    def resolve(self) -> ScanPlan:
        """The table version that the options name, found once."""
        if self.plan is None:
            given = self.options.get("plan")
            self.plan = plan_from_text(given) if given else self._look_up()
        return self.plan

    def _look_up(self) -> ScanPlan:
        type_name = self.options.get("type")
        if not type_name:
            raise BadRequest('Say which type: .option("type", "Person").')
        from omnigraph.ledger.store import open_store

        version = self.options.get("version")
        target = int(version) if version else self.options.get("snapshot")
        store = open_store(self.uri, read_only=True)
        try:
            table = table_at(store, type_name, target, self.options.get("branch", "main"))
            return scan_plan(table, store.tables.schema(table), store.tables.fragments(table))
        finally:
            store.close()

    def _rows_per_partition(self) -> int:
        return int(self._option("rowsperpartition", str(ROWS_PER_PARTITION)))

    def _option(self, name: str, default: str) -> str:
        # Spark hands options over with their names in lower case.
        given = {each.lower(): value for each, value in self.options.items()}
        return str(given.get(name, default))


@dataclass
class StretchPartition(InputPartition):  # type: ignore[misc]
    """What one task reads."""

    stretch: Stretch


class Reader(DataSourceReader):  # type: ignore[misc]
    """Reads one table version, some columns, with the filters that Lance takes over."""

    def __init__(self, uri: str, plan: ScanPlan, columns: tuple[str, ...], rows_per_partition: int) -> None:
        self.uri = uri
        self.plan = plan
        self.columns = columns
        self.rows_per_partition = rows_per_partition
        self.condition: Filter | None = plan.condition

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

    def partitions(self) -> list[StretchPartition]:
        """About `rows_per_partition` rows each."""
        stretches = self.plan.stretches(self.rows_per_partition, filtered=self.condition is not None)
        return [StretchPartition(stretch) for stretch in stretches]

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        """The rows of some fragments as Arrow batches."""
        if not isinstance(partition, StretchPartition):
            return
        tables = tables_of(self.uri)
        settle_worker()
        target = travelling_schema(tables.schema(self.plan.table), self.columns)
        reader = tables.scan(
            self.plan.table,
            columns=list(self.columns),
            filter=self.condition,
            fragments=list(partition.stretch.fragments),
            offset=partition.stretch.offset,
            limit=partition.stretch.limit,
            batch_size=_BATCH_ROWS,
            blobs="bytes",
        )
        for batch in reader:
            yield to_travelling(batch, target)


def tables_of(uri: str) -> TableStore:
    """The tables of a graph. Opened anew each time: another graph may have been made at the same place meanwhile."""
    from omnigraph.storage.tables import TableStore

    return TableStore(parse_root(uri))


def _split(names: str) -> list[str]:
    return [name.strip() for name in names.split(",") if name.strip()]
