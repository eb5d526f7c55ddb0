"""Compiled reads on Spark: the same IR, the same rows in the same order as in process."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa

from omnigraph.config import settings
from omnigraph.embed.provider import EmbeddingProvider
from omnigraph.query import ir
from omnigraph.query.bind import bind_parameters
from omnigraph.query.predicates import bound
from omnigraph.read.result.result import Result
from omnigraph.read.run import run_query as run_in_process
from omnigraph.read.search.query_texts import text_vector
from omnigraph.read.state.control import CancelToken, MemoryBudget, StopSign
from omnigraph.read.tables.arrow_types import result_schema, result_type
from omnigraph.read.tables.caches import caches_of
from omnigraph.read.tables.stored import StoredTables
from omnigraph.schema.types import EntityType
from omnigraph.spark.query.bindings import Bindings, Names, Variables, column
from omnigraph.spark.query.by_index import answered_by_indexes
from omnigraph.spark.query.conditions import Conditions
from omnigraph.spark.query.groups.scan_groups import ScanGroups
from omnigraph.spark.query.identities import Identities, with_rows_counted
from omnigraph.spark.query.joins.stopping import Stopping
from omnigraph.spark.query.lowering import Lowering, entity_variable
from omnigraph.spark.query.needs import Needs
from omnigraph.spark.query.searching import Searching
from omnigraph.spark.query.snapshot_reads import SnapshotReads
from omnigraph.spark.query.tables import Tables
from omnigraph.spark.session.progress import run_job, stopped_by
from omnigraph.spark.spread import told_in_our_words
from omnigraph.spark.types import from_travelling
from omnigraph.write.progress import ProgressCallback

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from omnigraph.ledger.store import GraphStore
    from omnigraph.ledger.values import Snapshot
    from omnigraph.schema.catalog import Catalog

    Parts: TypeAlias = Column | dict[str, Column]
    """What a returned column is made of: one Spark column, or for an entity one for each of its fields."""


def query_frame(
    session: SparkSession,
    store: GraphStore,
    snapshot: Snapshot,
    query: ir.ReadQuery,
    values: Mapping[str, Any] | None = None,
    *,
    provider: EmbeddingProvider | None = None,
) -> DataFrame:
    """The result of a query as a Spark frame, in its order. Entities are structs of `@id` and their properties."""
    from pyspark.sql import functions as f

    run = _Run(session, store, snapshot, query, values or {}, provider)
    frame, columns = run.lowered()
    made = []
    for name, parts in columns.items():
        if isinstance(parts, dict):
            whole = f.when(parts["@id"].isNotNull(), f.struct(*[part.alias(field) for field, part in parts.items()]))
            made.append(whole.alias(name))
        else:
            made.append(parts.alias(name))
    return frame.select(*made)


def run_query(
    session: SparkSession,
    store: GraphStore,
    snapshot: Snapshot,
    query: ir.ReadQuery,
    values: Mapping[str, Any] | None = None,
    *,
    cancel: CancelToken | None = None,
    memory_limit: int | None = None,
    timeout: float | None = None,
    provider: EmbeddingProvider | None = None,
    progress: ProgressCallback | bool | None = None,
) -> Result:
    """Run a query and bring its rows back, typed as the in-process engine types them. `timeout` is in seconds.

    `memory_limit` is for what comes back; what tasks may hold is said by Spark's own settings.
    """
    stop = StopSign(cancel, timeout)
    memory = MemoryBudget(memory_limit if memory_limit is not None else settings().query_memory)
    run = _Run(session, store, snapshot, query, values or {}, provider)
    if answered_by_indexes(query, run.catalog, run.reader()):
        return run_in_process(
            store,
            snapshot,
            run.catalog,
            query,
            values,
            provider=provider,
            cancel=cancel,
            memory_limit=memory_limit,
            timeout=timeout,
        )
    described = f"query {query.name}"
    with (
        run_job(session, described, progress, source=store.uri) as job,
        stopped_by(stop, job),
        told_in_our_words(f"running `{job.shown}`", only_reads=True),
    ):
        job.step("running")
        stop.check()
        frame, columns = run.lowered(at_once=True)
        flat: list[Column] = []
        for parts in columns.values():
            flat += parts.values() if isinstance(parts, dict) else [parts]
        table = frame.select(*[part.alias(f"o{position}") for position, part in enumerate(flat)]).toArrow()
    memory.expect("the rows of the result", table.nbytes)
    return Result.from_table(query.columns, _assembled(table, result_schema(query.columns, run.catalog)))


class _Run:
    """One query over one snapshot."""

    def __init__(
        self,
        session: SparkSession,
        store: GraphStore,
        snapshot: Snapshot,
        query: ir.ReadQuery,
        values: Mapping[str, Any],
        provider: EmbeddingProvider | None,
    ) -> None:
        self.session = session
        self.store = store
        self.snapshot = snapshot
        self.query = query
        self.catalog: Catalog = store.catalog(snapshot.schema_digest)
        self.values = bind_parameters(query.parameters, values)
        self.now = datetime.datetime.now(datetime.UTC)
        self.provider = provider
        self._reads = SnapshotReads(session, store, snapshot)

    def lowered(self, *, at_once: bool = False) -> tuple[DataFrame, dict[str, Parts]]:
        """The rows below the projection, and what each returned column is made of, in their order. `at_once`: parts of
        the query may be run on the way."""
        names = Names()
        variables = Variables(self.query.all_variables or self.query.variables)
        query = replace(self.query, root=with_rows_counted(self.query.root))
        needs = Needs(query, self._shown)
        conditions = Conditions(query.root, self._bound)
        identities = Identities(query.root, needs, conditions)
        tables = Tables(self._reads.rows, self.catalog, variables, needs, conditions, identities, names)
        lowering = Lowering(
            tables,
            lambda: self.session.range(1).select(),
            self._bound,
            Searching(
                self._reads.rows, self.reader(), caches_of(self.store), self.catalog, variables, self._query_vector
            ),
            names,
            ScanGroups(tables, self._reads, self._bound, names, at_once=at_once),
            Stopping(self.session),
        )
        rows = lowering.block(query.root.input)
        wanted = query.root.columns
        entities = {
            each.name: entity_variable(each.expr, rows) if isinstance(each.type, EntityType) else None
            for each in wanted
        }
        values = [each for each in wanted if entities[each.name] is None]
        rows, made = lowering.columns(rows, values)
        columns: dict[str, Parts] = {each.name: value for each, value in zip(values, made, strict=True)}
        for each in wanted:
            var = entities[each.name]
            if var is not None and isinstance(each.type, EntityType):
                columns[each.name] = _entity_parts(rows, variables, var, self._shown(each.type))
        return rows.frame, {each.name: columns[each.name] for each in wanted}

    def _shown(self, type_: EntityType) -> pa.StructType:
        return result_type(type_, self.catalog)

    def _bound(self, expr: ir.Expr) -> ir.Expr:
        return bound(expr, self.values, self.now)

    def reader(self) -> StoredTables:
        """The driver's own way to the tables, for what their indexes say."""
        return StoredTables(self.store.tables, self.snapshot.tables, caches_of(self.store))

    def _query_vector(self, ranking: ir.Nearest, value: Any) -> Sequence[float]:
        if not isinstance(value, str):
            vector: Sequence[float] = value
            return vector
        return text_vector(value, ranking, ranking.table_key, self.catalog, self.provider, self.reader(), {})


def _entity_parts(rows: Bindings, variables: Variables, var: str, shown: pa.StructType) -> dict[str, Column]:
    own = {"@id": variables.id(rows, var), "@type": variables.type_of(rows, var)}
    return {field.name: own[field.name] if field.name in own else _part(rows, var, field) for field in shown}


def _part(rows: Bindings, var: str, field: pa.Field) -> Column:
    return column(rows.place(var, field.name, field.type))


def _assembled(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """Flat columns from Spark as the columns that the query promises, entities put together again."""
    arrays = []
    position = 0
    for field in schema:
        parts = list(field.type) if pa.types.is_struct(field.type) else [field]
        flat = table.select(range(position, position + len(parts))).rename_columns([f"p{i}" for i in range(len(parts))])
        target = pa.schema([pa.field(f"p{i}", part.type) for i, part in enumerate(parts)])
        typed = from_travelling(flat, target).combine_chunks()
        columns = [_one_array(column) for column in typed.columns]
        if pa.types.is_struct(field.type):
            missing = columns[0].is_null() if field.nullable else None
            arrays.append(pa.StructArray.from_arrays(columns, fields=parts, mask=missing))
        else:
            arrays.append(columns[0])
        position += len(parts)
    return pa.Table.from_arrays(arrays, schema=schema)


def _one_array(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks or [pa.array([], column.type)])
