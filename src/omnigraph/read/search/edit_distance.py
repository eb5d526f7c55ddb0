"""Levenshtein distance of one word to many, by dynamic programming over all words of one length at once."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.read.codes.arrays import Codes


def within(word: str, words: pa.Array, edits: int) -> Codes:
    """The places of the words that insertions, deletions and replacements of `edits` characters make of `word`."""
    sizes = pc.utf8_length(words).to_numpy()
    found = []
    for size in range(max(len(word) - edits, 1), len(word) + edits + 1):
        places = np.flatnonzero(sizes == size)
        if len(places):
            letters = _letters(words.take(pa.array(places)), size)
            found.append(places[_distances(word, letters) <= edits])
    return np.sort(np.concatenate(found)).astype(np.int64) if found else np.empty(0, dtype=np.int64)


def _letters(words: pa.Array, size: int) -> np.ndarray:
    joined = "".join(words.to_pylist())
    return np.frombuffer(joined.encode("utf-32-le"), dtype=np.uint32).reshape(len(words), size)


def _distances(word: str, letters: np.ndarray) -> np.ndarray:
    count, size = letters.shape
    row = np.broadcast_to(np.arange(size + 1, dtype=np.int32), (count, size + 1)).copy()
    for number, letter in enumerate(word, start=1):
        previous = row
        row = np.empty_like(previous)
        row[:, 0] = number
        replaced = previous[:, :-1] + (letters != ord(letter))
        best = np.minimum(replaced, previous[:, 1:] + 1)
        for at in range(size):
            row[:, at + 1] = np.minimum(best[:, at], row[:, at] + 1)
    return row[:, -1]
