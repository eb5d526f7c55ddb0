"""Compiled reads on Spark: the same IR, the same rows in the same order as in process."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from omnigraph.embed.provider import EmbeddingProvider
from omnigraph.errors import BadRequest
from omnigraph.ledger.snapshots import table_of
from omnigraph.query import ir
from omnigraph.query.bind import bind_parameters
from omnigraph.query.predicates import bound
from omnigraph.read.result.result import Result
from omnigraph.read.tables.arrow_types import result_schema, shown_properties
from omnigraph.schema.types import EntityType
from omnigraph.spark.lowering import Bindings, Lowering
from omnigraph.spark.needs import Needs
from omnigraph.spark.progress import run_job
from omnigraph.spark.searching import Searching
from omnigraph.spark.spread import told_in_our_words
from omnigraph.spark.types import from_travelling
from omnigraph.write.progress import ProgressCallback

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from omnigraph.ledger.store import GraphStore
    from omnigraph.ledger.values import Snapshot
    from omnigraph.schema.catalog import Catalog


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
    rows, columns = run.lowered()
    made = []
    for column in query.columns:
        parts = columns[column.name]
        if isinstance(column.type, EntityType):
            whole = f.struct(*[part.alias(name) for name, part in parts])
            made.append(whole.alias(column.name))
        else:
            made.append(parts[0][1].alias(column.name))
    return rows.frame.select(*made)


def run_query(
    session: SparkSession,
    store: GraphStore,
    snapshot: Snapshot,
    query: ir.ReadQuery,
    values: Mapping[str, Any] | None = None,
    *,
    provider: EmbeddingProvider | None = None,
    progress: ProgressCallback | bool | None = None,
) -> Result:
    """Run a query and bring its rows back, typed as the in-process engine types them."""
    run = _Run(session, store, snapshot, query, values or {}, provider)
    with run_job(session, f"query {query.name}", progress) as job, told_in_our_words():
        job.step("running")
        rows, columns = run.lowered()
        flat = [part for column in query.columns for _, part in columns[column.name]]
        names = [f"o{position}" for position in range(len(flat))]
        table = rows.frame.select(*flat).toDF(*names).toArrow()
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

    def lowered(self) -> tuple[Bindings, dict[str, list[tuple[str, Column]]]]:
        """The rows below the projection, and the parts of each returned column by its name."""
        entity_columns = {
            key: [p.column for p in shown_properties(self.catalog, key)]
            for key in {variable.table_key for variable in self.query.variables}
        }
        lowering = Lowering(
            self._frame,
            self.session.range(1).select(),
            Needs(self.query, entity_columns),
            lambda expr: bound(expr, self.values, self.now),
            Searching(self._frame, self._query_vector),
        )
        rows = lowering.lower(self.query.root.input)
        tables = {variable.name: variable.table_key for variable in self.query.variables}
        columns: dict[str, list[tuple[str, Column]]] = {}
        for column in self.query.root.columns:
            var = _entity_variable(column.expr, rows)
            if var is None:
                columns[column.name] = [(column.name, lowering.column(rows, column.expr, column.type))]
            else:
                columns[column.name] = _entity_parts(rows, var, entity_columns[tables[var]])
        return rows, columns

    def _frame(self, table_key: str, columns: Sequence[str]) -> DataFrame:
        from omnigraph.spark.datasource import table_frame

        pin = self.snapshot.pin(table_key)
        distinct = list(dict.fromkeys(columns))
        frame = table_frame(self.session, self.store.uri, self.store.tables, table_of(pin), distinct)
        return frame if distinct == list(columns) else frame.select(*columns)

    def _query_vector(self, ranking: ir.Nearest, value: Any) -> Sequence[float]:
        if not isinstance(value, str):
            vector: Sequence[float] = value
            return vector
        if self.provider is None:
            raise BadRequest(
                f"nearest() on `{ranking.property}` got a text, and the graph has no embedding provider; "
                "configure one, or pass a vector"
            )
        graph_type = self.catalog.table(ranking.table_key)
        embedded = graph_type.by_name[ranking.property].embed if graph_type is not None else None
        model = embedded.model if embedded is not None else None
        return self.provider.embed([value], dim=ranking.dim, model=model)[0]


def _entity_variable(expr: ir.Expr, rows: Bindings) -> str | None:
    if isinstance(expr, ir.Entity):
        return expr.var
    return rows.entities.get(expr.name) if isinstance(expr, ir.ColumnRef) else None


def _entity_parts(rows: Bindings, var: str, properties: Sequence[str]) -> list[tuple[str, Column]]:
    from pyspark.sql import functions as f

    parts = [("@id", f.col(rows.id(var)))]
    return parts + [(name, f.col(rows.places[var, name])) for name in properties]


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
        arrays.append(
            pa.StructArray.from_arrays(columns, fields=parts) if pa.types.is_struct(field.type) else columns[0]
        )
        position += len(parts)
    return pa.Table.from_arrays(arrays, schema=schema)


def _one_array(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks or [pa.array([], column.type)])
