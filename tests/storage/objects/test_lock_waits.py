"""Waiting for a lock in the kernel: woken at once, given up in time, and nothing is held afterwards."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from omnigraph.storage.objects import lock_waits, os_locks
from omnigraph.storage.objects.os_locks import close, fair_lock, is_free, try_lock, unlock_and_remove


def lock_threads() -> int:
    return sum(thread.name == "omnigraph-lock" for thread in threading.enumerate())


def until_free_of_waiters() -> None:
    deadline = time.monotonic() + 30
    while lock_threads():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def test_who_waits_sleeps_until_the_lock_is_free(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "lock"
    held = try_lock(path)
    assert held is not None
    found: list[int | None] = []
    # Nobody may look at the lock again and again: the kernel tells.
    monkeypatch.setattr(os_locks, "_locks_by_looking", None)
    waiter = threading.Thread(target=lambda: found.append(fair_lock(path, 60.0)))
    waiter.start()
    while not lock_threads():
        time.sleep(0.001)
    assert found == []
    close(held)
    waiter.join()
    assert found[0] is not None
    assert not is_free(path)
    close(found[0])
    assert is_free(path)
    until_free_of_waiters()


def test_who_gave_up_does_not_get_the_lock_later(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    held = try_lock(path)
    assert held is not None
    before = set(os_locks._open_descriptors)
    assert fair_lock(path, 0.1) is None
    close(held)
    # The call that was given up gets the lock now, and lets it go with its file.
    until_free_of_waiters()
    assert is_free(path)
    assert os_locks._open_descriptors <= before - {held}


def test_an_interrupted_wait_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "lock"
    held = try_lock(path)
    assert held is not None
    before = set(os_locks._open_descriptors)

    def interrupted() -> bool:
        raise KeyboardInterrupt

    monkeypatch.setattr(lock_waits, "_LOOK_UP_SECONDS", 0.01)
    descriptor = os_locks._open(path)
    with pytest.raises(KeyboardInterrupt):
        lock_waits.lock_within(
            descriptor, os_locks.fcntl.LOCK_EX, time.monotonic() + 60, close=os_locks._close, wanted=interrupted
        )
    close(held)
    until_free_of_waiters()
    assert is_free(path)
    assert os_locks._open_descriptors <= before - {held}


def test_who_waits_for_a_file_that_was_taken_away_goes_on_with_the_new_one(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    held = try_lock(path)
    assert held is not None
    found: list[int | None] = []
    waiter = threading.Thread(target=lambda: found.append(try_lock(path, 60.0)))
    waiter.start()
    while not lock_threads():
        time.sleep(0.001)
    # As `take_away` does: the holder keeps a lock on what is no longer there.
    path.unlink()
    waiter.join()
    assert found[0] is not None
    close(held)
    unlock_and_remove(path, found[0])
    until_free_of_waiters()


def test_without_a_thread_to_wait_with_the_lock_is_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "lock"
    held = try_lock(path)
    assert held is not None

    def no_thread(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(lock_waits._Waiter, "start", no_thread)
    assert try_lock(path, 0.05) is None
    close(held)
    again = try_lock(path, 1.0)
    assert again is not None
    close(again)
