"""Large key columns in parts, so that a check across rows holds one part's hash table at a time, not that of the whole.

Rows with equal values fall into the same part, so what holds in each part holds altogether. Which part it is depends on
the last bytes of the text: that is where ids differ.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

ROWS_PER_PART = 4_000_000
"""Rows that are checked at once. Their hash table takes a few hundred megabytes."""

_LAST_BYTES = 8
_MIX = np.uint64(0x9E3779B97F4A7C15)


def parts_for(rows: int) -> int:
    """Into how many parts that many rows are divided."""
    return max(1, -(-rows // ROWS_PER_PART))


def part_of(column: pa.Array, parts: int) -> np.ndarray[Any, np.dtype[np.uint64]]:
    """The part of each text; nulls are in any."""
    _, offsets, data = column.buffers()
    starts = np.frombuffer(offsets, np.int32)[column.offset : column.offset + len(column) + 1].astype(np.int64)
    text = np.frombuffer(data, np.uint8) if data is not None and data.size else np.zeros(1, np.uint8)
    code = np.diff(starts).astype(np.uint64)
    for back in range(1, _LAST_BYTES + 1):
        position = starts[1:] - back
        inside = position >= starts[:-1]
        code = code * np.uint64(31) + np.where(inside, text[np.where(inside, position, 0)], 0).astype(np.uint64)
    return (code * _MIX >> np.uint64(32)) % np.uint64(parts)


def part_positions(column: pa.ChunkedArray, part: int, parts: int) -> Iterator[np.ndarray[Any, np.dtype[np.int64]]]:
    """Per chunk of a text column the positions within the chunk that belong to a part."""
    for chunk in column.chunks:
        yield np.flatnonzero(part_of(chunk, parts) == part)


def part_values(column: pa.ChunkedArray, part: int, parts: int) -> pa.ChunkedArray:
    """The values of a text column that belong to a part."""
    if parts == 1:
        return column
    positions = part_positions(column, part, parts)
    return pa.chunked_array(
        [chunk.take(pa.array(found)) for chunk, found in zip(column.chunks, positions)], column.type
    )
