"""A process with many writers passes the lease of a branch on among them, for so long, and loses it to nobody."""

from __future__ import annotations

import threading
import time
from functools import partial
from pathlib import Path

import pytest

from omnigraph.errors import ExpectedVersionMismatch, TableMoved
from omnigraph.ledger.commit import passed_on
from omnigraph.ledger.commit.passed_on import MOST_PASSED_ON
from omnigraph.ledger.commit.window import CommitWindows, lease_name
from omnigraph.ledger.store import GraphStore, create_store
from omnigraph.ledger.values import BranchRef
from omnigraph.storage.leases.leases import Leases
from omnigraph.storage.objects.objects import open_objects
from omnigraph.storage.uri import parse_root
from omnigraph.write.mutate.mutate import mutate
from tests.write.graphs import SCHEMA, ids
from tests.write.together import in_line

MAIN = BranchRef("main", "01M", None)
MANY = MOST_PASSED_ON + 5
INSERT = "query q($s: String) { insert Person { slug: $s } }"


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """However slow the machine is, what is passed on waits for the next step of the test."""
    monkeypatch.setattr(passed_on, "UNTAKEN_SECONDS", 60.0)
    monkeypatch.setattr(passed_on, "IN_LINE_SECONDS", 60.0)


@pytest.fixture
def leases(path: str) -> Leases:
    root = parse_root(path)
    return Leases(root, open_objects(root))


@pytest.fixture
def windows(path: str, leases: Leases) -> CommitWindows:
    return CommitWindows(parse_root(path).uri, leases)


def enter(windows: CommitWindows, *, more: int) -> int:
    """Hold the window once while so many others wait; the token of its lease."""
    with windows.enter(MAIN, ["node:A"], more_wait=lambda: more) as held:
        return held.lease.token


def test_it_is_the_same_lease_as_long_as_more_wait_and_free_afterwards(windows: CommitWindows, leases: Leases) -> None:
    first = enter(windows, more=MANY)
    assert leases.is_live(lease_name(MAIN)) is not None, "between two writers too"
    assert enter(windows, more=MANY) == first
    assert enter(windows, more=0) == first
    assert leases.is_live(lease_name(MAIN)) is None
    assert enter(windows, more=0) > first


def test_others_have_their_turn_after_so_many(windows: CommitWindows, leases: Leases) -> None:
    tokens = [enter(windows, more=MANY) for _ in range(MOST_PASSED_ON + 1)]
    assert len(set(tokens)) == 1
    assert leases.is_live(lease_name(MAIN)) is None


def test_a_process_has_as_many_writes_in_its_turn_as_it_has_writers(windows: CommitWindows) -> None:
    tokens = [enter(windows, more=2) for _ in range(9)]
    assert [tokens.count(token) for token in dict.fromkeys(tokens)] == [3, 3, 3]


def test_who_comes_first_by_chance_does_not_shorten_the_turn(windows: CommitWindows) -> None:
    with windows.enter(MAIN, ["node:A"]) as upkeep:
        writer = threading.Thread(target=enter, args=(windows,), kwargs={"more": 4})
        writer.start()
        wait_in_line(windows, 1)
    writer.join()
    tokens = [enter(windows, more=4) for _ in range(3)]
    assert {*tokens} == {upkeep.lease.token}
    assert enter(windows, more=4) != upkeep.lease.token


def test_who_waits_for_the_window_gets_the_lease_that_is_there(windows: CommitWindows, leases: Leases) -> None:
    found: list[int] = []
    with windows.enter(MAIN, ["node:A"]) as held:
        next_one = threading.Thread(target=lambda: found.append(enter(windows, more=0)))
        next_one.start()
        wait_in_line(windows, 1)
    next_one.join()
    assert found == [held.lease.token]
    assert leases.is_live(lease_name(MAIN)) is None


def test_a_write_that_lost_leaves_the_lease_to_the_next(windows: CommitWindows, leases: Leases) -> None:
    first = enter(windows, more=MANY)
    with pytest.raises(TableMoved), windows.enter(MAIN, ["node:A"], more_wait=lambda: MANY):
        raise TableMoved("moved", ExpectedVersionMismatch("node:A", 1, 2))
    assert leases.is_live(lease_name(MAIN)) is not None
    assert enter(windows, more=0) == first


def wait_in_line(windows: CommitWindows, count: int) -> None:
    """Until so many wait for the window of `main` that somebody holds."""
    deadline = time.monotonic() + 90
    while windows.waiting(MAIN) < count:
        assert time.monotonic() < deadline
        time.sleep(0.001)


def test_what_nobody_takes_is_given_back(
    windows: CommitWindows, leases: Leases, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(passed_on, "UNTAKEN_SECONDS", 0.05)
    enter(windows, more=MANY)
    deadline = time.monotonic() + 90
    while leases.is_live(lease_name(MAIN)) is not None:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_lease_that_was_lost_meanwhile_is_not_taken(windows: CommitWindows, leases: Leases) -> None:
    first = enter(windows, more=MANY)
    leases.take_away(lease_name(MAIN))
    with leases.acquire(lease_name(MAIN), "another process"):
        pass
    assert enter(windows, more=0) != first


def test_a_failed_piece_of_work_gives_it_back(windows: CommitWindows, leases: Leases) -> None:
    with pytest.raises(ZeroDivisionError), windows.enter(MAIN, ["node:A"], more_wait=lambda: MANY):
        raise ZeroDivisionError
    assert leases.is_live(lease_name(MAIN)) is None


def test_writers_that_wait_in_one_process_take_the_lease_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with create_store(tmp_path / "g", SCHEMA) as store:
        taken = counted_leases(store, monkeypatch)
        store.queue.note_lost("main")
        work = [partial(mutate, store, INSERT, params={"s": f"p{number}"}) for number in range(5)]
        assert not [result for result in in_line(store, work) if isinstance(result, Exception)]
        assert ids(store, "node:Person") == [f"p{number}" for number in range(5)]
        assert len(taken) == 1
        assert store.leases.is_live(taken[0]) is None


def counted_leases(store: GraphStore, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of leases of branches that are acquired from now on."""
    taken: list[str] = []
    acquire, guard = store.leases.acquire, threading.Lock()

    def counted(name: str, *args: object, **options: object) -> object:
        if name.startswith("branch-"):
            with guard:
                taken.append(name)
        return acquire(name, *args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(store.leases, "acquire", counted)
    return taken
