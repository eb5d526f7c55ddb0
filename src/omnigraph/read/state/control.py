"""What a running query answers to: somebody who cancels it, and the memory it may hold."""

from __future__ import annotations

import threading

from omnigraph.errors import Cancelled, ResourceLimit


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


class MemoryBudget:
    """Counts what a query holds, by purpose, and refuses what would go past the limit before it is allocated."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.peak = 0
        self._held: dict[str, int] = {}

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


def _megabytes(size: int) -> str:
    return f"{size / (1 << 20):.1f} MB"
