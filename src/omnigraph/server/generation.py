"""Which reload the workers of a server are at: a number that they share, so that a reload of one is one of all.

`POST /reload` reaches one worker, and a signal the process above them. Either makes the number larger; a worker that
finds it larger than its own reads again what it serves before it answers.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import struct
from pathlib import Path

VARIABLE = "OMNIGRAPH_SERVER_GENERATION"
"""How a worker process is told where the number stands."""

_NUMBER = struct.Struct("=Q")


class Generation:
    """The number, in a file that every worker has mapped: to look at it costs nothing."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("r+b")
        self._shared = mmap.mmap(self._file.fileno(), _NUMBER.size)

    @classmethod
    def create(cls, path: Path) -> Generation:
        """A number that nobody has raised yet."""
        path.write_bytes(_NUMBER.pack(0))
        return cls(path)

    @classmethod
    def of_this_process(cls) -> Generation | None:
        """The number of the workers that this one is among; None where there is only one."""
        path = os.environ.get(VARIABLE)
        return cls(Path(path)) if path else None

    @property
    def now(self) -> int:
        """The number."""
        found: int = _NUMBER.unpack_from(self._shared)[0]
        return found

    def raise_it(self) -> int:
        """Say that there is something new to read; the number from then on."""
        fcntl.flock(self._file, fcntl.LOCK_EX)
        try:
            new = self.now + 1
            _NUMBER.pack_into(self._shared, 0, new)
            return new
        finally:
            fcntl.flock(self._file, fcntl.LOCK_UN)
