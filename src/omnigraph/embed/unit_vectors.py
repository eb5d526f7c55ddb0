"""What a provider answers is checked before anything is stored or compared: right length, finite, of unit length."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from omnigraph.errors import EmbeddingRefused


def unit_vectors(
    answered: Sequence[Sequence[float]], texts: int, dim: int, provider: str, *, before: int = 0
) -> list[list[float]]:
    """The vectors divided by their lengths. `EmbeddingRefused` for what no vector of a text can be.

    The error names the text by its number, after the `before` texts that were asked for earlier, and has its position
    in the details.
    """
    if len(answered) != texts:
        raise EmbeddingRefused(f"{provider} answered {len(answered)} vectors for {texts} texts")
    for position, vector in enumerate(answered):
        if len(vector) != dim:
            raise EmbeddingRefused(
                f"{provider} answered a vector of {len(vector)} numbers for text {before + position + 1}, and the "
                f"property holds {dim}: choose a model of that size, or declare Vector({len(vector)})",
                text=before + position,
            )
    try:
        matrix = np.asarray(answered, dtype=np.float64).reshape(texts, dim)
    except (TypeError, ValueError):
        raise EmbeddingRefused(f"{provider} answered something that is not a number") from None
    _refuse(~np.asarray(np.isfinite(matrix).all(axis=1)), "is not finite", provider, before)
    largest = np.abs(matrix).max(axis=1, keepdims=True, initial=0.0)
    _refuse(largest[:, 0] == 0.0, "is zero, which has no direction", provider, before)
    # First by the largest number: squares of numbers near the ends of the range are none.
    matrix = matrix / largest
    matrix /= np.linalg.norm(matrix, axis=1, keepdims=True)
    return [[float(value) for value in row] for row in matrix.astype(np.float32)]


def _refuse(wrong: np.ndarray, what: str, provider: str, before: int) -> None:
    if wrong.any():
        position = before + int(np.argmax(wrong))
        raise EmbeddingRefused(f"the vector of {provider} for text {position + 1} {what}", text=position)
