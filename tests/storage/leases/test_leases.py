"""Leases: one holder at a time, found out when paused past its time, gone with a dead process."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import random
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from omnigraph.errors import Busy, LeaseLost
from omnigraph.storage.leases.lease_objects import pause
from omnigraph.storage.leases.leases import Leases, LeaseTimes
from omnigraph.storage.objects.objects import ObjectStore, open_objects
from omnigraph.storage.uri import parse_root
from tests.storage.processes import hold_lease, take_turns

SHORT = LeaseTimes(lease_seconds=2.0, renewal_seconds=0.2, clock_skew_seconds=0.1)
NEVER_RENEWED = LeaseTimes(lease_seconds=0.8, renewal_seconds=60, clock_skew_seconds=0.1)


def leases_of(objects: ObjectStore, times: LeaseTimes = SHORT) -> Leases:
    return Leases(objects.root, objects, times)


def test_one_holder_at_a_time(objects: ObjectStore) -> None:
    leases = leases_of(objects)
    with leases.acquire("branch/main", "writer 1") as held:
        held.check()
        with pytest.raises(Busy, match="writer 1") as busy:
            leases_of(objects).acquire("branch/main", "writer 2", wait=0.05)
        assert busy.value.details["owner"] == "writer 1"
        leases.acquire("branch/other", "writer 2", wait=0).release()
    leases.acquire("branch/main", "writer 2", wait=0).release()


def test_tokens_grow_from_holder_to_holder(objects: ObjectStore) -> None:
    leases = leases_of(objects)
    tokens = []
    for _ in range(5):
        with leases.acquire("a", "me") as held:
            tokens.append(held.token)
    assert tokens == sorted(set(tokens))


def test_who_holds_it_can_be_asked(objects: ObjectStore) -> None:
    leases = leases_of(objects)
    assert leases.is_live("write/1") is None
    with leases.acquire("write/1", "me") as first, leases.acquire("write/2", "you"), leases.acquire("other", "you"):
        found = leases.is_live("write/1")
        assert found is not None
        assert (found.owner, found.token, found.process) == ("me", first.token, os.getpid())
        assert [info.name for info in leases.list_live("write/")] == ["write/1", "write/2"]
        assert len(leases.list_live()) == 3
    assert leases.list_live() == []


def test_a_released_lease_is_no_longer_held_and_releasing_twice_is_harmless(objects: ObjectStore) -> None:
    leases = leases_of(objects)
    first = leases.acquire("a", "me")
    first.release()
    with pytest.raises(LeaseLost):
        first.check()
    with leases.acquire("a", "you") as second:
        first.release()
        second.check()


def test_waiting_gets_it_when_the_holder_is_done(objects: ObjectStore) -> None:
    leases = leases_of(objects)
    held = leases.acquire("a", "me")
    threading.Timer(0.15, held.release).start()
    started = time.monotonic()
    leases.acquire("a", "you", wait=90).release()
    assert 0.1 < time.monotonic() - started < 60


def test_threads_exclude_each_other(objects: ObjectStore) -> None:
    leases = leases_of(objects, LeaseTimes())
    inside = 0
    most = 0

    def work(number: int) -> None:
        nonlocal inside, most
        with leases.acquire("a", f"thread {number}", wait=30):
            inside += 1
            most = max(most, inside)
            time.sleep(0.005)
            inside -= 1

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(12)))
    assert most == 1


def test_nothing_is_left_behind(objects: ObjectStore) -> None:
    leases = leases_of(objects)
    for number in range(20):
        leases.acquire(f"write/{number}", "me").release()
    assert objects.list("__locks") == []
    if objects.root.is_local:
        assert list(Path(objects.root.path, "__locks", "os").glob("*.lease")) == []


def test_long_and_odd_names(objects: ObjectStore) -> None:
    leases = leases_of(objects)
    names = ["x" * 400, "x" * 401, "a/b c", "../up", "ä%2F="]
    held = [leases.acquire(name, "me", wait=0) for name in names]
    assert sorted(info.name for info in leases.list_live()) == sorted(names)
    for one in held:
        one.release()


@pytest.mark.parametrize("kind", ["memory", pytest.param("s3", marks=pytest.mark.s3)])
class TestWithExpiry:
    """On an object store a lease lasts for a time and has to be renewed."""

    @pytest.fixture
    def store(self, kind: str, request: pytest.FixtureRequest) -> ObjectStore:
        if kind == "memory":
            return open_objects(parse_root(f"memory://{os.urandom(8).hex()}"))
        return open_objects(parse_root(request.getfixturevalue("s3_uri")()))

    def test_a_held_lease_is_renewed(self, store: ObjectStore) -> None:
        leases = leases_of(store)
        with leases.acquire("a", "me") as held:
            time.sleep(2.6)
            held.check()
            with pytest.raises(Busy):
                leases.acquire("a", "you", wait=0)

    def test_a_holder_paused_past_its_time_is_found_out(self, store: ObjectStore) -> None:
        paused = leases_of(store, NEVER_RENEWED).acquire("a", "paused")
        paused.check()
        successor = leases_of(store).acquire("a", "successor", wait=30)
        assert successor.token > paused.token
        with pytest.raises(LeaseLost, match="paused"):
            paused.check()
        paused.release()
        successor.check()
        successor.release()

    def test_a_holder_paused_past_its_time_knows_by_its_own_clock_before_anybody_took_over(
        self, store: ObjectStore
    ) -> None:
        paused = leases_of(store, NEVER_RENEWED).acquire("a", "paused")
        time.sleep(0.85)
        with pytest.raises(LeaseLost):
            paused.check()

    def test_a_lease_that_vanished_is_lost(self, store: ObjectStore) -> None:
        held = leases_of(store).acquire("a", "me")
        store.delete_prefix("__locks")
        with pytest.raises(LeaseLost):
            held.check()

    def test_an_expired_lease_has_no_live_holder_and_is_taken_by_one_only(self, store: ObjectStore) -> None:
        leases_of(store, NEVER_RENEWED).acquire("a", "gone")
        time.sleep(1.0)
        assert leases_of(store).is_live("a") is None
        won = []

        def take(number: int) -> None:
            with contextlib.suppress(Busy):
                won.append(leases_of(store).acquire("a", f"taker {number}", wait=0))

        threads = [threading.Thread(target=take, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(won) == 1
        won[0].release()


def test_nobody_starves_beside_a_writer_that_takes_the_lease_again_at_once() -> None:
    """A writer far from its store holds the lease for half a second and leaves a gap of a tenth, without end."""

    def waits(dice: random.Random) -> float:
        waited = dice.uniform(0.0, 0.6)
        for attempt in range(1000):
            if waited % 0.6 >= 0.5:
                return waited
            waited += pause(attempt, waited) * dice.uniform(0.5, 1.5)
        return waited

    assert max(waits(random.Random(seed)) for seed in range(300)) < 7.0


def test_a_killed_process_frees_its_lock(tmp_path: Path) -> None:
    root = parse_root(tmp_path / "graph")
    leases = Leases(root, open_objects(root))
    ready = tmp_path / "ready"
    child = multiprocessing.get_context("spawn").Process(target=hold_lease, args=(root.path, "a", str(ready)))
    child.start()
    deadline = time.monotonic() + 60
    while not ready.exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    holder = leases.is_live("a")
    assert holder is not None
    assert holder.process == child.pid
    with pytest.raises(Busy, match="child"):
        leases.acquire("a", "me", wait=0)
    assert child.pid is not None
    os.kill(child.pid, signal.SIGKILL)
    child.join(90)
    assert leases.is_live("a") is None
    assert leases.list_live() == []
    with leases.acquire("a", "me", wait=60) as mine:
        assert mine.token > holder.token


def test_what_a_dead_holder_left_is_swept_and_the_living_stay(tmp_path: Path) -> None:
    root = parse_root(tmp_path)
    leases = Leases(root, open_objects(root))
    directory = tmp_path / "__locks" / "os"
    directory.mkdir(parents=True)
    (directory / "dead.lease").write_bytes(b"{}")
    with leases.acquire("alive", "me") as held:
        assert leases.sweep() == 1
        held.check()
    assert list(directory.glob("*.lease")) == []


@pytest.mark.filterwarnings("ignore:lance is not fork-safe")
def test_a_forked_child_does_not_keep_its_parents_lock(tmp_path: Path) -> None:
    root = parse_root(tmp_path)
    leases = Leases(root, open_objects(root))
    held = leases.acquire("a", "parent")
    child = os.fork()
    if child == 0:
        time.sleep(2)
        os._exit(0)
    try:
        held.release()
        leases.acquire("a", "next", wait=0).release()
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def test_a_lock_whose_file_was_removed_is_lost(tmp_path: Path) -> None:
    root = parse_root(tmp_path)
    held = Leases(root, open_objects(root)).acquire("a", "me")
    for path in (tmp_path / "__locks" / "os").glob("*.lease"):
        path.unlink()
    with pytest.raises(LeaseLost):
        held.check()
    held.release()


def test_processes_take_turns_though_each_release_removes_the_file(tmp_path: Path) -> None:
    """The race between removing a lock file and locking it would show as a lost count."""
    (tmp_path / "counter").write_text("0")
    spawn = multiprocessing.get_context("spawn")
    workers = [spawn.Process(target=take_turns, args=(str(tmp_path), 40)) for _ in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(90)
        assert worker.exitcode == 0
    assert (tmp_path / "counter").read_text() == "120"


def test_those_who_wait_get_it_in_the_order_in_which_they_came(tmp_path: Path) -> None:
    objects = open_objects(parse_root(tmp_path))
    got: list[int] = []

    def wait_for_it(number: int) -> None:
        with leases_of(objects).acquire("window", f"waiter {number}", wait=60):
            got.append(number)

    held = leases_of(objects).acquire("window", "me", again=True)
    lines = tmp_path / "__locks" / "os"
    waiters = [threading.Thread(target=wait_for_it, args=(number,)) for number in range(5)]
    for number, waiter in enumerate(waiters):
        waiter.start()
        while len(list(lines.glob("*.lease.*[0-9a-f]"))) <= number or not list(lines.glob("*.line")):
            time.sleep(0.001)
        time.sleep(0.02)
    held.release()
    for waiter in waiters:
        waiter.join(60)
    assert got == list(range(5))


def test_a_lease_that_is_taken_again_leaves_a_file_that_nobody_holds(tmp_path: Path) -> None:
    objects = open_objects(parse_root(tmp_path))
    leases, other = leases_of(objects), leases_of(objects)
    files = tmp_path / "__locks" / "os"
    first = leases.acquire("window", "me", again=True)
    token = first.token
    first.release()
    assert len(list(files.glob("*.lease"))) == 1
    assert other.list_live() == []
    with leases.acquire("window", "me", again=True) as again:
        assert again.token > token
        with pytest.raises(Busy):
            other.acquire("window", "somebody else", wait=0.05)
    assert other.sweep() == 1, "who clears up removes it"
    with other.acquire("window", "somebody else"), pytest.raises(Busy):
        leases.acquire("window", "me", wait=0.05, again=True)
    with leases.acquire("window", "me", again=True) as last:
        last.check()
    leases.close()
    assert list(files.glob("*.lease")) == []
