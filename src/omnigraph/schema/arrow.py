"""The physical tables of types: Arrow types of properties and the schema of each type's table."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from omnigraph.schema.catalog import OWN_COLUMNS, EdgeType, GraphType
from omnigraph.schema.types import EnumType, ListType, PropertyType, Scalar, ScalarType, VectorType, is_blob

PROPERTY_ID = "omnigraph.property_id"
"""Metadata key of a field: the stable id of the property that the column holds."""

BLOB_METADATA = {"lance-encoding:blob": "true"}
"""What makes Lance keep a large binary column as blobs, out of line and read lazily."""

MADE_HERE_METADATA = {"lance-encoding:compression": "lz4"}
"""What makes Lance look for repetitions in a column of ids that are made here. Those of one call begin alike and count
up: they take a fifth less room than by Lance's own choice, half the time to write, and less to read."""

_SCALARS = {
    Scalar.STRING: pa.utf8(),
    Scalar.BLOB: pa.large_binary(),
    Scalar.BOOL: pa.bool_(),
    Scalar.I32: pa.int32(),
    Scalar.I64: pa.int64(),
    Scalar.U32: pa.uint32(),
    Scalar.U64: pa.uint64(),
    Scalar.F32: pa.float32(),
    Scalar.F64: pa.float64(),
    Scalar.DATE: pa.date32(),
    Scalar.DATETIME: pa.timestamp("us", tz="UTC"),
}

BlobField = Callable[[str, bool], pa.Field]


def arrow_type(type_: PropertyType) -> pa.DataType:
    """The Arrow type that values of a property have."""
    if isinstance(type_, ScalarType):
        return _SCALARS[type_.scalar]
    if isinstance(type_, EnumType):
        return pa.utf8()
    if isinstance(type_, VectorType):
        return pa.list_(pa.float32(), type_.dim)
    if isinstance(type_, ListType):
        return pa.list_(_SCALARS[type_.item])
    raise TypeError(f"not the type of a property: {type_!r}")


def blob_field(name: str, nullable: bool) -> pa.Field:
    """The column of a blob as it is written: large binary, marked for Lance."""
    return pa.field(name, pa.large_binary(), nullable=nullable, metadata=BLOB_METADATA)


def shown_columns(graph_type: GraphType) -> dict[str, str]:
    """The columns of a type's table by what they are called outside: properties by name, our own as `id`, `src`, `dst`.

    Where a property has such a name, ours is `@id`, `@src` or `@dst`.
    """
    taken = {p.name.lower() for p in graph_type.properties}
    own = OWN_COLUMNS if isinstance(graph_type, EdgeType) else OWN_COLUMNS[:1]
    shown = {column: f"@{column}" if column in taken else column for column in own}
    return shown | {p.column: p.name for p in graph_type.properties}


def table_schema(graph_type: GraphType, blob_field: BlobField = blob_field) -> pa.Schema:
    """The columns of a type's table: `id`, for edges `src` and `dst`, then those of the properties in catalog order.

    Every property's field carries its stable id in its metadata. `blob_field` can be replaced by whoever stores blobs
    in another shape.
    """
    made_here = None if graph_type.key else MADE_HERE_METADATA
    fields = [pa.field("id", pa.utf8(), nullable=False, metadata=made_here)]
    if isinstance(graph_type, EdgeType):
        fields += [pa.field("src", pa.utf8(), nullable=False), pa.field("dst", pa.utf8(), nullable=False)]
    for property_ in graph_type.properties:
        if is_blob(property_.type):
            field = blob_field(property_.column, property_.nullable)
        else:
            field = pa.field(property_.column, arrow_type(property_.type), nullable=property_.nullable)
        metadata = {key.decode(): value.decode() for key, value in (field.metadata or {}).items()}
        fields.append(field.with_metadata({**metadata, PROPERTY_ID: property_.id}))
    return pa.schema(fields)
