"""Who has waited longer than usual for the window has one write in its turn."""

from __future__ import annotations

from omnigraph.ledger.commit.queue import WriteQueue


def test_a_wait_is_late_when_it_is_longer_than_those_before_it() -> None:
    queue = WriteQueue("graph")
    assert not any(queue.note_waited("main", 0.1) for _ in range(10))
    assert queue.note_waited("main", 0.2)
    assert not queue.note_waited("main", 0.1)


def test_what_stays_long_is_usual_before_long() -> None:
    queue = WriteQueue("graph")
    for _ in range(10):
        queue.note_waited("main", 0.1)
    late = [queue.note_waited("main", 0.2) for _ in range(20)]
    assert late[0]
    assert not late[-1]


def test_who_need_not_wait_says_nothing_about_others() -> None:
    queue = WriteQueue("graph")
    for _ in range(10):
        queue.note_waited("main", 0.1)
        assert not queue.note_waited("main", 0.0001)
    assert not queue.note_waited("main", 0.1)
    assert not queue.note_waited("review", 0.5), "each branch has its own line"
