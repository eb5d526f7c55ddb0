"""Waiting for a lock of the operating system without looking at it again and again.

The kernel wakes who waits the moment the lock is free. To look every two milliseconds instead took processes that wait
in line some milliseconds of processor time for each write of another one, on cores that were needed for it. But `flock`
knows no deadline: so another thread waits in the kernel, and this one waits for that thread.
"""

from __future__ import annotations

import fcntl
import threading
import time
from collections.abc import Callable


def lock_within(descriptor: int, operation: int, deadline: float, *, close: Callable[[int], None]) -> bool | None:
    """Wait until an open file could be locked (`LOCK_EX` or `LOCK_SH`), before the deadline; whether it could.

    Either way the descriptor is closed by `close`, and the lock given up with it, as soon as nobody waits any more:
    after a deadline that is when the lock is free. None, with the descriptor as it was, when there is no thread to
    wait with.
    """
    waiter = _Waiter(descriptor, operation, close)
    try:
        waiter.start()
    except RuntimeError:
        return None
    if not waiter.done.wait(max(0.0, deadline - time.monotonic())):
        return False
    if waiter.failure is not None:
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

    def run(self) -> None:
        try:
            fcntl.flock(self._descriptor, self._operation)
        except OSError as error:
            self.failure = error
        finally:
            self._close(self._descriptor)
        self.done.set()
