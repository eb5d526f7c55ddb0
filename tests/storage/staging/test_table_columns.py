"""Column changes: one tagged transaction, no data rewritten, lineage and indexes kept."""

from __future__ import annotations

import pyarrow as pa
import pytest

from omnigraph.errors import BadRequest
from omnigraph.storage.layout.indexes import IndexKind
from omnigraph.storage.reading.blobs import blob_array, blob_field
from omnigraph.storage.reading.filters import eq
from omnigraph.storage.tables import TableStore
from tests.storage.conftest import PEOPLE, people


def test_add_rename_drop_in_one_transaction(tables: TableStore) -> None:
    table = tables.create("t", PEOPLE, rows=people("a", "b", age=3))
    new = [
        pa.field("note", pa.string()),
        pa.field("tags", pa.list_(pa.string())),
        pa.field("v", pa.list_(pa.float32(), 2)),
    ]
    landed = tables.commit_staged(tables.stage_columns(table, add=new, rename={"age": "years"}), "op")
    assert landed.version == 2
    assert tables.schema(landed).names == ["id", "years", "note", "tags", "v"]
    assert tables.scan_table(landed).to_pylist()[0] == {"id": "a", "years": 3, "note": None, "tags": None, "v": None}
    dropped = tables.commit_staged(tables.stage_drop_columns(landed, ["years", "tags"]), "op")
    assert tables.schema(dropped).names == ["id", "note", "v"]
    assert tables.schema(table) == PEOPLE


def test_no_data_is_rewritten_and_lineage_stays(tables: TableStore) -> None:
    table = tables.create("t", PEOPLE, rows=people("a"))
    before = {f.path for f in tables.handles.at(table).get_fragments()[0].metadata.files}
    landed = tables.commit_staged(tables.stage_rename_columns(table, {"age": "years"}), "op")
    assert {f.path for f in tables.handles.at(landed).get_fragments()[0].metadata.files} == before
    columns = ["_rowid", "_row_created_at_version", "_row_last_updated_at_version"]
    assert tables.scan_table(landed, columns=columns).to_pylist() == [dict(zip(columns, (0, 1, 1)))]


def test_an_index_follows_its_renamed_column(tables: TableStore) -> None:
    table = tables.create("t", PEOPLE, rows=people("a", age=7))
    staged = tables.stage_index(table, "age", IndexKind.BTREE)
    assert staged is not None
    table = tables.commit_staged(staged, "op")
    table = tables.commit_staged(tables.stage_rename_columns(table, {"age": "years"}), "op")
    (index,) = tables.list_indexes(table)
    assert (index.column, index.uncovered_fragments) == ("years", ())
    assert tables.count(table, eq("years", 7)) == 1


def test_a_dropped_column_never_comes_back_under_a_new_one(tables: TableStore) -> None:
    table = tables.create("t", PEOPLE, rows=people("a", age=7))
    table = tables.commit_staged(tables.stage_drop_columns(table, ["age"]), "op")
    table = tables.commit_staged(tables.stage_add_columns(table, [pa.field("age", pa.int64())]), "op")
    assert tables.scan_table(table).to_pylist() == [{"id": "a", "age": None}]
    table = tables.commit_staged(tables.stage_upsert(table, people("a", "b", age=8)), "op")
    assert sorted(tables.scan_table(table)["age"].to_pylist()) == [8, 8]


def test_names_may_be_swapped(tables: TableStore) -> None:
    schema = pa.schema([pa.field("id", pa.string()), pa.field("x", pa.int64()), pa.field("y", pa.int64())])
    table = tables.create("t", schema, rows=pa.table({"id": ["a"], "x": [1], "y": [2]}, schema=schema))
    table = tables.commit_staged(tables.stage_rename_columns(table, {"x": "y", "y": "x"}), "op")
    assert tables.scan_table(table).to_pylist() == [{"id": "a", "y": 1, "x": 2}]


def test_blob_columns_can_be_added_and_dropped(tables: TableStore) -> None:
    table = tables.create("t", PEOPLE, rows=people("a"))
    table = tables.commit_staged(tables.stage_add_columns(table, [blob_field("photo")]), "op")
    rows = people("b").append_column(tables.schema(table).field("photo"), blob_array([b"12345"]))
    table = tables.commit_staged(tables.stage_append(table, rows), "op")
    found = tables.scan_table(table, columns=["id", "photo"], blobs="bytes").to_pylist()
    assert found == [{"id": "a", "photo": None}, {"id": "b", "photo": b"12345"}]
    table = tables.commit_staged(tables.stage_drop_columns(table, ["photo"]), "op")
    assert tables.schema(table) == PEOPLE


def test_nullability_can_change(tables: TableStore) -> None:
    table = tables.create("t", PEOPLE, rows=people("a"))
    table = tables.commit_staged(tables.stage_columns(table, nullable={"id": True, "age": False}), "op")
    assert [field.nullable for field in tables.schema(table)] == [True, False]
    assert tables.scan_table(table).num_rows == 1


def test_an_empty_table_and_a_fork_can_change_columns(tables: TableStore) -> None:
    table = tables.create("t", PEOPLE)
    fork = tables.create_fork(table, "f-1")
    changed = tables.commit_staged(tables.stage_rename_columns(fork, {"age": "years"}), "op")
    assert tables.schema(changed).names == ["id", "years"]
    assert tables.schema(tables.head("t")).names == ["id", "age"]


def test_changes_that_make_no_sense_are_refused(tables: TableStore) -> None:
    table = tables.create("t", PEOPLE)
    with pytest.raises(BadRequest, match="no column `x`"):
        tables.stage_drop_columns(table, ["x"])
    with pytest.raises(BadRequest, match="two columns called `id`"):
        tables.stage_rename_columns(table, {"age": "id"})
    with pytest.raises(BadRequest, match="must be nullable"):
        tables.stage_add_columns(table, [pa.field("x", pa.int64(), nullable=False)])


def test_metadata_of_the_schema_survives_column_changes(tables: TableStore) -> None:
    table = tables.create("t", PEOPLE.with_metadata({"who": "me"}), rows=people("a"))
    table = tables.commit_staged(tables.stage_rename_columns(table, {"age": "years"}), "op")
    assert tables.schema(table).metadata == {b"who": b"me"}
