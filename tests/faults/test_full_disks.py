"""A full disk, a quota, a lack of descriptors, a bad block: at each file operation of a write, of an open and of a
recovery. The call fails with an error of ours or succeeds; it gives back what it took; and when the cause is gone, the
next write works, with no step in between."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from omnigraph.errors import OmniGraphError
from omnigraph.ledger.branches.branches import create_branch
from omnigraph.ledger.store import GraphStore, open_store
from omnigraph.storage.objects import os_locks
from tests.faults.failing_files import CAUSES, Disk, failing_once, full_from, plugged
from tests.faults.harness import run_killed
from tests.faults.invariants import GraphContent, check_history, check_pins_are_heads, observe
from tests.faults.scenarios import work
from tests.faults.writers import new_graph, put_friends, put_people

EVERY = bool(os.environ.get("OMNIGRAPH_TEST_EVERY_OPERATION"))
"""Set to try each operation; otherwise some of them, evenly spread, so that the suite stays short."""

Action = Callable[[GraphStore], object]


def some(places: Sequence[int], count: int) -> Sequence[int]:
    """Places to try, evenly spread."""
    return places if EVERY else places[:: max(1, -(-len(places) // count))]


def write(store: GraphStore) -> object:
    """Two tables, one of them forked by this very write."""
    return put_friends(store, {"bob": 7, "ada": 37}, [("ada", "bob")], "review")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A graph with a branch that has one fork, and a copy of it beside it. It is always tried where it was made: forks
    name their parent by its path."""
    path = tmp_path_factory.mktemp("model") / "graph"
    with new_graph(str(path)) as store:
        create_branch(store, "review")
        put_people(store, {"carl": 1}, "review")
    shutil.copytree(path, path.with_name("copy"))
    return path


class Bench:
    """Copies of one graph, on which an action is tried with a disk that fails."""

    def __init__(self, place: Path, action: Action) -> None:
        self.place, self.action = place, action
        with self.fresh() as store:
            self.before = observe(store)
            disk = Disk()
            with plugged(disk):
                action(store)
            self.after = observe(store)
        self.operations = disk.operations

    def fresh(self) -> GraphStore:
        shutil.rmtree(self.place)
        shutil.copytree(self.place.with_name("copy"), self.place)
        return open_store(self.place)

    def attempt(self, disk: Disk) -> str:
        """Run the action on a disk that fails, free the cause, and check that all is well; what came of it."""
        of_others = set(os_locks._open_descriptors)
        with self.fresh() as store:
            told = "done"
            with plugged(disk):
                try:
                    self.action(store)
                except OmniGraphError as error:
                    told = error.message
            kept = {descriptor for _, descriptor in store.leases._keeper._kept.values()}
            assert not os_locks._open_descriptors - kept - of_others, "a lock is left open"
            assert store.leases.list_live() == [], "a lease is left"
            put_people(store, {"next": 1}, "main")
            seen = self._without_next(observe(store))
        with open_store(self.place) as reopened:
            assert reopened.sidecars.list() == []
            seen = self._without_next(observe(reopened))
            assert seen in (self.before, self.after), "something between the state before and the state after"
            assert told != "done" or seen == self.after, "acknowledged and not there"
            check_pins_are_heads(reopened)
            check_history(reopened)
            put_friends(reopened, {"zoe": 1}, [("zoe", "ada")], "review")
        return told

    def _without_next(self, content: GraphContent) -> GraphContent:
        return {
            branch: {key: [row for row in rows if row[0] != "next"] for key, rows in tables.items()}
            for branch, tables in content.items()
        }


def test_a_write_on_a_disk_that_is_full_from_each_operation_on(model: Path) -> None:
    bench = Bench(model, write)
    refused = CAUSES["ENOSPC"][1]
    assert refused is not None
    places = [number for number, name in enumerate(bench.operations, 1) if name in refused]
    assert len(places) > 12
    for number in some(places, 10):
        told = bench.attempt(full_from(number, "ENOSPC"))
        assert told == "done" or "free some space" in told, told


def test_a_write_over_its_quota(model: Path) -> None:
    bench = Bench(model, write)
    places = [number for number, name in enumerate(bench.operations, 1) if name in ("pwrite", "put", "write_fragments")]
    for number in some(places, 4):
        told = bench.attempt(full_from(number, "EDQUOT"))
        assert told == "done" or "free some space" in told, told


def test_a_write_without_descriptors(model: Path) -> None:
    bench = Bench(model, write)
    for number in some(range(1, len(bench.operations) + 1), 6):
        told = bench.attempt(full_from(number, "EMFILE"))
        assert told == "done" or "ulimit -n" in told, told


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_write_that_meets_a_bad_block(model: Path, after: bool) -> None:
    bench = Bench(model, write)
    for number in some(range(2 if after else 1, len(bench.operations) + 1), 10):
        bench.attempt(failing_once(number, "EIO", after=after))


def test_opening_and_recovering_on_a_full_disk(model: Path, tmp_path: Path) -> None:
    bench = Bench(model, lambda store: None)
    bench.fresh().close()
    run_killed(work, str(model), "main", at="write.table_committed")
    crashed = shutil.copytree(model, tmp_path / "crashed")
    disk = Disk()
    with plugged(disk):
        open_store(model).close()
    places = [n for n, name in enumerate(disk.operations, 1) if name in ("pwrite", "put", "write_fragments", "commit")]
    of_others = set(os_locks._open_descriptors)
    for number in some(places, 6):
        shutil.rmtree(model)
        shutil.copytree(crashed, model)
        told = "free some space"
        with plugged(full_from(number, "ENOSPC")):
            try:
                open_store(model).close()
            except OmniGraphError as error:
                told = error.message
        assert "free some space" in told
        assert not os_locks._open_descriptors - of_others
        with open_store(model) as store:
            assert store.sidecars.list() == []
            assert [row.kind.value for row in store.audit.list()] == ["RolledBack"]
            check_pins_are_heads(store)
            check_history(store)
            assert observe(store) == bench.before
