"""Compiled queries, kept: compiling is cheap, compiling the same text for every request is not."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from omnigraph.query.ir import CompiledQuery

DEFAULT_CAPACITY = 256


@dataclass(frozen=True, slots=True)
class CacheKey:
    """What a compiled query depends on: the text, the schema it was checked against, and which query of the text."""

    text: str
    schema_digest: str
    name: str | None


class QueryCache:
    """The most recently used compiled queries. Threads may share it; two may compile the same text at once."""

    def __init__(self, capacity: int = DEFAULT_CAPACITY) -> None:
        if capacity < 1:
            raise ValueError("a cache holds at least one query")
        self._capacity = capacity
        self._lock = threading.Lock()
        self._queries: OrderedDict[CacheKey, CompiledQuery] = OrderedDict()

    def get(self, key: CacheKey, compile: Callable[[], CompiledQuery]) -> CompiledQuery:
        """The compiled query of the key, compiled now if it is not there. Errors are not kept."""
        with self._lock:
            found = self._queries.get(key)
            if found is not None:
                self._queries.move_to_end(key)
                return found
        compiled = compile()
        with self._lock:
            self._queries[key] = compiled
            self._queries.move_to_end(key)
            while len(self._queries) > self._capacity:
                self._queries.popitem(last=False)
        return compiled

    def __len__(self) -> int:
        with self._lock:
            return len(self._queries)

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._queries.clear()
