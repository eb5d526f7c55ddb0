"""Rows as they are compared: a relation of one table version, blobs replaced by a digest of their bytes."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from omnigraph.schema.catalog import GraphType
from omnigraph.schema.types import is_blob
from omnigraph.storage.values import TableVersion

if TYPE_CHECKING:
    from omnigraph.ledger.store import GraphStore


def compared_columns(graph_type: GraphType) -> tuple[str, ...]:
    """The columns of a row that make it what it is, `id` first."""
    ends = ("src", "dst") if graph_type.kind == "edge" else ()
    return ("id", *ends, *(p.name for p in graph_type.properties))


def blob_columns(graph_type: GraphType) -> tuple[str, ...]:
    """The columns that hold blobs."""
    return tuple(p.name for p in graph_type.properties if is_blob(p.type))


def image_reader(
    store: GraphStore, table: TableVersion, graph_type: GraphType, ids: pa.ChunkedArray | None
) -> pa.RecordBatchReader | pa.Table:
    """The rows with these ids (all rows when None), with blobs as their bytes when the type has some."""
    columns = list(compared_columns(graph_type))
    blobs = "bytes" if blob_columns(graph_type) else "descriptors"
    if ids is None:
        return store.tables.scan(table, columns=columns, blobs=blobs)
    return store.tables.take_ids(table, ids, columns, blobs=blobs)


def python_rows(batches: Sequence[pa.RecordBatch] | pa.Table) -> Iterator[dict[str, Any]]:
    """Rows as plain Python values."""
    for batch in batches.to_batches() if isinstance(batches, pa.Table) else batches:
        yield from batch.to_pylist()


def digest_rows(
    store: GraphStore, table: TableVersion, graph_type: GraphType, ids: pa.ChunkedArray
) -> dict[str, dict[str, Any]]:
    """The rows with these ids as plain values by id, blobs as digests of their bytes."""
    blobs = blob_columns(graph_type)
    rows: dict[str, dict[str, Any]] = {}
    for row in python_rows(image_reader(store, table, graph_type, ids)):
        for name in blobs:
            if row[name] is not None:
                row[name] = "sha256:" + hashlib.sha256(row[name]).hexdigest()
        rows[row["id"]] = row
    return rows
