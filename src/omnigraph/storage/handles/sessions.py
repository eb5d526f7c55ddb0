"""Lance's sessions of one graph: what Lance keeps in memory of tables, versions and indexes, and for how long.

A session keeps what it was told until its caches are full, and cannot be told to forget. Every commit makes versions,
and every compaction indexes, that nobody asks for again: within bounds that fit the indexes of a large graph they would
fill hundreds of megabytes of a server's memory. So the ledger's tables, which every commit writes and which have no
index, have a session of their own with small bounds; and the session of the tables of rows is given up for a new one
when many versions have been met and it has become large. What is still wanted is read again: on a disk that takes a
millisecond or two.
"""

from __future__ import annotations

import lance
from lance.dataset import LanceDataset

from omnigraph.config import settings
from omnigraph.storage.constants import LEDGER_INDEX_CACHE, LEDGER_METADATA_CACHE, LEDGER_PREFIX

VERSIONS_OF_A_SESSION = 1_024
"""Versions of tables of rows that a session has met at least when it is given up: a graph whose indexes are large
reads them again no more often than that."""

LARGE_SESSION = 48 << 20
"""Bytes up to which a session is kept whatever it has met."""


class Sessions:
    """The sessions that handles of one graph share. Whoever calls `met` keeps other threads from doing so."""

    def __init__(self) -> None:
        self._ledger = lance.Session(
            index_cache_size_bytes=LEDGER_INDEX_CACHE, metadata_cache_size_bytes=LEDGER_METADATA_CACHE
        )
        self._rows = self._fresh()
        self._met = 0

    def of(self, location: str) -> lance.Session:
        """The session for handles of a table."""
        return self._ledger if self.is_ledger(location) else self._rows

    def has(self, location: str, handle: LanceDataset) -> bool:
        """Whether a handle is of the session that handles of its table have now. One that was committed on a handle
        of an older session is not, and those that follow it would not be either."""
        return bool(handle.session().is_same_as(self.of(location)))

    def met(self, location: str) -> bool:
        """Count a version of a table. True when the tables of rows have a new session from now on."""
        if self.is_ledger(location):
            return False
        self._met += 1
        if self._met < VERSIONS_OF_A_SESSION or self._rows.size_bytes() < LARGE_SESSION:
            return False
        self._rows, self._met = self._fresh(), 0
        return True

    def size(self) -> int:
        """Bytes that Lance says it keeps."""
        return int(self._rows.size_bytes()) + int(self._ledger.size_bytes())

    @staticmethod
    def is_ledger(location: str) -> bool:
        """Whether a table is the ledger's."""
        return location.startswith(LEDGER_PREFIX)

    @staticmethod
    def _fresh() -> lance.Session:
        bounds = settings()
        return lance.Session(index_cache_size_bytes=bounds.index_cache, metadata_cache_size_bytes=bounds.metadata_cache)
