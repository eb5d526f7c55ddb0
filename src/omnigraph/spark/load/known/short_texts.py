"""Short texts as a few numbers each: two texts are the same exactly when all of their numbers are.

Ids are short. Eight bytes of one are a number, and numbers of many ids are hashed, found and compared a column at a
time, without a call for each text: a third of what hashing and comparing the texts themselves takes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

Numbers = np.ndarray[Any, np.dtype[np.uint64]]
Lengths = np.ndarray[Any, np.dtype[np.int32]]

LONGEST = 63
"""Bytes of a text that is short."""

_BYTES = 8
_MIX = np.uint64(0x9E3779B97F4A7C15)
_HALF = np.uint64(32)
_TOP_BYTE = np.uint64(56)


def words_for(texts: pa.Array) -> int:
    """How many numbers to make of each text: enough for all, unless a few are much longer than the others."""
    lengths = lengths_of(texts)
    if not len(lengths):
        return 1
    return min(int(lengths.max()) // _BYTES + 1, int(lengths.mean()) // _BYTES + 2, (LONGEST + 1) // _BYTES)


def fitting(texts: pa.Array, words: int) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Which texts are short enough for so many numbers: one byte of the last is their length."""
    return np.asarray(lengths_of(texts) < words * _BYTES)


def lengths_of(texts: pa.Array) -> Lengths:
    """Bytes of each text."""
    return np.diff(_offsets(texts))


def as_words(texts: pa.Array, words: int) -> list[Numbers]:
    """The numbers of texts that fit into so many and are not null: the first of each, the second of each, and so on."""
    offsets = _offsets(texts)
    first, last = int(offsets[0]), int(offsets[-1])
    lengths = np.diff(offsets)
    # What is read beyond the end of a text is cut off again; beyond the last one there has to be something to read.
    data = np.empty(last - first + words * _BYTES, np.uint8)
    if last > first:
        data[: last - first] = np.frombuffer(texts.buffers()[2], np.uint8)[first:last]
    anywhere: Numbers = np.ndarray((len(data) - _BYTES + 1,), "<u8", data, strides=(1,))
    starts = offsets[:-1].astype(np.int64) - first
    shortest = int(lengths.min()) if len(lengths) else 0
    found = []
    for number in range(words):
        begin, end = number * _BYTES, (number + 1) * _BYTES
        word = anywhere[starts + begin] if number else anywhere[starts]
        found.append(word if shortest >= end else _cut(word, end - lengths))
    found[-1] |= lengths.astype(np.uint64) << _TOP_BYTE
    return found


def word_hashes(words: list[Numbers]) -> Numbers:
    """A number for each text, the same for the same one."""
    hashes = words[0] * _MIX
    for word in words[1:]:
        hashes ^= hashes >> _HALF
        hashes ^= word
        hashes *= _MIX
    hashes ^= hashes >> _HALF
    return hashes


def _cut(word: Numbers, too_many: Lengths) -> Numbers:
    """The numbers without so many of their last bytes. A shift by all 64 bits at once is no shift at all."""
    bits = np.clip(too_many, 0, _BYTES).astype(np.uint64) * np.uint64(8)
    half = bits >> np.uint64(1)
    rest = bits - half
    return np.asarray(word << half << rest >> half >> rest)


def _offsets(texts: pa.Array) -> Lengths:
    if not len(texts):
        return np.zeros(1, np.int32)
    return np.frombuffer(texts.buffers()[1], np.int32)[texts.offset : texts.offset + len(texts) + 1]
