"""Small files that are read again and again and hardly ever change, kept while one look says they are the same.

Every read of a graph reads the ref of its branch. Opening, reading and closing a file are four calls of the operating
system, and at each of them another thread may take the interpreter; asking whether the file is still the same is one.

A file is put into place whole and never changed in place, so another content is another file, or one of another time. A
clock that ticks slowly could give two files that follow each other the same time: who was written only just before it
was read is not kept.
"""

from __future__ import annotations

import os
import threading
import time
from collections import OrderedDict
from dataclasses import dataclass

from omnigraph.storage.objects.local_files import read_file

SETTLED_NANOSECONDS = 2_000_000_000
"""A file that was changed longer ago than this gets another time when it changes, however slowly a clock ticks."""
MOST_FILES = 256
MOST_BYTES = 64 << 10


@dataclass(frozen=True, slots=True)
class _Identity:
    """Which file it is and when it was last changed in any way, its name included."""

    device: int
    inode: int
    size: int
    modified: int
    changed: int


@dataclass(frozen=True, slots=True)
class _Kept:
    identity: _Identity
    data: bytes


class UnchangedFiles:
    """The last files that were read. Safe to share between threads."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, _Kept] = OrderedDict()
        self._lock = threading.Lock()

    def read(self, path: str) -> bytes:
        """The content of a file as it is now."""
        identity = _identity(path)
        kept = self._kept.get(path)
        if kept is not None and kept.identity == identity:
            return kept.data
        now = time.time_ns()
        data = read_file(path)
        # The same before and after: what was read is the file that was looked at.
        settled = max(identity.modified, identity.changed) + SETTLED_NANOSECONDS < now
        if settled and len(data) <= MOST_BYTES and _identity(path) == identity:
            self._keep(path, _Kept(identity, data))
        return data

    def _keep(self, path: str, kept: _Kept) -> None:
        with self._lock:
            self._kept[path] = kept
            self._kept.move_to_end(path)
            while len(self._kept) > MOST_FILES:
                self._kept.popitem(last=False)


def _identity(path: str) -> _Identity:
    found = os.stat(path)
    return _Identity(found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
