"""What an embedding provider is. Reads use it for query texts, loads and `embed` for `@embed` properties."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class EmbeddingProvider(Protocol):
    """Turns texts into vectors of a given length. Equal texts of one model give equal vectors."""

    def embed(self, texts: Sequence[str], *, dim: int, model: str | None = None) -> list[list[float]]:
        """One vector of `dim` numbers for each text, in order. `model` None: the provider's default."""
        ...
