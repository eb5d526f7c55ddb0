"""Blob columns: large values that are stored beside the rows and can be read in parts."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from lance.blob import BlobType
from lance.blob import blob_array as lance_blob_array
from lance.blob import blob_field as lance_blob_field

from omnigraph.errors import BadRequest, NotFound
from omnigraph.storage.handles.handles import Handles
from omnigraph.storage.lance_errors import lance_errors
from omnigraph.storage.values import TableVersion


def blob_field(name: str, *, nullable: bool = True) -> pa.Field:
    """The Arrow field of a blob column."""
    return lance_blob_field(name, nullable=nullable)


def blob_array(values: Sequence[bytes | None]) -> pa.Array:
    """Bytes as the values of a blob column."""
    return lance_blob_array(list(values))


def is_blob_field(field: pa.Field) -> bool:
    """Whether a field of a table's schema is a blob column."""
    return isinstance(field.type, BlobType)


def with_blobs_as_written(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Rows that were read with `blobs="bytes"` in the form that can be written back to a table of this schema."""
    for index, field in enumerate(schema):
        if (
            is_blob_field(field)
            and field.name in rows.schema.names
            and rows.schema.field(field.name).type != field.type
        ):
            position = rows.schema.get_field_index(field.name)
            values = rows.column(position).to_pylist()
            rows = rows.set_column(position, schema.field(index), blob_array(values))
    return rows


def blob_size(handles: Handles, table: TableVersion, row_id: int, column: str) -> int | None:
    """The size of a blob in bytes, or None when the value is null."""
    handle = handles.at(table)
    _checked(handle.schema, table, column)
    with lance_errors(f"reading the blob `{column}` of", table):
        try:
            found = handle.take_blobs(column, ids=[row_id])
        except ValueError as error:
            raise NotFound(f"{table} has no row with the row id {row_id}") from error
        return found[0].size() if found and found[0] is not None else None


def read_blob(
    handles: Handles, table: TableVersion, row_id: int, column: str, start: int = 0, end: int | None = None
) -> bytes | None:
    """The bytes of a blob from `start` up to `end` (its whole rest when None). Reads only those; null gives None."""
    size = blob_size(handles, table, row_id, column)
    if size is None:
        return None
    stop = size if end is None else min(end, size)
    if not 0 <= start <= size or (end is not None and end < start):
        raise BadRequest(f"the range {start} to {end} is not within the blob of {size} bytes")
    if stop <= start:
        return b""
    with lance_errors(f"reading the blob `{column}` of", table):
        found = handles.at(table).read_blob_ranges(column, [(row_id, start, stop - start)], selector="ids")
    data: bytes = found[0][2]
    return data


def _checked(schema: pa.Schema, table: TableVersion, column: str) -> None:
    index = schema.get_field_index(column)
    if index < 0 or not is_blob_field(schema.field(index)):
        raise BadRequest(f"`{column}` is not a blob column of {table.location}")
