"""Blobs: written with rows, read in parts, kept through every kind of write."""

from __future__ import annotations

import pyarrow as pa
import pytest

from omnigraph.errors import BadRequest, NotFound
from omnigraph.storage.reading.blobs import blob_array, blob_field, is_blob_field, with_blobs_as_written
from omnigraph.storage.tables import TableStore
from omnigraph.storage.values import TableVersion

SCHEMA = pa.schema([pa.field("id", pa.string()), pa.field("n", pa.int64()), blob_field("file")])
CONTENT = bytes(range(256)) * 1000


def rows(*values: tuple[str, bytes | None]) -> pa.Table:
    ids, blobs = [value[0] for value in values], [value[1] for value in values]
    return pa.table({"id": ids, "n": [1] * len(ids), "file": blob_array(blobs)}, schema=SCHEMA)


def row_id(tables: TableStore, table: TableVersion, name: str) -> int:
    found: int = tables.take_ids(table, [name], ["id"], with_row_id=True)["_rowid"][0].as_py()
    return found


def test_blobs_are_read_in_ranges(tables: TableStore) -> None:
    table = tables.create("t", SCHEMA, rows=rows(("a", CONTENT), ("empty", b""), ("null", None)))
    a = row_id(tables, table, "a")
    assert tables.blob_size(table, a, "file") == len(CONTENT)
    assert tables.read_blob(table, a, "file") == CONTENT
    assert tables.read_blob(table, a, "file", 1000, 1010) == CONTENT[1000:1010]
    assert tables.read_blob(table, a, "file", 255_990, 999_999) == CONTENT[255_990:]
    assert tables.read_blob(table, a, "file", len(CONTENT)) == b""
    empty, null = row_id(tables, table, "empty"), row_id(tables, table, "null")
    assert (tables.blob_size(table, empty, "file"), tables.read_blob(table, empty, "file")) == (0, b"")
    assert (tables.blob_size(table, null, "file"), tables.read_blob(table, null, "file")) == (None, None)


def test_wrong_ranges_rows_and_columns_are_refused(tables: TableStore) -> None:
    table = tables.create("t", SCHEMA, rows=rows(("a", b"12345")))
    for start, end in ((-1, 2), (6, 7), (3, 2)):
        with pytest.raises(BadRequest, match="not within the blob of 5 bytes"):
            tables.read_blob(table, 0, "file", start, end)
    with pytest.raises(NotFound):
        tables.read_blob(table, 99, "file")
    for column in ("n", "nothing"):
        with pytest.raises(BadRequest, match="not a blob column"):
            tables.read_blob(table, 0, column)


def test_scans_give_descriptors_or_bytes(tables: TableStore) -> None:
    table = tables.create("t", SCHEMA, rows=rows(("a", b"12345"), ("b", None)))
    (described, nothing) = tables.scan_table(table)["file"].to_pylist()
    assert described["size"] == 5
    assert nothing is None
    assert tables.scan_table(table, blobs="bytes")["file"].to_pylist() == [b"12345", None]


def test_blobs_survive_append_upsert_delete_and_fork(tables: TableStore) -> None:
    table = tables.create("t", SCHEMA, rows=rows(("a", CONTENT), ("b", b"b")))
    fork = tables.create_fork(table, "f-1")
    fork = tables.commit_staged(tables.stage_append(fork, rows(("c", CONTENT[::-1]))), "op")
    fork = tables.commit_staged(tables.stage_change(fork, rows(("b", b"new")), ["a"]), "op")
    found = tables.scan_table(fork, columns=["id", "file"], blobs="bytes").to_pylist()
    assert {row["id"]: row["file"] for row in found} == {"b": b"new", "c": CONTENT[::-1]}
    c = row_id(tables, fork, "c")
    assert tables.read_blob(fork, c, "file", 0, 4) == CONTENT[::-1][:4]


def test_rows_read_as_bytes_can_be_written_back(tables: TableStore) -> None:
    table = tables.create("t", SCHEMA, rows=rows(("a", CONTENT), ("b", None)))
    read = tables.scan_table(table, blobs="bytes")
    changed = read.set_column(1, "n", pa.array([5, 5]))
    written = with_blobs_as_written(changed, tables.schema(table))
    table = tables.commit_staged(tables.stage_upsert(table, written), "op")
    found = tables.scan_table(table, blobs="bytes").to_pylist()
    assert [(row["n"], row["file"]) for row in found] == [(5, CONTENT), (5, None)]


def test_blob_fields_are_recognised(tables: TableStore) -> None:
    table = tables.create("t", SCHEMA)
    assert [is_blob_field(field) for field in tables.schema(table)] == [False, False, True]
