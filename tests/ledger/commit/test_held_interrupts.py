"""Ctrl-C is held back while a write finishes, and reaches whoever handled it before, once."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator

import pytest

from omnigraph.ledger.commit.held_interrupts import deferred_interrupts


@pytest.fixture(autouse=True)
def handler_of_before() -> Iterator[None]:
    before = signal.getsignal(signal.SIGINT)
    yield
    signal.signal(signal.SIGINT, before)


def test_delivered_at_the_end_of_the_block() -> None:
    steps = []
    signal.signal(signal.SIGINT, signal.default_int_handler)

    def interrupted() -> None:
        with deferred_interrupts():
            signal.raise_signal(signal.SIGINT)
            steps.append("went on")

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert steps == ["went on"]


def test_handed_to_the_earlier_handler_once() -> None:
    heard: list[int] = []
    signal.signal(signal.SIGINT, lambda number, frame: heard.append(number))
    with deferred_interrupts():
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
        assert heard == []
    assert heard == [signal.SIGINT]
    signal.raise_signal(signal.SIGINT)
    assert len(heard) == 2


def test_ignored_stays_ignored() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with deferred_interrupts():
        signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN


def test_nested_blocks_deliver_after_the_outer_one() -> None:
    heard: list[int] = []
    signal.signal(signal.SIGINT, lambda number, frame: heard.append(number))
    with deferred_interrupts():
        with deferred_interrupts():
            signal.raise_signal(signal.SIGINT)
        assert heard == []
    assert heard == [signal.SIGINT]


def test_a_thread_of_its_own_never_gets_one() -> None:
    done = []

    def work() -> None:
        with deferred_interrupts():
            done.append(True)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert done == [True]
