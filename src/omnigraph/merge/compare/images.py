"""Rows as they are compared: blobs are replaced by a digest of their bytes before anything keeps them.

Rows are read in pieces, by look-ups where few are wanted and by one scan where they are a good part of the table, so
that however many rows are compared, only a piece of them is in memory here.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.config import settings
from omnigraph.merge.compare.brought_over import brought_over, shared_part
from omnigraph.schema.arrow import arrow_type, shown_columns
from omnigraph.schema.catalog import GraphType
from omnigraph.schema.types import VectorType, is_blob
from omnigraph.storage.constants import IDS_PER_INDEX_LOOKUP, SCAN_SHARE
from omnigraph.storage.values import TableVersion

if TYPE_CHECKING:
    from omnigraph.ledger.store import GraphStore

ROWS_PER_TEST = 65_536
"""Rows of a scan that are tested at once for being wanted: each test hashes all wanted ids anew."""


def compared_columns(graph_type: GraphType) -> tuple[str, ...]:
    """The columns of a row that make it what it is, `id` first."""
    ends = ("src", "dst") if graph_type.kind == "edge" else ()
    return ("id", *ends, *(p.column for p in graph_type.properties))


def blob_columns(graph_type: GraphType) -> tuple[str, ...]:
    """The columns that hold blobs."""
    return tuple(p.column for p in graph_type.properties if is_blob(p.type))


def shown_row(graph_type: GraphType, row: dict[str, Any] | None) -> dict[str, Any] | None:
    """A row by the names that its columns have outside."""
    names = shown_columns(graph_type)
    return None if row is None else {names[column]: value for column, value in row.items()}


def whole_rows(
    store: GraphStore,
    table: TableVersion,
    graph_type: GraphType,
    ids: pa.Array | None,
    stored: GraphType | None = None,
    *,
    with_blobs: bool = True,
) -> Iterator[pa.Table]:
    """The rows with these ids (all rows when None) in pieces and in no particular order, blobs as bytes or left out.

    `stored` is the type that the table has, when that is another state of it: rows are brought to `graph_type`.
    """
    if stored is not None and stored.properties != graph_type.properties:
        shared = shared_part(stored, graph_type)
        for rows in whole_rows(store, table, shared, ids, with_blobs=with_blobs):
            yield brought_over(rows, shared, graph_type)
        return
    left_out = () if with_blobs else blob_columns(graph_type)
    columns = [column for column in compared_columns(graph_type) if column not in left_out]
    blobs = "bytes" if with_blobs and blob_columns(graph_type) else "descriptors"
    if ids is None:
        for batch in store.tables.scan(table, columns=columns, blobs=blobs):
            yield pa.Table.from_batches([batch])
        return
    if not _is_good_part(store, table, ids):
        step = min(settings().merge_stage_batch_rows, IDS_PER_INDEX_LOOKUP)
        for start in range(0, len(ids), step):
            yield store.tables.take_ids(table, ids.slice(start, step), columns, blobs=blobs)
        return
    for part in _parts(store.tables.scan(table, columns=columns, blobs=blobs)):
        yield part.filter(pc.is_in(part["id"], value_set=ids))


def image_schema(graph_type: GraphType) -> pa.Schema:
    """The columns of rows that are compared: blobs are digests, vectors are lists."""
    ends = ("src", "dst") if graph_type.kind == "edge" else ()
    fields = [pa.field(name, pa.utf8()) for name in ("id", *ends)]
    for property_ in graph_type.properties:
        type_ = pa.utf8() if is_blob(property_.type) else arrow_type(property_.type)
        fields.append(pa.field(property_.column, pa.list_(pa.float32()) if _is_vector(property_.type) else type_))
    return pa.schema(fields)


def images(
    store: GraphStore,
    table: TableVersion,
    graph_type: GraphType,
    ids: pa.Array | None,
    stored: GraphType | None = None,
) -> Iterator[pa.RecordBatch]:
    """The rows with these ids (all rows when None) as they are compared; `stored` as in `whole_rows`."""
    schema, blobs = image_schema(graph_type), blob_columns(graph_type)
    for rows in whole_rows(store, table, graph_type, ids, stored):
        for name in blobs:
            position = rows.schema.get_field_index(name)
            digests = pa.array([digest(value.as_py()) for value in rows.column(position)], pa.utf8())
            rows = rows.set_column(position, name, digests)
        yield from rows.select(schema.names).cast(schema).to_batches()


def digest(value: bytes | None) -> str | None:
    """What stands for a blob in comparisons and in changes that are shown."""
    return None if value is None else "sha256:" + hashlib.sha256(value).hexdigest()


def digest_rows(
    store: GraphStore, table: TableVersion, graph_type: GraphType, ids: pa.Array, stored: GraphType | None = None
) -> dict[str, dict[str, Any]]:
    """The rows with these ids as plain values by id, blobs as digests of their bytes; `stored` as in `whole_rows`."""
    return {row["id"]: row for batch in images(store, table, graph_type, ids, stored) for row in batch.to_pylist()}


def _is_good_part(store: GraphStore, table: TableVersion, ids: pa.Array) -> bool:
    return len(ids) > IDS_PER_INDEX_LOOKUP and len(ids) > SCAN_SHARE * store.tables.count(table)


def _parts(reader: pa.RecordBatchReader) -> Iterator[pa.Table]:
    held: list[pa.RecordBatch] = []
    for batch in reader:
        held.append(batch)
        if sum(one.num_rows for one in held) >= ROWS_PER_TEST:
            yield pa.Table.from_batches(held)
            held = []
    if held:
        yield pa.Table.from_batches(held)


def _is_vector(type_: Any) -> bool:
    return isinstance(type_, VectorType)
