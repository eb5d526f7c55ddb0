"""A body that is read while it still comes in: the load of a large one decodes its first records meanwhile.

One thread writes what has come, another reads it and waits for more. Small bodies stay in memory. When the body has
ended it is a file like any other, and can be read again from its start: a load that lost a race prepares anew.
"""

from __future__ import annotations

import io
import tempfile
import threading

IN_MEMORY = 8 << 20
"""Bytes of a body that wait in memory; beyond that they wait on disk."""


class GrowingFile(io.RawIOBase):
    """A temporary file that is read while it grows. One reader, and writes that come one after the other."""

    def __init__(self, in_memory: int = IN_MEMORY) -> None:
        self._file = tempfile.SpooledTemporaryFile(in_memory)  # noqa: SIM115  # closed with this one
        self._changed = threading.Condition()
        self._size = self._at = 0
        self._ended = False
        self._broken: Exception | None = None

    def write(self, data: bytes) -> int:  # type: ignore[override]  # bytes are all that comes
        """Put more at the end."""
        with self._changed:
            self._file.seek(0, io.SEEK_END)
            self._file.write(data)
            self._size += len(data)
            self._changed.notify_all()
        return len(data)

    def end(self) -> None:
        """That was all."""
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def break_off(self, error: Exception) -> None:
        """There will be no more, though it was not all: whoever reads gets this error. No matter after the end."""
        with self._changed:
            if not self._ended:
                self._broken = error
                self._changed.notify_all()

    def read(self, size: int = -1) -> bytes:
        """As much as was asked for, when that has come; less at the end only."""
        with self._changed:
            self._changed.wait_for(
                lambda: self._ended or self._broken is not None or 0 <= size <= self._size - self._at
            )
            if self._broken is not None:
                raise self._broken
            self._file.seek(self._at)
            found = self._file.read(size)
            self._at += len(found)
            return found

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]  # what a buffer gives
        """The same, into a buffer."""
        found = self.read(len(buffer))
        buffer[: len(found)] = found
        return len(found)

    def readable(self) -> bool:
        """Yes."""
        return True

    def seekable(self) -> bool:
        """Yes: what has come stays."""
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go to a place counted from the start."""
        if whence != io.SEEK_SET:
            raise io.UnsupportedOperation("only places from the start of a body are known while it comes in")
        self._at = offset
        return offset

    def tell(self) -> int:
        """The place of the next read."""
        return self._at

    def close(self) -> None:
        """Let go of it."""
        self._file.close()
        super().close()
