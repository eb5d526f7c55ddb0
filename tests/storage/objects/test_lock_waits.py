"""Waiting in line for a lock, in the kernel: woken at once, given up in time, and nothing is held afterwards."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from omnigraph.storage.objects import lock_waits, os_locks
from omnigraph.storage.objects.os_locks import close, fair_lock, is_free, try_lock


def in_the_kernel() -> int:
    return sum(thread.name == "omnigraph-lock" for thread in threading.enumerate())


def until(condition: bool) -> None:
    deadline = time.monotonic() + 60
    while (in_the_kernel() > 0) is not condition:
        assert time.monotonic() < deadline
        time.sleep(0.002)


class Line:
    """A lock that somebody holds, and one who waits for it: whoever comes now is second in line."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.held = try_lock(path)
        assert self.held is not None
        self.first: list[int | None] = []
        self.waiter = threading.Thread(target=lambda: self.first.append(fair_lock(path, 60.0)))
        self.waiter.start()
        while os_locks.nobody_waits(path):
            time.sleep(0.001)

    def release(self) -> None:
        """The holder lets go, and the first in line has it."""
        assert self.held is not None
        close(self.held)
        self.waiter.join()
        assert self.first[0] is not None


@pytest.fixture
def line(tmp_path: Path) -> Line:
    return Line(tmp_path / "lock")


def test_who_is_second_in_line_sleeps_until_the_first_has_it(line: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    # The ticket before its own is not looked at again and again.
    monkeypatch.setattr(os_locks, "_TICKET_PAUSE_SECONDS", None)
    found: list[int | None] = []
    second = threading.Thread(target=lambda: found.append(fair_lock(line.path, 60.0)))
    second.start()
    until(True)
    assert found == []
    line.release()
    assert line.first[0] is not None
    close(line.first[0])
    second.join()
    assert found[0] is not None
    assert not is_free(line.path)
    close(found[0])
    assert is_free(line.path)
    until(False)


def test_who_is_next_sleeps_until_the_holder_gives_the_lock_back(line: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    line.release()
    looks: list[float] = []
    locks_at_once = os_locks._locks_at_once
    monkeypatch.setattr(os_locks, "_locks_at_once", lambda d: looks.append(time.monotonic()) or locks_at_once(d))
    found: list[int | None] = []
    second = threading.Thread(target=lambda: found.append(fair_lock(line.path, 60.0)))
    second.start()
    until(True)
    looks.clear()
    time.sleep(0.05)
    # It looks at the lock once it is free, and not while somebody has it.
    assert looks == []
    assert line.first[0] is not None
    os_locks.unlock(line.first[0])
    second.join()
    assert found[0] is not None
    assert not os_locks.lock_again(line.path, line.first[0])
    close(found[0])
    assert list(line.path.parent.glob("lock.[!l]*")) == [], "a ticket is left"


def test_who_gave_up_is_in_nobodys_way(line: Line) -> None:
    before = set(os_locks._open_descriptors)
    assert fair_lock(line.path, 0.05) is None
    assert in_the_kernel() == 1
    line.release()
    assert line.first[0] is not None
    close(line.first[0])
    # The call that was given up returns now, and its file is closed.
    until(False)
    assert is_free(line.path)
    assert os_locks._open_descriptors <= before


def test_without_a_thread_to_wait_with_the_ticket_is_looked_at(line: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_thread(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(lock_waits._Waiter, "start", no_thread)
    assert fair_lock(line.path, 0.05) is None
    line.release()
    assert line.first[0] is not None
    close(line.first[0])
    last = fair_lock(line.path, 60.0)
    assert last is not None
    close(last)
