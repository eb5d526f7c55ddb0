"""What Lance tells of a table's past, and what it does not."""

from __future__ import annotations

import lance
import pytest
from lance import Transaction
from lance.dataset import LanceDataset, LanceOperation
from lance.optimize import Compaction

from tests.guards.conftest import NewTable, append_of, commit, ids, upsert_of


def told(table: LanceDataset, begin: int, end: int) -> tuple[list[str], list[str], list[int]]:
    delta = table.delta(begin_version=begin, end_version=end)
    return (
        sorted(delta.get_inserted_rows().read_all()["id"].to_pylist()),
        sorted(delta.get_updated_rows().read_all()["id"].to_pylist()),
        sorted(delta.get_deleted_row_ids().read_all()["_rowid"].to_pylist()),
    )


def deletion_of(table: LanceDataset, *names: str) -> Transaction:
    import pyarrow as pa

    return table.merge_insert("id").when_matched_delete().execute_uncommitted(pa.table({"id": list(names)}))[0]


def compacted(table: LanceDataset) -> LanceDataset:
    tasks = Compaction.plan(table, {}).tasks
    Compaction.commit(lance.dataset(table.uri), [task.execute(table) for task in tasks])
    return lance.dataset(table.uri)


def test_delta_tells_inserted_updated_and_deleted(new_table: NewTable) -> None:
    base = new_table("a", "b")
    second = commit(base, upsert_of(base, "b", "c"))
    third = commit(second, deletion_of(second, "a"))
    assert told(third, 1, 3) == (["c"], ["b"], [0])


def test_a_delete_followed_by_a_reinsert_shows_as_both(new_table: NewTable) -> None:
    base = new_table("a", "b")
    second = commit(base, deletion_of(base, "a"))
    third = commit(second, append_of(second, "a"))
    assert told(third, 1, 3) == (["a"], [], [0])


def test_a_delta_across_a_restore_misses_reverted_updates(new_table: NewTable) -> None:
    base = new_table("a", "b")
    second = commit(base, upsert_of(base, "a"))
    third = commit(second, Transaction(2, LanceOperation.Restore(1)))
    assert told(third, 2, 3) == ([], [], [])


def test_deleted_ids_from_before_a_fork_raise(new_table: NewTable) -> None:
    base = new_table("a", "b")
    second = commit(base, append_of(base, "c"))
    second.create_branch("f-1", (None, 2))
    line = lance.dataset(f"{base.uri}/tree/f-1")
    third = commit(line, deletion_of(line, "a"))
    assert told(third, 2, 3) == ([], [], [0])
    with pytest.raises(RuntimeError):
        third.delta(begin_version=1, end_version=3).get_deleted_row_ids().read_all()


def test_a_delta_from_a_removed_version_raises(new_table: NewTable) -> None:
    base = new_table("a", "b")
    second = commit(base, deletion_of(base, "a"))
    third = commit(second, append_of(second, "c"))
    third.cleanup_old_versions(versions=[1])
    with pytest.raises((OSError, RuntimeError, ValueError)):
        told(lance.dataset(base.uri), 1, 3)


def test_compaction_makes_two_untagged_commits_with_an_empty_delta(new_table: NewTable) -> None:
    base = new_table("a", "b", "c", "d", rows_per_file=2)
    after = compacted(base)
    assert (after.version, len(after.get_fragments())) == (3, 1)
    kinds = [type(after.read_transaction(version).operation).__name__ for version in (2, 3)]
    assert kinds == ["BaseOperation", "Rewrite"]
    assert told(after, 1, 3) == ([], [], [])


def test_a_transaction_that_rewrote_an_index_cannot_be_read(new_table: NewTable) -> None:
    base = new_table("a", "b", "c", "d", rows_per_file=2)
    base.create_scalar_index("id", "BTREE")
    after = compacted(lance.dataset(base.uri))
    with pytest.raises(TypeError):
        after.read_transaction(after.version)
    assert told(after, 2, after.version) == ([], [], [])


def test_a_compaction_that_loses_has_moved_head_by_its_reservation(new_table: NewTable) -> None:
    base = new_table("a", "b", "c", "d", rows_per_file=2)
    results = [task.execute(base) for task in Compaction.plan(base, {}).tasks]
    commit(base, upsert_of(base, "a"))
    with pytest.raises(OSError, match=r"(?i)conflict"):
        Compaction.commit(lance.dataset(base.uri, version=1), results)
    head = lance.dataset(base.uri)
    assert head.version == 3
    assert told(head, 2, 3) == ([], [], [])


def test_exactly_the_named_versions_are_removed_and_what_a_branch_needs_stays(new_table: NewTable) -> None:
    base = new_table("a")
    second = commit(base, append_of(base, "b"))
    third = commit(second, append_of(second, "c"))
    base.create_branch("f-1", (None, 1))
    third.cleanup_old_versions(versions=[1, 2], error_if_tagged_old_versions=False)
    assert 2 not in {entry["version"] for entry in lance.dataset(base.uri).versions()}
    assert lance.dataset(f"{base.uri}/tree/f-1").to_table()["id"].to_pylist() == ["a"]
    assert ids(base) == ["a", "b", "c"]


def test_files_that_are_staged_survive_the_removal_of_versions(new_table: NewTable) -> None:
    base = new_table("a")
    second = commit(base, append_of(base, "b"))
    staged = append_of(second, "staged")
    second.cleanup_old_versions(versions=[1])
    commit(second, staged)
    assert ids(base) == ["a", "b", "staged"]
