"""Compaction: fewer fragments, the same rows, lineage, indexes and blobs."""

from __future__ import annotations

import pickle
from multiprocessing.pool import Pool

import pyarrow as pa
import pytest

from omnigraph.errors import Conflict
from omnigraph.failpoints import FailpointError, active
from omnigraph.storage.layout import compaction
from omnigraph.storage.layout.compaction import CompactionOptions
from omnigraph.storage.layout.indexes import IndexKind
from omnigraph.storage.reading.blobs import blob_array, blob_field
from omnigraph.storage.reading.filters import eq
from omnigraph.storage.tables import TableStore
from omnigraph.storage.values import TableVersion
from tests.storage.conftest import PEOPLE, people


def scattered(tables: TableStore, branch: bool = False) -> TableVersion:
    table = tables.create("t", PEOPLE, rows=people(0))
    if branch:
        table = tables.create_fork(table, "f-1")
    for number in range(1, 6):
        table = tables.commit_staged(tables.stage_append(table, people(number)), "op")
    return tables.commit_staged(tables.stage_change(table, people("2", age=9), ["3"]), "op")


def lineage(tables: TableStore, table: TableVersion) -> list[dict[str, object]]:
    columns = ["id", "age", "_rowid", "_row_created_at_version", "_row_last_updated_at_version"]
    return sorted(tables.scan_table(table, columns=columns).to_pylist(), key=lambda row: row["id"])


@pytest.mark.parametrize("branch", [False, True])
def test_compaction_changes_the_layout_and_nothing_else(tables: TableStore, branch: bool) -> None:
    table = scattered(tables, branch)
    staged = tables.stage_compaction(table)
    assert staged is not None
    assert tables.head("t", table.branch) == table
    landed = tables.commit_staged(staged, "ignored")
    assert landed.version == table.version + 2
    assert staged.fragments_removed == 5
    assert len(tables.fragments(landed)) == staged.fragments_added == 1
    assert lineage(tables, landed) == lineage(tables, table)


def test_nothing_to_compact_gives_nothing(tables: TableStore) -> None:
    table = tables.create("t", PEOPLE, rows=people("a"))
    assert tables.stage_compaction(table) is None
    assert tables.plan_compaction(tables.create("empty", PEOPLE)) == []


def test_an_index_stays_complete_and_right(tables: TableStore) -> None:
    table = scattered(tables)
    staged_index = tables.stage_index(table, "id", IndexKind.BTREE)
    assert staged_index is not None
    table = tables.commit_staged(staged_index, "op")
    staged = tables.stage_compaction(table)
    assert staged is not None
    landed = tables.commit_compaction(staged)
    assert tables.index_state(landed, "id", IndexKind.BTREE).is_complete
    assert [tables.count(landed, eq("id", str(number))) for number in range(6)] == [1, 1, 1, 0, 1, 1]


def test_deletion_heavy_fragments_are_rewritten(tables: TableStore) -> None:
    table = tables.create("t", PEOPLE, rows=people(*range(100)))
    table = tables.commit_staged(tables.stage_delete(table, [str(n) for n in range(50)]), "op")
    assert tables.stage_compaction(table, CompactionOptions(deleted_share=0.9)) is None
    staged = tables.stage_compaction(table)
    assert staged is not None
    landed = tables.commit_compaction(staged)
    assert [(f.rows, f.deletions) for f in tables.fragments(landed)] == [(50, 0)]


def test_blobs_survive_compaction(tables: TableStore) -> None:
    """Pins that this Lance compacts tables with blobs right, so that none has to be skipped."""
    schema = pa.schema([pa.field("id", pa.string()), blob_field("blob")])
    sizes = [0, 10, 100_000, 5_000_000]
    table = tables.create("t", schema)
    for size in sizes:
        rows = pa.table({"id": [str(size)], "blob": blob_array([bytes([7]) * size])}, schema=schema)
        table = tables.commit_staged(tables.stage_append(table, rows), "op")
    staged = tables.stage_compaction(table)
    assert staged is not None
    landed = tables.commit_compaction(staged)
    tables.remove_versions("t", None, range(1, landed.version))
    fresh = TableStore(tables.root)
    found = fresh.scan_table(landed, with_row_id=True, columns=["id", "blob"], blobs="bytes").to_pylist()
    assert {row["id"]: len(row["blob"]) for row in found} == {str(size): size for size in sizes}
    big = next(row["_rowid"] for row in found if row["id"] == "5000000")
    assert fresh.read_blob(landed, big, "blob", 4_999_999) == b"\x07"


def test_tasks_run_in_other_processes(tables: TableStore, other_process: Pool) -> None:
    table = scattered(tables, branch=True)
    work = tables.plan_compaction(table, CompactionOptions(target_rows=2))
    assert len(work) >= 2
    assert pickle.loads(pickle.dumps(work)) == work
    results = other_process.map(compaction.run_compaction_task, work)
    landed = tables.commit_compaction(compaction.staged_compaction(table, results))
    assert lineage(tables, landed) == lineage(tables, table)


def test_a_table_that_moved_is_refused(tables: TableStore) -> None:
    table = scattered(tables)
    staged = tables.stage_compaction(table)
    assert staged is not None
    moved = tables.commit_staged(tables.stage_upsert(table, people("1", age=4)), "op")
    with pytest.raises(Conflict):
        tables.commit_compaction(staged)
    assert tables.head("t") == moved


def test_losing_the_race_is_a_conflict_and_changes_no_rows(tables: TableStore, monkeypatch: pytest.MonkeyPatch) -> None:
    table = scattered(tables)
    staged = tables.stage_compaction(table)
    assert staged is not None
    moved = tables.commit_staged(tables.stage_upsert(table, people("1", age=4)), "op")
    monkeypatch.setattr(compaction, "refuse_if_moved", lambda handle, base: None)
    with pytest.raises(Conflict, match="changed by another writer"):
        tables.commit_compaction(staged)
    head = tables.head("t")
    assert lineage(tables, head) == lineage(tables, moved)
    found = tables.transactions("t", None, moved.version, head.version)
    assert all(entry.changes_content is False for entry in found)


def test_a_compaction_that_landed_on_top_of_an_append_is_no_success(
    tables: TableStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = scattered(tables)
    staged = tables.stage_compaction(table)
    assert staged is not None
    index = tables.stage_schema_metadata(table, {"x": "y"})
    tables.commit_staged(index, "op")
    monkeypatch.setattr(compaction, "refuse_if_moved", lambda handle, base: None)
    with pytest.raises(Conflict, match="on top of another writer") as conflict:
        tables.commit_compaction(staged)
    assert conflict.value.details["landed_version"] == tables.head("t").version


def test_an_abandoned_compaction_leaves_no_files(tables: TableStore) -> None:
    table = scattered(tables)
    staged = tables.stage_compaction(table)
    assert staged is not None
    assert tables.abandon(staged) == 1
    assert lineage(TableStore(tables.root), tables.head("t")) == lineage(tables, table)


def test_failpoints_sit_around_the_commit_of_a_compaction(tables: TableStore) -> None:
    table = scattered(tables)
    staged = tables.stage_compaction(table)
    assert staged is not None
    with active("storage.compaction.before", "raise"), pytest.raises(FailpointError):
        tables.commit_compaction(staged)
    assert tables.head("t") == table
    with active("storage.compaction.after", "raise"), pytest.raises(FailpointError):
        tables.commit_compaction(staged)
    assert tables.head("t").version == table.version + 2
