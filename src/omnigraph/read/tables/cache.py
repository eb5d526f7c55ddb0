"""A thread-safe LRU whose entries are built once, however many threads ask at the same time, and whose size is
known; and a budget that several of them share.
"""

from __future__ import annotations

import itertools
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class CacheReport:
    """What a cache holds and how it has done."""

    entries: int
    bytes: int
    hits: int
    misses: int
    evictions: int


_USES = itertools.count()
"""Counts every use of every cache, so that entries of different caches can be told older from newer."""


class Budget:
    """Bytes that several caches hold together. What was used longest ago goes first, from whichever cache it is in."""

    def __init__(self, max_bytes: Callable[[], int]) -> None:
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        self._caches: weakref.WeakSet[SingleFlightCache[Any]] = weakref.WeakSet()

    def join(self, cache: SingleFlightCache[Any]) -> None:
        """Count a cache in from now on."""
        with self._lock:
            self._caches.add(cache)

    def held(self) -> int:
        """Bytes of all caches together."""
        return sum(cache.report().bytes for cache in list(self._caches))

    def enforce(self) -> None:
        """Drop entries until the rest fits. The entry that was used last stays, whatever its size."""
        with self._lock:
            while self.held() > self._max_bytes():
                ages = sorted((age, id(cache)) for cache in self._caches if (age := cache.oldest_use()) is not None)
                entries = sum(cache.report().entries for cache in self._caches)
                if entries < 2:
                    return
                next(cache for cache in self._caches if id(cache) == ages[0][1]).drop_oldest()


class SingleFlightCache(Generic[Value]):
    """Least recently used entries go first when there are too many, or when they take too many bytes.

    Two threads that miss the same key build it once: the second waits for the first. A build that fails is not
    kept, and every thread that waited gets the failure.
    """

    def __init__(
        self,
        max_entries: int,
        size_of: Callable[[Value], int],
        max_bytes: int | None = None,
        budget: Budget | None = None,
    ) -> None:
        self._max_entries = max_entries
        self._max_bytes = max_bytes
        self._budget = budget
        self._used: dict[Hashable, int] = {}
        self._size_of = size_of
        self._sizes: dict[Hashable, int] = {}
        self._bytes = 0
        self._lock = threading.Lock()
        self._entries: OrderedDict[Hashable, Value] = OrderedDict()
        self._building: dict[Hashable, Future[Value]] = {}
        self._hits = self._misses = self._evictions = 0
        if budget is not None:
            budget.join(self)

    def peek(self, key: Hashable) -> Value | None:
        """The entry if it is there. Does not count as a use."""
        with self._lock:
            return self._entries.get(key)

    def get(self, key: Hashable, build: Callable[[], Value]) -> Value:
        """The entry, built if need be."""
        with self._lock:
            if key in self._entries:
                self._hits += 1
                self._entries.move_to_end(key)
                self._used[key] = next(_USES)
                return self._entries[key]
            pending = self._building.get(key)
            mine: Future[Value] | None = None
            if pending is None:
                self._misses += 1
                mine = self._building[key] = Future()
        if mine is None:
            assert pending is not None
            return pending.result()
        try:
            value = build()
        except BaseException as error:
            with self._lock:
                del self._building[key]
            mine.set_exception(error)
            raise
        with self._lock:
            del self._building[key]
            self._entries[key] = value
            self._used[key] = next(_USES)
            self._weigh(key, value)
            self._evict()
        mine.set_result(value)
        if self._budget is not None:
            self._budget.enforce()
        return value

    def oldest_use(self) -> int | None:
        """When the entry that was used longest ago was used; None when there is none."""
        with self._lock:
            return self._used[next(iter(self._entries))] if self._entries else None

    def drop_oldest(self) -> None:
        """Let go of the entry that was used longest ago."""
        with self._lock:
            if self._entries:
                self._drop_oldest()

    def trim(self) -> None:
        """Count again: entries may have grown since they were put in."""
        with self._lock:
            for key, value in self._entries.items():
                self._weigh(key, value)
            self._evict()

    def report(self) -> CacheReport:
        """Entries, bytes and counters at this moment."""
        with self._lock:
            size = sum(self._size_of(value) for value in self._entries.values())
            return CacheReport(len(self._entries), size, self._hits, self._misses, self._evictions)

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._entries.clear()
            self._used.clear()
            self._sizes.clear()
            self._bytes = 0

    def _weigh(self, key: Hashable, value: Value) -> None:
        """Note the size of an entry. To ask all of them whenever one is put in would take longer than most builds."""
        if self._max_bytes is not None:
            size = self._size_of(value)
            self._bytes += size - self._sizes.get(key, 0)
            self._sizes[key] = size

    def _evict(self) -> None:
        while len(self._entries) > self._max_entries:
            self._drop_oldest()
        if self._max_bytes is None:
            return
        while self._bytes > self._max_bytes and len(self._entries) > 1:
            self._drop_oldest()

    def _drop_oldest(self) -> None:
        self._evictions += 1
        key, _ = self._entries.popitem(last=False)
        del self._used[key]
        self._bytes -= self._sizes.pop(key, 0)
