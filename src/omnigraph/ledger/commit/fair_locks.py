"""Locks that are handed over in the order in which they were asked for.

A lock of the standard library goes to whoever comes along when it is free: a thread that has just given it back may
take it again before one that has waited for it all the time.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Hashable, Iterator
from contextlib import contextmanager


class FairLocks:
    """Locks by name, each there for as long as somebody holds it. Safe to share between threads."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        # The first place of a line has the lock. Each is a lock that is free once it is the first one.
        self._lines: dict[Hashable, deque[threading.Lock]] = {}

    def __len__(self) -> int:
        """How many are held."""
        return len(self._lines)

    def waiting(self, name: Hashable) -> int:
        """How many wait for a lock that is held."""
        with self._guard:
            return max(0, len(self._lines.get(name, ())) - 1)

    @contextmanager
    def held(self, name: Hashable, seconds: float) -> Iterator[bool]:
        """Hold a lock; False when others had it for so long.

        Who has it is what the line says, not a variable of this frame: an interrupt at any point leaves the line.
        """
        place = threading.Lock()
        place.acquire()
        try:
            yield self._reached(name, place, seconds)
        finally:
            self._leave(name, place)

    def _reached(self, name: Hashable, place: threading.Lock, seconds: float) -> bool:
        with self._guard:
            line = self._lines.setdefault(name, deque())
            line.append(place)
            if line[0] is place:
                return True
        place.acquire(timeout=max(0.0, seconds))
        with self._guard:
            if line[0] is place:
                return True
        self._leave(name, place)
        return False

    def _leave(self, name: Hashable, place: threading.Lock) -> None:
        """Out of the line, wherever this place stands in it; who is the first one then has the lock."""
        with self._guard:
            line = self._lines.get(name)
            if line is None or place not in line:
                return
            was_first = line[0] is place
            line.remove(place)
            if not line:
                del self._lines[name]
            elif was_first:
                line[0].release()
