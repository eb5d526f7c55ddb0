"""What happened to a table: transactions, differences, versions and their removal."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from lance.dataset import LanceDataset

from omnigraph.errors import BadRequest, HistoryGap, StorageError
from omnigraph.storage.layout.indexes import IndexKind
from omnigraph.storage.tables import TableStore
from omnigraph.storage.values import TableDelta, TableVersion
from tests.storage.conftest import PEOPLE, people


def told(delta: TableDelta) -> tuple[list[str], list[str], list[int]]:
    return (
        sorted(delta.inserted.read_all()["id"].to_pylist()),
        sorted(delta.updated.read_all()["id"].to_pylist()),
        sorted(delta.deleted_row_ids.read_all()["_rowid"].to_pylist()),
    )


def commit_index(tables: TableStore, table: TableVersion) -> TableVersion:
    staged = tables.stage_index(table, "id", IndexKind.BTREE)
    assert staged is not None
    return tables.commit_staged(staged, "index")


def compact(tables: TableStore, table: TableVersion) -> TableVersion:
    staged = tables.stage_compaction(table)
    assert staged is not None
    return tables.commit_compaction(staged)


def test_transactions_tell_what_changed_content_and_what_did_not(tables: TableStore) -> None:
    table = tables.create("t", PEOPLE, rows=people("a"), properties={"omnigraph.operation_id": "init"})
    table = tables.commit_staged(tables.stage_append(table, people("b")), "append")
    table = tables.commit_staged(tables.stage_schema_metadata(table, {"stamp": "1"}), "stamp")
    table = commit_index(tables, table)
    table = compact(tables, table)
    table = tables.commit_staged(tables.stage_add_columns(table, [pa.field("note", pa.string())]), "columns")
    table = tables.restore(table.at(1), table.version, "undo")
    found = tables.transactions("t", None, 0, table.version)
    assert [entry.version for entry in found] == list(range(1, 9))
    assert [entry.changes_content for entry in found] == [True, True, False, False, False, False, True, True]
    assert [entry.kind for entry in found] == [
        "Overwrite",
        "Update",
        "UpdateConfig",
        "CreateIndex",
        "Other",
        "Unreadable",
        "Project",
        "Restore",
    ]
    tags = [entry.properties.get("omnigraph.operation_id") for entry in found]
    assert tags == ["init", "append", "stamp", "index", None, None, "columns", "undo"]
    assert tables.transactions("t", None, 3, 3) == []


def test_the_first_transaction_of_a_fork_changes_nothing(tables: TableStore) -> None:
    base = tables.create("t", PEOPLE, rows=people("a"))
    fork = tables.create_fork(base, "f-1")
    moved = tables.commit_staged(tables.stage_append(fork, people("b")), "op")
    found = tables.transactions("t", "f-1", fork.version, moved.version)
    assert [(entry.kind, entry.changes_content) for entry in found] == [("Update", True)]
    (start,) = tables.transactions("t", "f-1", 0, 1)
    assert (start.kind, start.changes_content) == ("Clone", False)


def test_what_cannot_be_read_at_all_is_not_judged(tables: TableStore) -> None:
    table = tables.create("t", PEOPLE, rows=people("a"))
    for name in "bcd":
        table = tables.commit_staged(tables.stage_append(table, people(name)), "op")
    tables.remove_versions("t", None, [2])
    found = TableStore(tables.root).transactions("t", None, 1, 4)
    assert (found[0].version, found[0].kind) == (2, "Unreadable")
    assert found[0].changes_content is None
    assert found[-1].kind == "Update"


def test_delta_tells_inserted_updated_and_deleted(tables: TableStore) -> None:
    first = tables.create("t", PEOPLE, rows=people("a", "b", "c"))
    second = tables.commit_staged(tables.stage_change(first, people("b", "d", age=1), ["a"]), "op")
    third = tables.commit_staged(tables.stage_append(second, people("e")), "op")
    assert told(tables.delta("t", None, 1, 3)) == (["d", "e"], ["b"], [0])
    assert told(tables.delta("t", None, 2, 3)) == (["e"], [], [])
    assert told(tables.delta("t", None, 3, third.version)) == ([], [], [])


def test_delta_of_compaction_is_empty(tables: TableStore) -> None:
    table = tables.create("t", PEOPLE, rows=people("a", "c"))
    table = tables.commit_staged(tables.stage_append(table, people("b")), "op")
    table = tables.commit_staged(tables.stage_delete(table, ["a"]), "op")
    compacted = compact(tables, table)
    assert told(tables.delta("t", None, table.version, compacted.version)) == ([], [], [])
    assert told(tables.delta("t", None, 1, compacted.version)) == (["b"], [], [0])


def test_delta_on_a_fork_starts_at_the_fork(tables: TableStore) -> None:
    first = tables.create("t", PEOPLE, rows=people("a"))
    second = tables.commit_staged(tables.stage_append(first, people("b")), "op")
    fork = tables.create_fork(second, "f-1")
    third = tables.commit_staged(tables.stage_change(fork, people("c"), ["a"]), "op")
    assert told(tables.delta("t", "f-1", 2, third.version)) == (["c"], [], [0])
    with pytest.raises(BadRequest, match="line by line"):
        tables.delta("t", "f-1", 1, third.version)


def test_delta_from_a_removed_version_is_a_gap_in_history(tables: TableStore) -> None:
    table = tables.create("t", PEOPLE, rows=people("a"))
    table = tables.commit_staged(tables.stage_delete(table, ["a"]), "op")
    table = tables.commit_staged(tables.stage_append(table, people("b")), "op")
    tables.remove_versions("t", None, [1])
    with pytest.raises(HistoryGap, match="cleanup"):
        TableStore(tables.root).delta("t", None, 1, 3)


def test_versions_are_listed_with_their_times(tables: TableStore) -> None:
    table = tables.create("t", PEOPLE)
    tables.commit_staged(tables.stage_append(table, people("a")), "op")
    found = tables.versions("t")
    assert [entry.version for entry in found] == [1, 2]
    assert all(abs(datetime.now(UTC) - entry.timestamp) < timedelta(minutes=5) for entry in found)
    fork = tables.create_fork(table.at(2), "f-1")
    tables.commit_staged(tables.stage_append(fork, people("b")), "op")
    assert [entry.version for entry in tables.versions("t", "f-1")] == [2, 3]


def test_exactly_the_named_versions_are_removed(tables: TableStore) -> None:
    table = tables.create("t", PEOPLE, rows=people("a"))
    for name in "bcd":
        table = tables.commit_staged(tables.stage_overwrite(table, people(name)), "op")
    assert tables.remove_versions("t", None, [1, 3]) > 0
    assert [entry.version for entry in tables.versions("t")] == [2, 4]
    assert tables.scan_table(table.at(2))["id"].to_pylist() == ["b"]
    with pytest.raises(StorageError):
        tables.count(table.at(1))
    assert tables.remove_versions("t", None, []) == 0
    with pytest.raises(BadRequest, match="newest"):
        tables.remove_versions("t", None, [4])


def test_removal_leaves_staged_files_of_a_live_writer(tables: TableStore) -> None:
    table = tables.create("t", PEOPLE, rows=people("a"))
    table = tables.commit_staged(tables.stage_append(table, people("b")), "op")
    staged = tables.stage_append(table, people("staged"))
    tables.remove_versions("t", None, [1])
    landed = tables.commit_staged(staged, "op")
    assert sorted(lance.dataset(tables.root.child("t")).to_table()["id"].to_pylist()) == ["a", "b", "staged"]
    assert landed.version == 3


def test_a_version_that_could_not_be_removed_goes_when_its_files_are_gone(
    local_tables: TableStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lance does not tell that the disk refused to remove a version, and removes its files."""
    tables = local_tables
    table = tables.create("t", PEOPLE, rows=people("a"))
    for _ in range(3):
        table = tables.commit_staged(tables.stage_upsert(table, people("a")), "change")
    kept = Path(tables.root.path, table.at(2).manifest_file)
    description = kept.read_bytes()
    cleanup = LanceDataset.cleanup_old_versions

    def refused(handle: LanceDataset, **options: object) -> object:
        removed = cleanup(handle, **options)
        kept.write_bytes(description)
        return removed

    monkeypatch.setattr(LanceDataset, "cleanup_old_versions", refused)
    assert tables.remove_versions("t", None, [1, 2]) > 0
    assert [info.version for info in tables.versions("t", None)] == [3, 4]


def test_versions_that_go_while_they_are_listed_are_left_out(
    tables: TableStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Processes remove old versions of the commit log side by side."""
    head = tables.create("t", pa.schema([pa.field("id", pa.string(), nullable=False)]))
    listed = LanceDataset.versions
    vanished = iter([True])

    def versions(handle: LanceDataset) -> list[dict[str, object]]:
        if next(vanished, False):
            raise OSError("Not found: t/_versions/1.manifest")
        return listed(handle)

    monkeypatch.setattr(LanceDataset, "versions", versions)
    assert [info.version for info in tables.versions("t")] == [head.version]
