"""What a running query answers to: somebody who cancels it, the time it may take, and the memory it may hold."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from omnigraph.errors import BadRequest, Cancelled, QueryTimeout, ResourceLimit
from omnigraph.query.evaluate.room import room_of


class CancelToken:
    """Cancel from any thread; the query stops at its next step with `Cancelled`."""

    def __init__(self) -> None:
        self._event = threading.Event()

    def cancel(self) -> None:
        """Ask the query to stop."""
        self._event.set()

    @property
    def cancelled(self) -> bool:
        """Whether somebody has asked."""
        return self._event.is_set()

    def check(self) -> None:
        """Stop here if somebody has asked."""
        if self._event.is_set():
            raise Cancelled("the query was cancelled; nothing was changed")


class StopSign:
    """What a query looks at between its steps: whether it was cancelled, and whether its time is over."""

    def __init__(self, token: CancelToken | None = None, timeout: float | None = None) -> None:
        """`timeout` is in seconds from now."""
        if timeout is not None and not (isinstance(timeout, int | float) and timeout > 0):
            raise BadRequest(f"timeout must be a number of seconds above 0 and is {timeout!r}")
        self._token = token
        self._timeout = timeout
        self._end = None if timeout is None else time.monotonic() + timeout

    @property
    def can_come(self) -> bool:
        """Whether there is anything that may stop the query."""
        return self._token is not None or self._end is not None

    @property
    def is_up(self) -> bool:
        """Whether it is time to stop."""
        cancelled = self._token is not None and self._token.cancelled
        return cancelled or (self._end is not None and time.monotonic() > self._end)

    def check(self) -> None:
        """Stop here with `Cancelled` or `QueryTimeout` if it is time to."""
        if self._token is not None:
            self._token.check()
        if self._end is not None and time.monotonic() > self._end:
            raise QueryTimeout(
                f"the query did not finish within {self._timeout:g} s; make the match more selective, add a limit, or "
                "give it more time",
                timeout=self._timeout,
            )


class MemoryBudget:
    """Counts what a query holds, by purpose, and refuses what would go past the limit before it is allocated."""

    def __init__(self, limit: int) -> None:
        if not isinstance(limit, int) or isinstance(limit, bool) or limit <= 0:
            raise BadRequest(f"memory_limit must be a whole number of bytes above 0 and is {limit!r}")
        self.limit = limit
        self.peak = 0
        self._held: dict[str, int] = {}

    @property
    def room(self) -> int:
        """How much more may be held."""
        return max(0, self.limit - sum(self._held.values()))

    def hold(self, purpose: str, size: int) -> None:
        """Say how much is held for a purpose now."""
        self._held[purpose] = size
        self.expect(purpose, 0)

    def expect(self, purpose: str, size: int) -> None:
        """Ask for so much more; an error when it would be too much."""
        total = sum(self._held.values()) + size
        self.peak = max(self.peak, total)
        if total > self.limit:
            raise ResourceLimit(
                f"the query needs about {_megabytes(total)} for {purpose} and may hold {_megabytes(self.limit)}; "
                "make the match more selective, add a limit, or raise OMNIGRAPH_QUERY_MEMORY",
                limit="query_memory",
                limit_value=self.limit,
                needed=total,
                purpose=purpose,
            )


@contextmanager
def within_memory(memory: MemoryBudget) -> Iterator[None]:
    """What is computed takes no more than the budget has left.

    What the machine itself refuses (Arrow and NumPy raise `MemoryError`) is a limit that was reached, too.
    """
    try:
        with room_of(lambda: memory.room):
            yield
    except MemoryError as shortage:
        raise ResourceLimit(
            f"the machine has no memory left for this query, which holds about {_megabytes(memory.peak)} already; "
            "make the match more selective, add a limit, or run it where there is more memory",
            limit="machine_memory",
            needed=memory.peak,
        ) from shortage


def _megabytes(size: int) -> str:
    return f"{size / (1 << 20):.1f} MB"
