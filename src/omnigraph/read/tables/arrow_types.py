"""The Arrow types of result columns.

Entities are structs of `@id`, for edges `@src` and `@dst`, and their properties without blobs and vectors.
"""

from __future__ import annotations

import pyarrow as pa

from omnigraph.query.ir import ResultColumn
from omnigraph.schema.arrow import arrow_type
from omnigraph.schema.catalog import Catalog, InterfaceProperty, Property
from omnigraph.schema.types import EntityType, ValueType, VectorType, is_blob


def shown_properties(catalog: Catalog, table_key: str) -> tuple[Property | InterfaceProperty, ...]:
    """The properties that `$x` shows: of several tables those that all of them have, of an interface its own."""
    kind, names = table_key.split(":", 1)
    properties: tuple[Property | InterfaceProperty, ...]
    if kind == "interface":
        properties = next(each.properties for each in catalog.interfaces if each.name == names)
    else:
        types = [catalog.table(f"{kind}:{name}") for name in names.split("|")]
        assert types[0] is not None
        properties = tuple(
            p
            for p in types[0].properties
            if all(t is not None and p.name in t.by_name and t.by_name[p.name].type == p.type for t in types)
        )
    return tuple(p for p in properties if not is_blob(p.type) and not isinstance(p.type, VectorType))


def shown_columns(catalog: Catalog, table_key: str) -> tuple[str, ...]:
    """The columns behind what `$x` shows besides its id and its type: the ends of an edge, then the properties."""
    ends = ("src", "dst") if _is_edge(table_key) else ()
    return (*ends, *(p.column for p in shown_properties(catalog, table_key)))


def _is_edge(table_key: str) -> bool:
    return table_key.startswith("edge:")


def shows_type(table_key: str) -> bool:
    """Whether `$x` shows its type: where it may be of several."""
    return table_key.startswith("interface:") or "|" in table_key


def result_type(type_: ValueType, catalog: Catalog | None) -> pa.DataType:
    """The Arrow type of a result column."""
    if not isinstance(type_, EntityType):
        return arrow_type(type_)
    assert catalog is not None
    fields = [pa.field("@id", pa.utf8(), nullable=False)]
    if shows_type(type_.table_key):
        fields.append(pa.field("@type", pa.utf8(), nullable=False))
    if _is_edge(type_.table_key):
        fields += [pa.field(name, pa.utf8(), nullable=False) for name in ("@src", "@dst")]
    fields += [pa.field(p.name, arrow_type(p.type)) for p in shown_properties(catalog, type_.table_key)]
    return pa.struct(fields)


def result_schema(columns: tuple[ResultColumn, ...], catalog: Catalog) -> pa.Schema:
    """The Arrow schema of a result."""
    return pa.schema([pa.field(c.name, result_type(c.type, catalog), nullable=c.nullable) for c in columns])
