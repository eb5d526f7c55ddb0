"""Locks go to who has waited for longest, and to nobody who has gone."""

from __future__ import annotations

import threading
import time

import pytest

from omnigraph.ledger.commit.fair_locks import FairLocks


def _wait_until(locks: FairLocks, name: str, waiting: int) -> None:
    until = time.monotonic() + 30.0
    while locks.waiting(name) != waiting:
        assert time.monotonic() < until
        time.sleep(0.001)


def test_they_come_in_the_order_in_which_they_were_asked_for() -> None:
    locks = FairLocks()
    order: list[int] = []

    def work(number: int) -> None:
        with locks.held("a", 30.0) as has_it:
            assert has_it
            order.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(20)]
    with locks.held("a", 0.0):
        for number, thread in enumerate(threads):
            thread.start()
            _wait_until(locks, "a", number + 1)
    for thread in threads:
        thread.join(30.0)
    assert order == list(range(20))
    assert not len(locks)


def test_who_comes_again_at_once_is_behind_those_who_wait() -> None:
    locks = FairLocks()
    order: list[str] = []

    def other() -> None:
        with locks.held("a", 30.0):
            order.append("other")

    thread = threading.Thread(target=other)
    with locks.held("a", 0.0):
        thread.start()
        _wait_until(locks, "a", 1)
    with locks.held("a", 30.0):
        order.append("again")
    thread.join(30.0)
    assert order == ["other", "again"]


def test_other_names_are_other_locks() -> None:
    locks = FairLocks()
    with locks.held("a", 0.0) as first, locks.held("b", 0.0) as second:
        assert first
        assert second
        assert len(locks) == 2
    assert not len(locks)


def test_who_gave_up_waiting_leaves_no_trace() -> None:
    locks = FairLocks()
    with locks.held("a", 0.0):
        with locks.held("a", 0.02) as has_it:
            assert not has_it
        assert locks.waiting("a") == 0
    with locks.held("a", 0.0) as has_it:
        assert has_it


def test_one_that_is_handed_over_while_its_waiter_gives_up_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads whose patience ends at about the time at which the lock is given back, many times."""
    locks = FairLocks()
    inside: list[int] = []

    def work(number: int) -> None:
        for turn in range(150):
            with locks.held("a", 0.0001 * (number + turn % 5)) as has_it:
                if has_it:
                    inside.append(number)
                    assert len(inside) == 1
                    time.sleep(0.0001 * (turn % 4))
                    inside.pop()

    failed: list[BaseException] = []
    monkeypatch.setattr(threading, "excepthook", lambda args: failed.append(args.exc_value))
    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60.0)
        assert not thread.is_alive()
    assert not failed
    assert not len(locks)


@pytest.mark.parametrize("when", ["while it waits", "right after it was handed over"])
def test_an_interrupted_waiter_passes_on_what_it_was_handed(when: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C comes in the very instant; the place in the line is a lock whose second `acquire` is the wait."""
    holder = locks_held = None

    class Interrupted:
        def __init__(self) -> None:
            self._acquired = 0

        def acquire(self, timeout: float = -1) -> bool:
            self._acquired += 1
            if self._acquired == 2:
                if when == "right after it was handed over":
                    holder.__exit__(None, None, None)
                raise KeyboardInterrupt
            return True

        def release(self) -> None:
            pass

    locks = FairLocks()
    holder = locks.held("a", 0.0)
    assert holder.__enter__()
    with monkeypatch.context() as patched:
        patched.setattr(threading, "Lock", Interrupted)
        with pytest.raises(KeyboardInterrupt), locks.held("a", 1.0) as locks_held:
            pass
    assert locks_held is None
    if when == "while it waits":
        assert locks.waiting("a") == 0
        holder.__exit__(None, None, None)
    assert not len(locks)
    with locks.held("a", 0.0) as has_it:
        assert has_it
