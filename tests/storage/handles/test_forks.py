"""Forks of one table: exact start, independent lines, readable whatever happens to the parent."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta

import pytest

from omnigraph.errors import BadRequest, StorageError
from omnigraph.failpoints import FailpointError, active
from omnigraph.storage.tables import TableStore
from omnigraph.storage.values import TableVersion
from tests.storage.conftest import PEOPLE, people


def ids(tables: TableStore, table: TableVersion) -> list[str]:
    return sorted(tables.scan_table(table)["id"].to_pylist())


def test_a_fork_starts_at_exactly_its_version_and_keeps_the_number(tables: TableStore) -> None:
    first = tables.create("t", PEOPLE, rows=people("a"))
    second = tables.commit_staged(tables.stage_append(first, people("b")), "op")
    fork = tables.create_fork(first, "f-1")
    assert fork == TableVersion("t", "f-1", 1)
    assert tables.head("t", "f-1") == fork
    assert ids(tables, fork) == ["a"]
    assert tables.head("t") == second


def test_lines_move_independently(tables: TableStore) -> None:
    base = tables.create("t", PEOPLE, rows=people("a", "b"))
    fork = tables.create_fork(base, "f-1")
    on_fork = tables.commit_staged(tables.stage_change(fork, people("c"), ["a"]), "op")
    on_main = tables.commit_staged(tables.stage_append(base, people("d")), "op")
    assert on_fork == TableVersion("t", "f-1", 2)
    assert ids(tables, on_fork) == ["b", "c"]
    assert ids(tables, on_main) == ["a", "b", "d"]
    assert ids(TableStore(tables.root), on_fork) == ["b", "c"]


def test_a_fork_of_a_fork(tables: TableStore) -> None:
    base = tables.create("t", PEOPLE, rows=people("a"))
    one = tables.commit_staged(tables.stage_append(tables.create_fork(base, "f-1"), people("b")), "op")
    two = tables.commit_staged(tables.stage_append(tables.create_fork(one, "f-2"), people("c")), "op")
    assert two == TableVersion("t", "f-2", 3)
    assert ids(tables, two) == ["a", "b", "c"]
    found = {fork.name: (fork.parent_branch, fork.parent_version) for fork in tables.list_forks("t")}
    assert found == {"f-1": (None, 1), "f-2": ("f-1", 2)}


def test_forks_are_listed_with_the_time_they_were_made(tables: TableStore) -> None:
    base = tables.create("t", PEOPLE)
    assert tables.list_forks("t") == []
    tables.create_fork(base, "f-2")
    tables.create_fork(base, "f-1")
    found = tables.list_forks("t")
    assert [fork.name for fork in found] == ["f-1", "f-2"]
    assert all(abs(datetime.now(UTC) - fork.created) < timedelta(minutes=5) for fork in found)


def test_deleting_a_fork_is_idempotent_and_leaves_the_rest(tables: TableStore) -> None:
    base = tables.create("t", PEOPLE, rows=people("a"))
    fork = tables.create_fork(base, "f-1")
    tables.count(fork)
    assert tables.delete_fork("t", "f-1")
    assert not tables.delete_fork("t", "f-1")
    with pytest.raises(StorageError):
        tables.count(fork)
    assert ids(tables, base) == ["a"]


def test_a_fork_that_others_start_from_cannot_be_deleted(tables: TableStore) -> None:
    base = tables.create("t", PEOPLE, rows=people("a"))
    child = tables.create_fork(tables.create_fork(base, "f-1"), "f-2")
    with pytest.raises(StorageError, match="deleting the fork `f-1` of t"):
        tables.delete_fork("t", "f-1")
    assert ids(tables, child) == ["a"]


def test_a_fork_stays_readable_after_compaction_and_cleanup_of_its_parent(tables: TableStore) -> None:
    table = tables.create("t", PEOPLE, rows=people("a"))
    for name in "bcd":
        table = tables.commit_staged(tables.stage_append(table, people(name)), "op")
    fork = tables.create_fork(table.at(2), "f-1")
    staged = tables.stage_compaction(table)
    assert staged is not None
    compacted = tables.commit_compaction(staged)
    emptied = tables.commit_staged(tables.stage_overwrite(compacted, []), "op")
    tables.remove_versions("t", None, range(1, emptied.version))
    assert ids(TableStore(tables.root), fork) == ["a", "b"]
    moved = tables.commit_staged(tables.stage_change(fork, people("x"), ["a"]), "op")
    assert ids(TableStore(tables.root), moved) == ["b", "x"]


@pytest.mark.parametrize("name", ["main", "", "a/b", "a b", "-x", "a@b", "ä"])
def test_names_of_forks_are_flat(tables: TableStore, name: str) -> None:
    base = tables.create("t", PEOPLE)
    with pytest.raises(BadRequest):
        tables.create_fork(base, name)


def test_failpoints_sit_around_the_making_of_a_fork(tables: TableStore) -> None:
    base = tables.create("t", PEOPLE)
    with active("storage.fork.before", "raise"), pytest.raises(FailpointError):
        tables.create_fork(base, "f-1")
    assert tables.list_forks("t") == []
    with active("storage.fork.after", "raise"), pytest.raises(FailpointError):
        tables.create_fork(base, "f-2")
    assert [fork.name for fork in tables.list_forks("t")] == ["f-2"]


def test_forks_can_be_listed_and_deleted_while_others_delete_theirs(local_tables: TableStore) -> None:
    """Lance lists the names and then reads each: one that goes in between is not there, and no error."""
    table = local_tables.create("t", PEOPLE, rows=people("a"))
    done = threading.Event()
    failures: list[BaseException] = []

    def come_and_go(worker: int) -> None:
        store = TableStore(local_tables.root)
        try:
            for number in range(40):
                store.create_fork(table, f"w{worker}-{number}")
                assert store.delete_fork("t", f"w{worker}-{number}")
        except BaseException as failure:
            failures.append(failure)
        finally:
            done.set()

    local_tables.create_fork(table, "stays")
    workers = [threading.Thread(target=come_and_go, args=(worker,)) for worker in range(3)]
    for worker in workers:
        worker.start()
    while not done.is_set():
        assert "stays" in {fork.name for fork in local_tables.list_forks("t")}
    for worker in workers:
        worker.join()
    assert failures == []
    assert [fork.name for fork in local_tables.list_forks("t")] == ["stays"]
