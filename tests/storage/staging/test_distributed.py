"""Fragments written in other processes become one staged write."""

from __future__ import annotations

import pickle
from multiprocessing.pool import Pool

import pyarrow as pa
import pytest

from omnigraph.storage.staging.distributed import WriteTarget, delete_rows, write_fragments
from omnigraph.storage.tables import TableStore
from omnigraph.storage.values import TableVersion
from tests.storage.conftest import PEOPLE, people


def _write(arguments: tuple[WriteTarget, int]) -> list[str]:
    target, number = arguments
    return write_fragments(target, people(f"{number}-a", f"{number}-b").to_batches(), PEOPLE)


def test_workers_write_and_the_driver_commits_once(tables: TableStore, other_process: Pool) -> None:
    base = tables.create("t", PEOPLE, rows=people("first"))
    table = tables.create_fork(base, "f-1")
    target = tables.write_target(table)
    assert pickle.loads(pickle.dumps(target)) == target
    parts = other_process.map(_write, [(target, number) for number in range(3)])
    assert tables.head("t", "f-1") == table
    staged = tables.stage_fragments(table, [text for part in parts for text in part])
    assert staged.rows_added == 6
    landed = tables.commit_staged(staged, "op")
    assert landed == TableVersion("t", "f-1", 2)
    assert tables.count(landed) == 7
    assert tables.count(tables.head("t")) == 1


def test_no_rows_make_no_fragment(tables: TableStore) -> None:
    table = tables.create("t", PEOPLE)
    assert write_fragments(tables.write_target(table), [], PEOPLE) == []
    assert write_fragments(tables.root.child("t"), people().to_batches(), PEOPLE) == []


def test_a_distributed_upsert_keeps_row_ids_and_creation(tables: TableStore) -> None:
    table = tables.create("t", PEOPLE, rows=people("a", "b"))
    table = tables.commit_staged(tables.stage_append(table, people("c")), "op")
    target = tables.write_target(table)
    found = tables.take_ids(table, ["b", "c"], ["id"], with_row_id=True, with_row_address=True)
    order = found["id"].to_pylist()
    updated, removed = delete_rows(target, found["_rowaddr"].combine_chunks())
    changed = write_fragments(target, people(*order, "new", age=5), PEOPLE, found["_rowid"].to_pylist())
    staged = tables.stage_fragments(
        table, changed, updated_fragments=updated, removed_fragment_ids=removed, rows_updated=2
    )
    assert (staged.rows_added, staged.rows_updated, staged.rows_deleted) == (1, 2, 0)
    landed = tables.commit_staged(staged, "op")
    columns = ["id", "age", "_rowid", "_row_created_at_version", "_row_last_updated_at_version"]
    rows = {row["id"]: tuple(row.values())[1:] for row in tables.scan_table(landed, columns=columns).to_pylist()}
    assert rows == {"a": (0, 0, 1, 1), "b": (5, 1, 1, 3), "c": (5, 2, 2, 3), "new": (5, 3, 3, 3)}


def test_a_distributed_overwrite(tables: TableStore) -> None:
    table = tables.create("t", PEOPLE, rows=people("a", "b"))
    written = write_fragments(tables.write_target(table), people("c"), PEOPLE)
    staged = tables.stage_fragments(table, written, overwrite=True)
    assert (staged.rows_added, staged.rows_deleted) == (1, 2)
    landed = tables.commit_staged(staged, "op")
    assert tables.scan_table(landed)["id"].to_pylist() == ["c"]


def test_an_error_of_the_stream_reaches_the_worker(tables: TableStore) -> None:
    table = tables.create("t", PEOPLE)
    with pytest.raises(Exception, match="lacks age"):
        write_fragments(tables.write_target(table), pa.table({"id": ["x"]}), PEOPLE)
