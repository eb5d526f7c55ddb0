"""Versions of the manifest that this process is just publishing: who meets one waits for it and does not read it.

A version can be seen on the disk a moment before the thread that published it has noted what it holds. A reader of the
same process who comes right then would open and read it, which takes longer than the noting, and keeps the interpreter
from the thread that would do it.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from omnigraph.storage.values import TableVersion

PATIENCE_SECONDS = 0.05
"""A commit takes a few milliseconds; who has waited longer than this had better look for themselves."""


@dataclass(frozen=True, slots=True)
class _Arrival:
    thread: int = field(default_factory=threading.get_ident)
    over: threading.Event = field(default_factory=threading.Event)


class Arrivals:
    """What is being published. Safe to share between threads."""

    def __init__(self) -> None:
        self._coming: dict[TableVersion, _Arrival] = {}

    @contextmanager
    def of(self, version: TableVersion) -> Iterator[None]:
        """While it is open, the caller publishes this version or fails to."""
        arrival = _Arrival()
        if self._coming.setdefault(version, arrival) is not arrival:
            # Somebody tries the same: one of the two will fail, and nobody needs to know which.
            yield
            return
        try:
            yield
        finally:
            del self._coming[version]
            arrival.over.set()

    def wait(self, version: TableVersion) -> None:
        """Until another thread that publishes this version is done, or for a moment."""
        arrival = self._coming.get(version)
        if arrival is not None and arrival.thread != threading.get_ident():
            arrival.over.wait(PATIENCE_SECONDS)
