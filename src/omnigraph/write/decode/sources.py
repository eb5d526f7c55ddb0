"""Where the input of a load comes from, besides files: open files, bytes, Python rows.

A load may have to be prepared again when another writer came first, so every input can be read more than once: what
cannot be rewound is copied to a temporary file on the first pass.
"""

from __future__ import annotations

import gzip
import io
import os
import pickle
import shutil
import tempfile
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, Any, Protocol

import pyarrow as pa

JSON_SUFFIXES = (".jsonl", ".ndjson", ".json")
TABLE_SUFFIXES = (".csv", ".tsv", ".parquet", ".arrow", ".feather", ".ipc")
COMPRESSIONS = {".gz": "gzip", ".zst": "zstd"}
_GZIP_MAGIC, _ZSTD_MAGIC = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"


class ByteSource(Protocol):
    """Bytes that can be opened again and again. `name` is what violations call it."""

    @property
    def name(self) -> str:
        """What violations call it."""

    def open(self) -> Any:
        """A stream from the start, decompressed."""


@dataclass(frozen=True, slots=True)
class MemorySource:
    """Bytes in memory."""

    data: bytes
    name: str = "<data>"

    def open(self) -> Any:
        """The bytes, decompressed."""
        return decompressed(io.BytesIO(self.data))


@dataclass(frozen=True, slots=True)
class StreamSource:
    """An open file that can be rewound to where it was."""

    stream: IO[bytes]
    start: int
    name: str = "<stream>"

    def open(self) -> Any:
        """From where it stood when the load began."""
        self.stream.seek(self.start)
        return decompressed(_Unclosed(self.stream))


class _Unclosed(io.RawIOBase):
    """Somebody else's stream: reading to its end does not close it."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._stream.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)


def decompressed(raw: Any) -> Any:
    """A stream of the plain content, whether it is compressed with gzip, with Zstandard or not."""
    stream = raw if hasattr(raw, "peek") else io.BufferedReader(raw, 1 << 20)
    magic = stream.peek(4)[:4] if hasattr(stream, "peek") else b""
    if magic.startswith(_GZIP_MAGIC):
        return gzip.GzipFile(fileobj=stream, mode="rb")
    if magic == _ZSTD_MAGIC:
        return pa.CompressedInputStream(pa.PythonFile(stream, "r"), "zstd")
    return stream


DECOMPRESSION_ERRORS = (gzip.BadGzipFile, EOFError, zlib.error, pa.ArrowInvalid, OSError)
"""What reading a broken compressed file raises."""


@contextmanager
def rewindable(stream: IO[bytes]) -> Iterator[ByteSource]:
    """An open file as a source; one that cannot be rewound is copied to a temporary file first."""
    named = getattr(stream, "name", None)
    # A temporary file has the number of its descriptor for a name, or none.
    name = os.fspath(named) if isinstance(named, str | os.PathLike) else "<stream>"
    if isinstance(stream, io.StringIO):
        stream = io.BytesIO(stream.read().encode("utf-8", "surrogatepass"))
    elif isinstance(stream, io.TextIOBase):
        stream = stream.buffer
    if stream.seekable():
        yield StreamSource(stream, stream.tell(), name)
        return
    with tempfile.TemporaryFile() as copy:
        shutil.copyfileobj(stream, copy, 1 << 20)
        copy.seek(0)
        yield StreamSource(copy, 0, name)


@contextmanager
def repeatable(rows: Iterable[Any]) -> Iterator[Iterable[Any]]:
    """Python rows that can be gone through more than once; an iterator is kept in a temporary file."""
    if isinstance(rows, Sequence | Mapping) or iter(rows) is not iter(rows):
        yield rows
        return
    with tempfile.TemporaryFile() as copy:
        for row in rows:
            pickle.dump(row, copy, pickle.HIGHEST_PROTOCOL)
        yield _Pickled(copy)


class _Pickled:
    """Rows in a temporary file."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def __iter__(self) -> Iterator[Any]:
        self._file.seek(0)
        while True:
            try:
                row = pickle.load(self._file)  # our own file, written a moment ago
            except EOFError:
                return
            yield row
