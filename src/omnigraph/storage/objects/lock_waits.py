"""Waiting for a lock of the operating system without looking at it again and again.

The kernel wakes who waits the moment the lock is free. To look every half millisecond instead took a waiting process
5 ms of processor time for each write of another one, a quarter of what the write itself takes, on cores that were
needed for it. But `flock` knows no deadline: so another thread waits in the kernel, and this one waits for that thread.
"""

from __future__ import annotations

import fcntl
import threading
import time
from collections.abc import Callable

_LOOK_UP_SECONDS = 0.25
"""How often who waits looks whether the file is still the one to wait for."""


def lock_within(
    descriptor: int, operation: int, deadline: float, *, close: Callable[[int], None], wanted: Callable[[], bool]
) -> bool | None:
    """Lock an open file (`LOCK_EX` or `LOCK_SH`) before the deadline; None when there is no thread to wait with.

    False: the deadline has passed, or `wanted` says that it is not this file any more. Then, and with any error, the
    descriptor is given up: it is closed by `close` as soon as nobody waits with it.
    """
    waiter = _Waiter(descriptor, operation, close)
    try:
        waiter.start()
    except RuntimeError:
        return None
    try:
        while not waiter.done.wait(min(_LOOK_UP_SECONDS, max(0.0, deadline - time.monotonic()))):
            if time.monotonic() >= deadline or not wanted():
                break
    except BaseException:
        waiter.give_up()
        raise
    if not waiter.done.is_set():
        waiter.give_up()
        return False
    if waiter.failure is not None:
        close(descriptor)
        raise waiter.failure
    return True


class _Waiter(threading.Thread):
    """One call of `flock` that may take long. A daemon: a program that ends does not wait for it."""

    def __init__(self, descriptor: int, operation: int, close: Callable[[int], None]) -> None:
        super().__init__(name="omnigraph-lock", daemon=True)
        self.done = threading.Event()
        self.failure: OSError | None = None
        self._descriptor = descriptor
        self._operation = operation
        self._close = close
        self._given_up = False
        self._guard = threading.Lock()

    def run(self) -> None:
        try:
            fcntl.flock(self._descriptor, self._operation)
        except OSError as error:
            self.failure = error
        with self._guard:
            self.done.set()
            given_up = self._given_up
        if given_up:
            self._close(self._descriptor)

    def give_up(self) -> None:
        """Close the descriptor: now, if the call has returned meanwhile, or when it does."""
        with self._guard:
            returned = self.done.is_set()
            self._given_up = True
        if returned:
            self._close(self._descriptor)
