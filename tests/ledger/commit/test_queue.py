"""The queue of a branch: turns in order, only those wait that meet, nobody is forgotten."""

from __future__ import annotations

import threading
import time

import pytest

from omnigraph.config import override
from omnigraph.errors import Busy
from omnigraph.ledger.commit.queue import EVERYTHING, Footprint, WriteQueue

A, B, C = "node:A", "node:B", "edge:C"


def writes(*tables: str, reads: tuple[str, ...] = ()) -> Footprint:
    return Footprint(frozenset(tables), frozenset(reads))


@pytest.fixture
def queue(request: pytest.FixtureRequest) -> WriteQueue:
    return WriteQueue(f"memory://{request.node.name}")


def waiting_for(queue: WriteQueue, count: int) -> None:
    deadline = time.monotonic() + 90
    while queue.waiting("main") < count:
        assert time.monotonic() < deadline
        time.sleep(0.001)


def test_two_writes_meet_when_one_writes_what_the_other_touches():
    assert writes(A).meets(writes(A))
    assert writes(A).meets(writes(C, reads=(A, B)))
    assert writes(C, reads=(A, B)).meets(writes(A))
    assert not writes(A).meets(writes(B))
    assert not writes(B, reads=(A,)).meets(writes(C, reads=(A,)))
    assert EVERYTHING.meets(writes(A))
    assert writes(A).meets(EVERYTHING)


def test_turns_come_in_the_order_of_arrival(queue: WriteQueue):
    order: list[int] = []

    def one(number: int) -> None:
        with queue.turn("main", writes(A)):
            order.append(number)

    threads = [threading.Thread(target=one, args=(number,)) for number in range(12)]
    with queue.turn("main", EVERYTHING):
        for number, thread in enumerate(threads):
            thread.start()
            waiting_for(queue, number + 2)
    for thread in threads:
        thread.join()
    assert order == list(range(12))
    assert queue.waiting("main") == 0


def test_a_write_of_other_tables_or_branches_does_not_wait(queue: WriteQueue):
    with queue.turn("main", writes(A)), queue.turn("main", writes(B)), queue.turn("review", EVERYTHING):
        assert queue.waiting("main") == 2


def test_a_writer_of_everything_is_not_overtaken_for_ever(queue: WriteQueue):
    """A write that meets one that waits queues behind it, although nobody who runs touches its tables."""
    order: list[str] = []

    def one(name: str, footprint: Footprint) -> None:
        with queue.turn("main", footprint):
            order.append(name)

    with queue.turn("main", writes(A)):
        large = threading.Thread(target=one, args=("large", EVERYTHING))
        large.start()
        waiting_for(queue, 2)
        small = threading.Thread(target=one, args=("small", writes(B)))
        small.start()
        waiting_for(queue, 3)
        assert order == []
    large.join()
    small.join()
    assert order == ["large", "small"]


def refused(queue: WriteQueue) -> list[str]:
    """What another thread is told that asks for a turn and does not get one."""
    told: list[str] = []

    def ask() -> None:
        try:
            with queue.turn("main", writes(A)):
                told.append("")
        except Busy as busy:
            told.append(busy.message)

    with override(queue_wait_seconds=0.05):
        thread = threading.Thread(target=ask)
        thread.start()
        thread.join()
    return told


def test_handles_on_one_graph_share_their_queue(queue: WriteQueue, request: pytest.FixtureRequest):
    other = WriteQueue(f"memory://{request.node.name}")
    with queue.turn("main", writes(A)):
        assert "still at work" in refused(other)[0]
    with other.turn("main", writes(A)):
        assert queue.waiting("main") == 1


def test_a_write_inside_a_write_of_its_thread_waits_for_nobody(queue: WriteQueue):
    started = threading.Event()

    def behind() -> None:
        started.set()
        with queue.turn("main", EVERYTHING):
            pass

    thread = threading.Thread(target=behind)
    with queue.turn("main", writes(A)):
        thread.start()
        started.wait()
        waiting_for(queue, 2)
        with queue.turn("main", writes(A)):
            assert queue.waiting("main") == 3
    thread.join()


def test_who_gives_up_leaves_no_place_behind(queue: WriteQueue):
    with queue.turn("main", writes(A)):
        assert "still at work" in refused(queue)[0]
        assert queue.waiting("main") == 1
    with queue.turn("main", writes(A)):
        pass


def test_an_error_in_a_turn_lets_the_next_one_go(queue: WriteQueue):
    with pytest.raises(ZeroDivisionError), queue.turn("main", writes(A)):
        _ = 1 / 0
    with queue.turn("main", writes(A)):
        pass


def test_riders_are_taken_along_in_order_and_up_to_a_bound(queue: WriteQueue):
    carried: list[object] = []
    done: list[str] = []

    def ride(name: str) -> None:
        with queue.turn_or_ride("main", writes(A), name) as turn:
            if turn is not None:
                carried.append([name, *turn.along(2)])
            done.append(name)

    threads = [threading.Thread(target=ride, args=(name,)) for name in "abcde"]
    with queue.turn("main", EVERYTHING):
        for number, thread in enumerate(threads):
            thread.start()
            waiting_for(queue, number + 2)
    for thread in threads:
        thread.join()
    assert carried == [["a", "b", "c"], ["d", "e"]]
    assert sorted(done) == list("abcde")
