"""Small operations on integer arrays that NumPy and Arrow do not have under one name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Codes = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

FEW_PLACES = 1000
"""So few places are skipped or filled stretch by stretch."""


FEW_VALUES = 64
"""So few short values are sooner made anew than handled by Arrow's machinery, which also lets go of the interpreter:
who reads beside many writers waits until it gets it back."""
SHORT_VALUE = 1024


def bytes_taken(values: Any) -> int:
    """Bytes of an array or of rows; where they are few, those of the whole buffers they are in.

    Arrow counts whole buffers without letting go of the interpreter, and parts of them not.
    """
    whole = int(values.get_total_buffer_size())
    return whole if whole <= FEW_VALUES * SHORT_VALUE else int(values.nbytes)


def are_few(values: Any) -> bool:
    """Whether an array is that small."""
    return len(values) <= FEW_VALUES and bytes_taken(values) <= FEW_VALUES * SHORT_VALUE


def combined(values: Any) -> pa.Array:
    """One array, text with 64-bit offsets so that its total length is not bounded."""
    if values.type == pa.string() and are_few(values):
        return pa.array(values.to_pylist(), pa.large_string())
    if isinstance(values, pa.ChunkedArray):
        if values.type == pa.string():
            values = values.cast(pa.large_string())
        return values.combine_chunks() if values.num_chunks != 1 else values.chunk(0)
    return values.cast(pa.large_string()) if values.type == pa.string() else values


def gathered(values: pa.ChunkedArray) -> pa.Array:
    """One array; text gets 64-bit offsets only where there is much of it."""
    if len(values) > FEW_PLACES:
        return combined(values)
    return values.chunk(0) if values.num_chunks == 1 else values.combine_chunks()


def ranges(starts: Codes, counts: Codes) -> Codes:
    """`start, start+1, … start+count-1` for each pair, one after the other."""
    total = int(counts.sum())
    if total == 0:
        return np.empty(0, dtype=np.int64)
    ends = np.cumsum(counts)
    first: Codes = np.repeat(starts - (ends - counts), counts)
    return first + np.arange(total, dtype=np.int64)


def factorize(columns: list[Codes], length: int) -> tuple[Codes, Codes]:
    """Number the distinct rows of several integer columns.

    Returns the number of each row, and the index of one row for each number. Numbers follow the order of the values,
    first column first.
    """
    if not columns:
        return np.zeros(length, dtype=np.int64), np.zeros(min(length, 1), dtype=np.int64)
    key = columns[0]
    for column in columns[1:]:
        key = paired(key, column)
    distinct, numbers = distinct_codes(key)
    first = np.empty(len(distinct), dtype=np.int64)
    first[numbers[::-1]] = np.arange(length - 1, -1, -1, dtype=np.int64)
    return numbers, first


def paired(left: Codes, right: Codes) -> Codes:
    """One integer column that orders as (left, right)."""
    if len(left) == 0:
        return left
    low, high = int(right.min()), int(right.max())
    width = high - low + 1
    left_low, left_high = int(left.min()), int(left.max())
    if (left_high - left_low + 1) * width >= 2**62:
        left = np.unique(left, return_inverse=True)[1].astype(np.int64)
        right = np.unique(right, return_inverse=True)[1].astype(np.int64)
        return paired(left, right) if int(left.max() + 1) * int(right.max() + 1) < 2**62 else _lexical(left, right)
    return (left - left_low) * width + (right - low)


def _lexical(left: Codes, right: Codes) -> Codes:
    order = np.lexsort((right, left))
    changed = np.empty(len(order), dtype=np.int64)
    changed[0] = 0
    changed[1:] = (np.diff(left[order]) != 0) | (np.diff(right[order]) != 0)
    out = np.empty(len(order), dtype=np.int64)
    out[order] = np.cumsum(changed)
    return out


def codes_of(array: pa.Array) -> Codes:
    """An Arrow integer array without nulls, as codes."""
    return np.asarray(array.to_numpy(zero_copy_only=False)).astype(np.int64, copy=False)


def distinct_codes(codes: Codes) -> tuple[Codes, Codes]:
    """The distinct codes in order, and for each code its place among them."""
    if len(codes) < 2 or bool(np.all(codes[1:] > codes[:-1])):
        return codes, np.arange(len(codes), dtype=np.int64)
    low = int(codes.min())
    size = int(codes.max()) - low + 1
    if size > 8 * len(codes):
        distinct, inverse = np.unique(codes, return_inverse=True)
        return distinct, inverse.astype(np.int64)
    there = np.zeros(size, dtype=bool)
    there[codes - low] = True
    distinct = np.flatnonzero(there).astype(np.int64) + low
    return distinct, (np.cumsum(there) - 1)[codes - low]


def stretches(places: Codes, length: int) -> Iterator[tuple[int, int]]:
    """From where to where the rows between these places go, which are in order, of so many rows."""
    start = 0
    for place in places.tolist():
        yield start, place
        start = place + 1
    yield start, length


def removed(values: Codes, places: Codes) -> Codes:
    """The values without those at these places, which are in order; few places are skipped stretch by stretch."""
    if len(places) > FEW_PLACES:
        return np.delete(values, places)
    out = np.empty(len(values) - len(places), dtype=values.dtype)
    for number, (start, stop) in enumerate(stretches(places, len(values))):
        out[start - number : stop - number] = values[start:stop]
    return out


def inserted(values: Codes, places: Codes, added: Codes) -> Codes:
    """The values with others put in before these places, which are in order.

    `np.insert` looks at every value; a few places among many values are faster filled stretch by stretch.
    """
    if len(places) > FEW_PLACES:
        return np.insert(values, places, added)
    out = np.empty(len(values) + len(places), dtype=np.int64)
    start = 0
    for number, place in enumerate(places.tolist()):
        out[start + number : place + number] = values[start:place]
        out[place + number] = added[number]
        start = place
    out[start + len(places) :] = values[start:]
    return out
