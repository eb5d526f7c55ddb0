"""Files that a write has made already serve again for the same rows of the same line, and for nothing else."""

from __future__ import annotations

import pyarrow as pa
import pytest

from omnigraph.storage.objects.objects import open_objects
from omnigraph.storage.staging.written_rows import MOST_BYTES, WrittenRows
from omnigraph.storage.tables import TableStore
from omnigraph.storage.values import TableVersion
from tests.storage.conftest import PEOPLE, people

NUMBERS = pa.schema([pa.field("id", pa.string()), pa.field("x", pa.float64())])


def data_files(tables: TableStore, location: str = "t") -> set[str]:
    found = open_objects(tables.root).list(f"{location}/data")
    return {entry.path for entry in found if entry.path.endswith(".lance")}


@pytest.fixture
def table(tables: TableStore) -> TableVersion:
    return tables.create("t", PEOPLE, rows=people("a", "b", age=1))


def test_the_rows_of_an_append_are_written_once_and_committed_on_a_later_version(
    tables: TableStore, table: TableVersion
) -> None:
    written = WrittenRows()
    first = tables.stage_append(table, people("new"), written=written)
    assert written.keep(first)
    later = tables.commit_staged(tables.stage_append(table, people("other")), "other")
    before = data_files(tables)
    again = tables.stage_append(later, people("new"), written=written)
    assert data_files(tables) == before
    assert again.new_files == first.new_files
    assert again.transaction_uuid != first.transaction_uuid
    assert written.keep(again)
    landed = tables.commit_staged(again, "ours")
    written.committed([again])
    assert written.unused() == []
    assert sorted(tables.scan_table(landed)["id"].to_pylist()) == ["a", "b", "new", "other"]


def test_an_update_keeps_the_row_id_that_the_row_has_by_then(tables: TableStore, table: TableVersion) -> None:
    written = WrittenRows()
    tables.stage_change(table, people("b", age=7), None, written=written)
    later = tables.commit_staged(tables.stage_delete(table, ["b"]), "gone")
    later = tables.commit_staged(tables.stage_append(later, people("b", age=3)), "back")
    before = data_files(tables)
    again = tables.stage_change(later, people("b", age=7), None, written=written)
    assert data_files(tables) == before
    ids = {row["id"]: row["_rowid"] for row in tables.scan_table(later, with_row_id=True).to_pylist()}
    landed = tables.commit_staged(again, "ours")
    found = {row["id"]: (row["age"], row["_rowid"]) for row in tables.scan_table(landed, with_row_id=True).to_pylist()}
    assert found == {"a": (1, ids["a"]), "b": (7, ids["b"])}


def test_other_rows_are_written(tables: TableStore, table: TableVersion) -> None:
    written = WrittenRows()
    first = tables.stage_append(table, people("new"), written=written)
    other = tables.stage_append(table, people("new", age=5), written=written)
    assert set(first.new_files).isdisjoint(other.new_files)
    assert written.keep(first)
    assert written.keep(other)
    written.committed([other])
    assert written.unused() == [first]
    written.forget()
    assert written.unused() == []


def test_zeros_are_told_apart_and_rows_without_a_number_are_not(tables: TableStore) -> None:
    table = tables.create("n", NUMBERS)

    def row(x: float) -> pa.Table:
        return pa.table({"id": ["k"], "x": [x]}, schema=NUMBERS)

    written = WrittenRows()
    zero = tables.stage_append(table, row(0.0), written=written)
    assert tables.stage_append(table, row(-0.0), written=written).new_files != zero.new_files
    nan = tables.stage_append(table, row(float("nan")), written=written)
    assert tables.stage_append(table, row(float("nan")), written=written).new_files == nan.new_files


def test_another_table_another_line_and_other_columns_have_their_own_files(
    tables: TableStore, table: TableVersion
) -> None:
    written = WrittenRows()
    first = tables.stage_append(table, people("new"), written=written)
    other = tables.create("u", PEOPLE, rows=people("a"))
    fork = tables.create_fork(table, "f-1")
    wider = tables.commit_staged(tables.stage_add_columns(table, [pa.field("more", pa.int64())]), "columns")
    rows = people("new").append_column("more", pa.array([None], pa.int64()))
    staged = [
        tables.stage_append(other, people("new"), written=written),
        tables.stage_append(fork, people("new"), written=written),
        tables.stage_append(wider, rows, written=written),
    ]
    assert all(set(one.new_files).isdisjoint(first.new_files) for one in staged)


def test_many_rows_are_not_kept(tables: TableStore, table: TableVersion) -> None:
    written = WrittenRows()
    many = people(*(f"{number:0200}" for number in range(MOST_BYTES // 200)))
    staged = tables.stage_append(table, many, written=written)
    assert not written.keep(staged)
    assert tables.stage_append(table, many, written=written).new_files != staged.new_files
