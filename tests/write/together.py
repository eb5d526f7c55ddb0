"""Writes that wait behind each other in a known order, so that they run as one combined commit (or one by one)."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

from omnigraph.ledger.commit.queue import EVERYTHING
from omnigraph.ledger.store import GraphStore


def in_line(store: GraphStore, work: Sequence[Callable[[], object]], branch: str = "main") -> list[object]:
    """Start functions in threads while somebody else has the turn, one behind the other, and then let them go.

    What each returned, or the error that it raised.
    """
    results: list[object] = [None] * len(work)

    def one(number: int) -> None:
        try:
            results[number] = work[number]()
        except Exception as error:
            results[number] = error

    threads = [threading.Thread(target=one, args=(number,)) for number in range(len(work))]
    with store.queue.turn(branch, EVERYTHING):
        for number, thread in enumerate(threads):
            thread.start()
            deadline = time.monotonic() + 60
            while store.queue.waiting(branch) < number + 2:
                assert time.monotonic() < deadline, "a writer did not join the queue"
                time.sleep(0.001)
    for thread in threads:
        thread.join()
    return results
