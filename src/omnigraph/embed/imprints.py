"""Which text a vector was made from, written into the vector itself: the lowest bits of its first numbers.

A vector has to be told from one that somebody gave, and one whose text has changed since from one that fits. A record
beside the rows would have to be carried along by every merge, export, copy and update; the vector is carried along
anyway. So the lowest bit of each of the first 96 numbers holds, in thirds, a sign that the vector was made here, the
hash of the model and the hash of the text. That changes a number by less than its own rounding. Short vectors use more
bits of each number, at most eight, and shorter hashes when even those do not suffice (fewer than twelve numbers).
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import numpy as np

_BITS, _MOST_PER_NUMBER = 96, 8
_WHOLE: Final = _BITS // 3
_SIGN: Final = "made by omnigraph"

Numbers = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True, slots=True)
class Imprints:
    """What vectors say of themselves, one of each for every vector: made here, by which model, from which text."""

    made_here: Numbers
    model: Numbers
    text: Numbers


def imprinted(vectors: Numbers, texts: Sequence[str], model: str) -> Numbers:
    """The vectors (rows of F32 numbers) with the imprints of their texts."""
    count, dim = vectors.shape
    width = imprint_width(dim)
    bits = np.empty((count, 3 * width), np.uint32)
    bits[:, :width] = _bits(_hash(_SIGN), width)
    bits[:, width : 2 * width] = _bits(_hash(model), width)
    for row, text in enumerate(texts):
        bits[row, 2 * width :] = _bits(_hash(text), width)
    numbers = np.ascontiguousarray(vectors, np.float32).view(np.uint32).copy()
    for level, start in enumerate(range(0, 3 * width, dim)):
        part = bits[:, start : start + dim]
        held = numbers[:, : part.shape[1]]
        held &= np.uint32(~(1 << level) & 0xFFFFFFFF)
        held |= part << np.uint32(level)
    return numbers.view(np.float32)


def read_imprints(vectors: Numbers) -> Imprints:
    """What each of these vectors says of itself; without a sign of ours the rest means nothing."""
    count, dim = vectors.shape
    width = imprint_width(dim)
    numbers = np.ascontiguousarray(vectors, np.float32).view(np.uint32)
    bits = np.empty((count, 3 * width), np.uint64)
    for level, start in enumerate(range(0, 3 * width, dim)):
        size = min(dim, 3 * width - start)
        bits[:, start : start + size] = (numbers[:, :size] >> np.uint32(level)) & np.uint32(1)
    powers = np.uint64(1) << np.arange(width, dtype=np.uint64)
    sign, model, text = (bits[:, part * width : (part + 1) * width] @ powers for part in range(3))
    return Imprints(sign == imprint_of(_SIGN, dim), model, text)


def imprint_of(text: str, dim: int) -> int:
    """The hash of a model's name or of a text, as vectors of this length hold it."""
    return _hash(text) & ((1 << imprint_width(dim)) - 1)


def imprint_width(dim: int) -> int:
    """The bits of each of the three imprints in a vector of this length."""
    return min(_BITS, _MOST_PER_NUMBER * dim) // 3


def is_certain(dim: int) -> bool:
    """Whether vectors of this length have room for whole imprints, so that chance makes none."""
    return imprint_width(dim) == _WHOLE


@lru_cache(maxsize=4096)
def _hash(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=4).digest(), "little")


def _bits(value: int, width: int) -> Numbers:
    found: Numbers = (np.uint64(value) >> np.arange(width, dtype=np.uint64)) & np.uint64(1)
    return found
