"""The tables of a graph as a worker sees them, kept open from task to task with what Lance remembers of them."""

from __future__ import annotations

from functools import lru_cache

from omnigraph.storage.tables import TableStore
from omnigraph.storage.uri import parse_root


@lru_cache(maxsize=4)
def worker_tables(uri: str, incarnation: str) -> TableStore:
    """The tables below a graph's root, opened once in each worker: the pages of an index that a merge has looked at
    serve the next one too.

    `incarnation` is that of the branch that is worked on. It is never used again, so a graph that was removed and made
    anew at the same place is not taken for the old one.
    """
    return TableStore(parse_root(uri))
