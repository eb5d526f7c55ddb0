"""The types of a graph's tables as Spark knows them, and batches in both directions.

Spark has no unsigned integers and no fixed-size lists: U32 travels as a long, U64 as decimal(20, 0), a vector as an
array of floats. Blobs travel as binary. Everything else is the same on both sides.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from omnigraph.schema.arrow import PROPERTY_ID
from omnigraph.schema.types import ListType, PropertyType, Scalar, ScalarType, VectorType

_U64 = pa.decimal128(20, 0)


def travelling_type(type_: pa.DataType) -> pa.DataType:
    """The Arrow type in which values of a table's column cross to Spark."""
    if pa.types.is_uint64(type_):
        return _U64
    if pa.types.is_uint8(type_) or pa.types.is_uint16(type_) or pa.types.is_uint32(type_):
        return pa.int64()
    if pa.types.is_fixed_size_list(type_) or pa.types.is_list(type_) or pa.types.is_large_list(type_):
        return pa.list_(pa.field("element", travelling_type(type_.value_type)))
    if pa.types.is_struct(type_):
        return pa.struct([pa.field(field.name, travelling_type(field.type)) for field in type_])
    if pa.types.is_large_string(type_):
        return pa.string()
    if pa.types.is_large_binary(type_):
        return pa.binary()
    if pa.types.is_timestamp(type_):
        return pa.timestamp("us", "UTC")
    return type_


def travelling_schema(schema: pa.Schema, columns: Sequence[str]) -> pa.Schema:
    """The columns in which rows of a table cross to Spark.

    A column that is never null says so: Spark then asks no value whether it is.
    """
    types = [(name, travelling_type(column_type(schema, name))) for name in columns]
    return pa.schema([pa.field(name, type_, nullable=schema.field(name).nullable) for name, type_ in types])


def column_type(schema: pa.Schema, name: str) -> pa.DataType:
    """The type of a column's values as Python sees them: a blob is its bytes."""
    from omnigraph.storage.reading.blobs import is_blob_field

    field = schema.field(name)
    return pa.binary() if is_blob_field(field) else field.type


def spark_schema(schema: pa.Schema, columns: Sequence[str]) -> Any:
    """The columns of a frame that may be written to as well: Spark refuses to INSERT without what is never null.

    An id is made when it is missing, and a property can have a default. The ends of an edge have neither.
    """
    from pyspark.sql.pandas.types import from_arrow_schema

    fields = travelling_schema(schema, columns)
    return from_arrow_schema(pa.schema([field.with_nullable(_can_be_left_out(schema, field)) for field in fields]))


def _can_be_left_out(schema: pa.Schema, field: pa.Field) -> bool:
    return field.nullable or field.name == "id" or PROPERTY_ID.encode() in (schema.field(field.name).metadata or {})


def to_travelling(batch: pa.RecordBatch, target: pa.Schema) -> pa.RecordBatch:
    """A batch of a table in the form in which it crosses to Spark."""
    columns = [(batch.column(field.name), field.type) for field in target]
    arrays = [column if column.type == type_ else column.cast(type_) for column, type_ in columns]
    return pa.RecordBatch.from_arrays(arrays, schema=target)


def from_travelling(table: pa.Table, target: pa.Schema) -> pa.Table:
    """Rows that came back from Spark, in the types that the graph knows."""
    arrays = [table.column(field.name).cast(field.type) for field in target]
    return pa.Table.from_arrays(arrays, schema=target)


_SPARK_NAMES = {
    Scalar.STRING: "string",
    Scalar.BLOB: "binary",
    Scalar.BOOL: "boolean",
    Scalar.I32: "int",
    Scalar.I64: "bigint",
    Scalar.U32: "bigint",
    Scalar.U64: "decimal(20,0)",
    Scalar.F32: "float",
    Scalar.F64: "double",
    Scalar.DATE: "date",
    # `timestamp` alone is what the session says it is: with or without a zone.
    Scalar.DATETIME: "timestamp_ltz",
}


def spark_type_name(type_: PropertyType) -> str:
    """The name of a property's type in Spark's SQL."""
    match type_:
        case ScalarType(scalar=scalar):
            return _SPARK_NAMES[scalar]
        case VectorType():
            return "array<float>"
        case ListType(item=item):
            return f"array<{_SPARK_NAMES[item]}>"
        case _:
            return "string"
