"""Compaction: fewer fragments, the same rows, lineage, indexes and blobs."""

from __future__ import annotations

import pickle
from multiprocessing.pool import Pool

import pyarrow as pa
import pytest

from omnigraph.errors import Conflict
from omnigraph.failpoints import FailpointError, active
from omnigraph.storage import compaction
from omnigraph.storage.blobs import blob_array, blob_field
from omnigraph.storage.compaction import CompactionOptions
from omnigraph.storage.filters import eq
from omnigraph.storage.indexes import IndexKind
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


def test_an_index_stays_complete_and_right(local_tables: TableStore) -> None:
    table = scattered(local_tables)
    staged_index = local_tables.stage_index(table, "id", IndexKind.BTREE)
    assert staged_index is not None
    table = local_tables.commit_staged(staged_index, "op")
    staged = local_tables.stage_compaction(table)
    assert staged is not None
    landed = local_tables.commit_compaction(staged)
    assert local_tables.index_state(landed, "id", IndexKind.BTREE).is_complete
    assert [local_tables.count(landed, eq("id", str(number))) for number in range(6)] == [1, 1, 1, 0, 1, 1]


def test_deletion_heavy_fragments_are_rewritten(local_tables: TableStore) -> None:
    table = local_tables.create("t", PEOPLE, rows=people(*range(100)))
    table = local_tables.commit_staged(local_tables.stage_delete(table, [str(n) for n in range(50)]), "op")
    assert local_tables.stage_compaction(table, CompactionOptions(deleted_share=0.9)) is None
    staged = local_tables.stage_compaction(table)
    assert staged is not None
    landed = local_tables.commit_compaction(staged)
    assert [(f.rows, f.deletions) for f in local_tables.fragments(landed)] == [(50, 0)]


def test_blobs_survive_compaction(local_tables: TableStore) -> None:
    """Pins that this Lance compacts tables with blobs right, so that none has to be skipped."""
    schema = pa.schema([pa.field("id", pa.string()), blob_field("blob")])
    sizes = [0, 10, 100_000, 5_000_000]
    table = local_tables.create("t", schema)
    for size in sizes:
        rows = pa.table({"id": [str(size)], "blob": blob_array([bytes([7]) * size])}, schema=schema)
        table = local_tables.commit_staged(local_tables.stage_append(table, rows), "op")
    staged = local_tables.stage_compaction(table)
    assert staged is not None
    landed = local_tables.commit_compaction(staged)
    local_tables.remove_versions("t", None, range(1, landed.version))
    fresh = TableStore(local_tables.root)
    found = fresh.scan_table(landed, with_row_id=True, columns=["id", "blob"], blobs="bytes").to_pylist()
    assert {row["id"]: len(row["blob"]) for row in found} == {str(size): size for size in sizes}
    big = next(row["_rowid"] for row in found if row["id"] == "5000000")
    assert fresh.read_blob(landed, big, "blob", 4_999_999) == b"\x07"


def test_tasks_run_in_other_processes(local_tables: TableStore, other_process: Pool) -> None:
    table = scattered(local_tables, branch=True)
    work = local_tables.plan_compaction(table, CompactionOptions(target_rows=2))
    assert len(work) >= 2
    assert pickle.loads(pickle.dumps(work)) == work
    results = other_process.map(compaction.run_compaction_task, work)
    landed = local_tables.commit_compaction(compaction.staged_compaction(table, results))
    assert lineage(local_tables, landed) == lineage(local_tables, table)


def test_a_table_that_moved_is_refused(local_tables: TableStore) -> None:
    table = scattered(local_tables)
    staged = local_tables.stage_compaction(table)
    assert staged is not None
    moved = local_tables.commit_staged(local_tables.stage_upsert(table, people("1", age=4)), "op")
    with pytest.raises(Conflict):
        local_tables.commit_compaction(staged)
    assert local_tables.head("t") == moved


def test_losing_the_race_is_a_conflict_and_changes_no_rows(
    local_tables: TableStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = scattered(local_tables)
    staged = local_tables.stage_compaction(table)
    assert staged is not None
    moved = local_tables.commit_staged(local_tables.stage_upsert(table, people("1", age=4)), "op")
    monkeypatch.setattr(compaction, "refuse_if_moved", lambda handle, base: None)
    with pytest.raises(Conflict, match="changed by another writer"):
        local_tables.commit_compaction(staged)
    head = local_tables.head("t")
    assert lineage(local_tables, head) == lineage(local_tables, moved)
    found = local_tables.transactions("t", None, moved.version, head.version)
    assert all(entry.changes_content is False for entry in found)


def test_a_compaction_that_landed_on_top_of_an_append_is_no_success(
    local_tables: TableStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = scattered(local_tables)
    staged = local_tables.stage_compaction(table)
    assert staged is not None
    index = local_tables.stage_schema_metadata(table, {"x": "y"})
    local_tables.commit_staged(index, "op")
    monkeypatch.setattr(compaction, "refuse_if_moved", lambda handle, base: None)
    with pytest.raises(Conflict, match="on top of another writer") as conflict:
        local_tables.commit_compaction(staged)
    assert conflict.value.details["landed_version"] == local_tables.head("t").version


def test_an_abandoned_compaction_leaves_no_files(local_tables: TableStore) -> None:
    table = scattered(local_tables)
    staged = local_tables.stage_compaction(table)
    assert staged is not None
    assert local_tables.abandon(staged) == 1
    assert lineage(TableStore(local_tables.root), local_tables.head("t")) == lineage(local_tables, table)


def test_failpoints_sit_around_the_commit_of_a_compaction(local_tables: TableStore) -> None:
    table = scattered(local_tables)
    staged = local_tables.stage_compaction(table)
    assert staged is not None
    with active("storage.compaction.before", "raise"), pytest.raises(FailpointError):
        local_tables.commit_compaction(staged)
    assert local_tables.head("t") == table
    with active("storage.compaction.after", "raise"), pytest.raises(FailpointError):
        local_tables.commit_compaction(staged)
    assert local_tables.head("t").version == table.version + 2
