"""What an embedding provider is. Reads use it for query texts, loads and `embed` for `@embed` properties."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable


class EmbeddingProvider(Protocol):
    """Turns texts into vectors of a given length. Equal texts of one model give equal vectors."""

    def embed(self, texts: Sequence[str], *, dim: int, model: str | None = None) -> list[list[float]]:
        """One vector of `dim` numbers for each text, in order. `model` None: the provider's default."""
        ...


@runtime_checkable
class NamesItsModel(Protocol):
    """A provider that says which model it would ask."""

    def model_for(self, declared: str | None) -> str:
        """The model to ask, given what a property declares."""
        ...
