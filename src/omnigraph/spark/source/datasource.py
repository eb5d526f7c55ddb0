"""`omnigraph` as a Spark data source: `spark.read.format("omnigraph")` and `df.write.format("omnigraph")`.

A read is pinned to one snapshot when the DataFrame is made. Python data sources have no column pruning of their own in
Spark 4.3, so columns are chosen when the frame is made: by `option("columns", "id,name")`, by `.schema(…)`, or by
`to_spark(columns=…)`. Filters are pushed down into Lance. This module imports PySpark: import it only to run Spark. It
does not import Lance: the processes in which Spark plans have no use for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader
from pyspark.sql.types import StructType

from omnigraph.choices import Target
from omnigraph.diagnostics import did_you_mean
from omnigraph.errors import BadRequest, NotFound
from omnigraph.spark.session.active import make_active
from omnigraph.spark.session.connect import speaks_connect
from omnigraph.spark.session.machine import usable_cores
from omnigraph.spark.session.worker_daemon import settle_worker
from omnigraph.spark.session.worker_python import require_python_for_planning, settle_worker_python
from omnigraph.spark.source.frame_options import FrameOptions, graph_uri
from omnigraph.spark.source.option_names import FRAME, STREAM_OUT
from omnigraph.spark.source.plain_errors import plain_errors
from omnigraph.spark.source.readers import FilteringReader, Reader, tables_of
from omnigraph.spark.source.scan_plan import ScanPlan, plan_from_text, scan_plan
from omnigraph.spark.source.task_reads import read_by_tasks, rows_for_each_task, rows_frame
from omnigraph.spark.types import spark_schema
from omnigraph.storage.values import TableVersion

if TYPE_CHECKING:
    from omnigraph.ledger.store import GraphStore
    from omnigraph.storage.tables import TableStore

FORMAT = "omnigraph"


def register(session: SparkSession, *, push_down: bool = True) -> None:
    """Make the format known to a session, and the Python that plans it one that has this package. Filters are pushed
    down only if the session allows it: `push_down` tells it to. Each thread that reads or writes frames calls it."""
    context = context_of(session)
    if context is not None:
        settle_worker_python(context)
        require_python_for_planning(context)
        make_active(session)
    session.dataSource.register(OmniGraphDataSource)
    if push_down:
        _allow_push_down(session)


def context_of(session: SparkSession) -> Any:
    """The context of a session; None over Spark Connect, which has none."""
    return None if speaks_connect(session) else session.sparkContext


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
    """The rows of one table version as a DataFrame, partitioned by fragments.

    By the data source only where something needs it: filters to hand down, a Connect session, or rows without columns.
    Its rows cost Spark half as much again as those that tasks give back.
    """
    schema = tables.schema(table)
    wanted = checked_columns(schema, columns)
    plan = scan_plan(table, schema, tables.fragments(table))
    context = context_of(session)
    if context is not None and wanted and not push_down:
        return rows_frame(session, read_by_tasks(int(context.defaultParallelism), uri, plan, schema, wanted))
    return _planned_frame(session, uri, schema, wanted, plan, push_down=push_down)


def _planned_frame(
    session: SparkSession,
    uri: str,
    schema: pa.Schema,
    wanted: Sequence[str],
    plan: ScanPlan,
    *,
    push_down: bool = False,
) -> DataFrame:
    context = context_of(session)
    reader = session.read.format(FORMAT).schema(spark_schema(schema, wanted)).option("plan", plan.to_text())
    if context is not None:
        register(session, push_down=push_down)
        rows = rows_for_each_task(int(context.defaultParallelism), plan.rows)
        return reader.option("rowsPerPartition", rows).option("pushDown", push_down).load(uri)
    # A server of Connect finds the format by itself, whatever Python this is, and counts its cores when it plans.
    if push_down:
        _allow_push_down(session)
    return reader.option("pushDown", push_down).load(uri)


def _allow_push_down(session: SparkSession) -> None:
    session.conf.set("spark.sql.python.filterPushdown.enabled", "true")


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
    if not columns:
        raise BadRequest(f"No column is named; leave `columns` out to read all of them, or name some of {schema.names}")
    for name in columns:
        if columns.count(name) > 1:
            raise BadRequest(f"The column `{name}` is named twice")
        if name not in schema.names:
            hint = did_you_mean(name, schema.names)
            raise NotFound(f"There is no column `{name}`" + (f"; {hint}" if hint else f"; there are {schema.names}"))
    return list(columns)


class OmniGraphDataSource(DataSource):  # type: ignore[misc]  # PySpark has no types here
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
        self.feed_digest: str | None = None

    @property
    def uri(self) -> str:
        """Where the graph lies."""
        return graph_uri(self.options)

    @property
    def told(self) -> FrameOptions:
        """The options, checked."""
        return FrameOptions(self.options)

    @plain_errors
    def schema(self) -> StructType:
        """Binds the frame to a snapshot, which travels with this object from here on; or the columns of a stream."""
        # Whether it will be read at rest or as a stream is not known yet.
        told = FrameOptions(self.options, tuple(dict.fromkeys((*FRAME, *STREAM_OUT))))
        if told.names("startingFrom"):
            from omnigraph.spark.stream.feed_reader import feed_columns

            columns, self.feed_digest = feed_columns(self.uri, self.options)
            return columns
        schema = tables_of(told.uri).schema(self.resolve().table)
        settle_worker()
        return spark_schema(schema, checked_columns(schema, told.columns))

    @plain_errors
    def reader(self, schema: StructType) -> DataSourceReader:
        """A reader of the columns that the frame has."""
        told = self.told
        if self.plan is None and not told.get("plan"):
            self._check_given_schema(schema)
        plan = self.resolve()
        settle_worker()
        # The process that plans is told nothing of the cluster: as many tasks as this machine has cores, at least.
        rows = told.number("rowsPerPartition", rows_for_each_task(usable_cores(), plan.rows))
        push_down = told.choice("pushDown", ("false", "true")) == "true"
        make = FilteringReader if push_down else Reader
        return make(told.uri, plan, {field.name: field.nullable for field in schema}, rows)

    def _check_given_schema(self, given: StructType) -> None:
        """A schema that the caller gave chooses columns; it cannot change what they are."""
        stored = tables_of(self.uri).schema(self.resolve().table)
        for field, known in zip(given, spark_schema(stored, checked_columns(stored, given.fieldNames())), strict=True):
            if field.dataType != known.dataType:
                raise BadRequest(
                    f"The column `{field.name}` is of type {known.dataType.simpleString()} and the schema given says "
                    f"{field.dataType.simpleString()}; read it as it is and cast it in the query."
                )
            if stored.field(field.name).nullable and not field.nullable:
                raise BadRequest(
                    f"The column `{field.name}` may be null and the schema given says that it never is; read it as it "
                    "is and drop the rows without a value in the query."
                )

    @plain_errors
    def writer(self, schema: StructType, overwrite: bool) -> Any:
        """A writer that loads the frame's rows as one commit."""
        from omnigraph.spark.source.datasource_writer import Writer

        return Writer(self.told, schema.fieldNames(), overwrite)

    @plain_errors
    def streamReader(self, schema: StructType) -> Any:  # noqa: N802 - Spark's name
        """A reader of the change feed."""
        from omnigraph.spark.stream.feed_reader import FeedReader

        return FeedReader(self.uri, self.options, schema, self.feed_digest)

    @plain_errors
    def streamWriter(self, schema: StructType, overwrite: bool) -> Any:  # noqa: N802 - Spark's name
        """A writer that loads each micro-batch as one commit."""
        from omnigraph.spark.stream.sink import StreamWriter

        return StreamWriter(self.uri, self.options, schema.fieldNames(), overwrite)

    def resolve(self) -> ScanPlan:
        """The table version that the options name, found once."""
        if self.plan is None:
            given = self.options.get("plan")
            self.plan = plan_from_text(given) if given else self._look_up()
        return self.plan

    def _look_up(self) -> ScanPlan:
        from omnigraph.ledger.store import open_store

        told = self.told
        type_name, target = told.type_name, told.target
        store = open_store(told.uri, read_only=True)
        try:
            table = table_at(store, type_name, target, told.branch)
            return scan_plan(table, store.tables.schema(table), store.tables.fragments(table))
        finally:
            store.close()
