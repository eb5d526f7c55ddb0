"""Large key columns in parts, so that a check across rows holds one part's hash table at a time, not that of the whole.

Rows with equal values fall into the same part, so what holds in each part holds altogether. Which part it is depends on
the last bytes of the text: that is where ids differ.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

ROWS_PER_PART = 200_000
"""Rows that are checked at once. Their hash table takes some ten megabytes."""

MOST_PARTS = 4_096
"""Beyond eight hundred million rows the parts grow instead: a load of that size belongs on Spark."""

_LAST_BYTES = 8
_MIX = np.uint64(0x9E3779B97F4A7C15)


def parts_for(rows: int) -> int:
    """Into how many parts that many rows are divided."""
    return min(MOST_PARTS, max(1, -(-rows // ROWS_PER_PART)))


def part_of(column: pa.Array, parts: int) -> np.ndarray[Any, np.dtype[np.uint64]]:
    """The part of each text; nulls are in any."""
    _, offsets, data = column.buffers()
    ends = np.frombuffer(offsets, np.int32)[column.offset : column.offset + len(column) + 1].astype(np.int64)
    lengths = np.diff(ends)
    # Eight bytes in front, so that the last eight of any text can be read as one number, which starts before a short
    # text does: those bytes are shifted out.
    text = np.frombuffer(data, np.uint8)[: ends[-1]] if data is not None and len(ends) else np.zeros(0, np.uint8)
    padded = np.concatenate([np.zeros(_LAST_BYTES, np.uint8), text])
    words = np.ndarray((len(text) + 1,), dtype="<u8", buffer=padded.data, strides=(1,))
    foreign = np.uint64(8) * (np.uint64(_LAST_BYTES) - np.minimum(lengths, _LAST_BYTES).astype(np.uint64))
    last = np.where(lengths > 0, words[ends[1:]] >> np.minimum(foreign, np.uint64(63)), np.uint64(0))
    code = (last ^ lengths.astype(np.uint64)) * _MIX
    return (code >> np.uint64(32)) % np.uint64(parts)


class Parts:
    """The rows of a text column by part.

    The positions of the rows, in the order of their parts, lie in a temporary file that is mapped: each part is read
    where it lies, and however many rows there are, no memory is held for them.
    """

    def __init__(self, column: pa.ChunkedArray, parts: int) -> None:
        self._parts = parts
        if parts > 1:
            self._starts: list[np.ndarray[Any, np.dtype[np.int64]]] = []
            self._positions = self._in_order(column)

    def _in_order(self, column: pa.ChunkedArray) -> np.ndarray[Any, np.dtype[np.int32]]:
        written = 0
        with tempfile.TemporaryFile() as file:
            for chunk in column.chunks:
                part = part_of(chunk, self._parts).astype(np.uint16)
                np.argsort(part, kind="stable").astype(np.int32).tofile(file)
                sizes = np.bincount(part, minlength=self._parts)
                self._starts.append(written + np.concatenate([[0], np.cumsum(sizes)]))
                written += len(chunk)
            return np.memmap(file, np.int32, mode="r") if written else np.empty(0, np.int32)

    def positions(self, part: int) -> list[np.ndarray[Any, np.dtype[np.int32]]]:
        """Per chunk of the column the positions within the chunk that belong to a part, in their order."""
        return [np.array(self._positions[starts[part] : starts[part + 1]]) for starts in self._starts]

    def values(self, column: pa.ChunkedArray, part: int) -> pa.ChunkedArray:
        """The values of a part, of this column or another one in the same chunks."""
        if self._parts == 1:
            return column
        return take_in_chunks(column, self.positions(part))


def take_in_chunks(
    column: pa.ChunkedArray, positions: Sequence[np.ndarray[Any, np.dtype[np.int32]]]
) -> pa.ChunkedArray:
    """Rows by their positions within each chunk. Arrow's own `take` would first put all chunks into one."""
    taken = [chunk.take(pa.array(found)) for chunk, found in zip(column.chunks, positions)]
    return pa.chunked_array(taken, column.type)
