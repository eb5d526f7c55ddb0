"""Ctrl-C while a write is between its sidecar and its end: noted, and delivered when the write is finished.

Python delivers `KeyboardInterrupt` in the main thread only, between any two instructions. Between two table commits
that would leave work for recovery, although nothing is wrong. Cancelling an asyncio task or dropping a client's
connection never reaches into synchronous code, so they are deferred by themselves.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def deferred_interrupts() -> Iterator[None]:
    """Hold SIGINT back for the duration of the block, then hand it to whoever handled it before."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGINT)
    if before is None:
        # Installed by something outside Python: it cannot be put back afterwards.
        yield
        return
    noted: list[FrameType | None] = []

    def note(_: int, frame: FrameType | None) -> None:
        noted.append(frame)

    signal.signal(signal.SIGINT, note)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if noted and callable(before):
            # Not raised anew: an event loop hears of each signal a second way and would take it for two.
            before(signal.SIGINT, noted[0])
        elif noted:
            signal.raise_signal(signal.SIGINT)
