"""The Arrow types of result columns. Entities are structs of `@id` and their properties, without blobs and vectors."""

from __future__ import annotations

import pyarrow as pa

from omnigraph.query.ir import ResultColumn
from omnigraph.schema.arrow import arrow_type
from omnigraph.schema.catalog import Catalog, Property
from omnigraph.schema.types import EntityType, ValueType, VectorType, is_blob


def shown_properties(catalog: Catalog, table_key: str) -> tuple[Property, ...]:
    """The properties that `$x` shows."""
    graph_type = catalog.table(table_key)
    assert graph_type is not None
    return tuple(p for p in graph_type.properties if not is_blob(p.type) and not isinstance(p.type, VectorType))


def result_type(type_: ValueType, catalog: Catalog | None) -> pa.DataType:
    """The Arrow type of a result column."""
    if not isinstance(type_, EntityType):
        return arrow_type(type_)
    assert catalog is not None
    fields = [pa.field("@id", pa.utf8(), nullable=False)]
    fields += [pa.field(p.name, arrow_type(p.type)) for p in shown_properties(catalog, type_.table_key)]
    return pa.struct(fields)


def result_schema(columns: tuple[ResultColumn, ...], catalog: Catalog) -> pa.Schema:
    """The Arrow schema of a result."""
    return pa.schema([pa.field(c.name, result_type(c.type, catalog), nullable=c.nullable) for c in columns])
