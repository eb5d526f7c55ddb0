"""A provider for tests and for trying things out: vectors from hashes of words, the same on every machine.

Texts that share words are near each other, which is enough to see search work; it knows nothing of meaning.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Sequence

_WORD = re.compile(r"[^\W_]+")


class MockEmbeddings:
    """Deterministic vectors of unit length: the sum of one pseudo-random vector for each word."""

    def embed(self, texts: Sequence[str], *, dim: int, model: str | None = None) -> list[list[float]]:
        """One vector for each text."""
        return [self._embed_one(text, dim, model or "mock") for text in texts]

    def _embed_one(self, text: str, dim: int, model: str) -> list[float]:
        words = _WORD.findall(text.lower()) or [""]
        total = [0.0] * dim
        for word in words:
            for place, value in enumerate(_word_vector(word, dim, model)):
                total[place] += value
        length = math.sqrt(sum(value * value for value in total))
        if length == 0.0:
            return [1.0] + [0.0] * (dim - 1)
        return [value / length for value in total]


def _word_vector(word: str, dim: int, model: str) -> list[float]:
    data = hashlib.shake_128(f"{model}\0{word}".encode()).digest(4 * dim)
    return [int.from_bytes(data[at : at + 4], "little") / 2**31 - 1.0 for at in range(0, 4 * dim, 4)]
