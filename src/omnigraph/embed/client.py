"""The client through which every text becomes a vector, whoever asks: batches, limits, a check of what comes back."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol

from omnigraph.embed.mock import MockEmbeddings
from omnigraph.embed.provider import EmbeddingProvider
from omnigraph.embed.provider_settings import REMOTE_KINDS, EmbeddingSettings, from_environment, is_named
from omnigraph.embed.unit_vectors import unit_vectors
from omnigraph.errors import BadRequest


class _Source(Protocol):
    def vectors(self, texts: Sequence[str], dim: int, model: str) -> list[Sequence[float]]: ...

    def close(self) -> None: ...


class EmbeddingClient:
    """A provider with its settings. Texts go out in batches; vectors come back finite and of unit length."""

    def __init__(self, settings: EmbeddingSettings) -> None:
        self.settings = settings
        self._source = _source(settings)

    def embed(self, texts: Sequence[str], *, dim: int, model: str | None = None) -> list[list[float]]:
        """One vector for each text. A property that names another model than the client has is refused."""
        meant = self.model_for(model)
        shown = f"the {self.settings.kind} embedding provider"

        def ask(start: int) -> list[list[float]]:
            chosen = list(texts[start : start + self.settings.batch])
            return unit_vectors(self._source.vectors(chosen, dim, meant), len(chosen), dim, shown, before=start)

        starts = range(0, len(texts), self.settings.batch)
        if len(starts) < 2 or self.settings.kind not in REMOTE_KINDS:
            return [vector for start in starts for vector in ask(start)]
        with ThreadPoolExecutor(min(self.settings.parallel, len(starts)), "omnigraph-embed") as pool:
            return [vector for answer in pool.map(ask, starts) for vector in answer]

    def model_for(self, declared: str | None) -> str:
        """The model to ask, given what a property declares. Vectors of two models do not compare."""
        configured = self.settings.model or _DEFAULT_MODELS.get(self.settings.kind)
        if declared is not None and configured is not None and declared != configured:
            raise BadRequest(
                f"the property is embedded by the model `{declared}`, and the provider is set up for `{configured}`: "
                "their vectors do not compare. Set the provider to the property's model, or change the property's "
                "model on a branch and embed again"
            )
        model = declared or configured
        if model is None:
            raise BadRequest(f"the {self.settings.kind} embedding provider needs a model")
        return model

    def close(self) -> None:
        """Let connections go."""
        self._source.close()

    def __reduce__(self) -> tuple[type[EmbeddingClient], tuple[EmbeddingSettings]]:
        return EmbeddingClient, (self.settings,)


_DEFAULT_MODELS = {"local": "all-MiniLM-L6-v2", "mock": "mock"}


@functools.lru_cache(maxsize=8)
def client_for(settings: EmbeddingSettings) -> EmbeddingClient:
    """The client of these settings; handles of one process share it, and its limit of calls."""
    return EmbeddingClient(settings)


def provider_for(settings: EmbeddingSettings | None) -> EmbeddingProvider | None:
    """The provider that makes vectors of query texts: the one of these settings, or the one that the environment names.

    None when there is neither.
    """
    if settings is not None:
        return client_for(settings)
    return _NamedByTheEnvironment() if is_named() else None


class _NamedByTheEnvironment:
    """Looked at when a text is to be embedded: a query without one does not mind how the provider is set up."""

    def embed(self, texts: Sequence[str], *, dim: int, model: str | None = None) -> list[list[float]]:
        return self._client().embed(texts, dim=dim, model=model)

    def model_for(self, declared: str | None) -> str:
        return self._client().model_for(declared)

    def _client(self) -> EmbeddingClient:
        settings = from_environment()
        if settings is None:
            raise BadRequest("the environment names no embedding provider any more")
        return client_for(settings)


class _Mock:
    def vectors(self, texts: Sequence[str], dim: int, model: str) -> list[Sequence[float]]:
        return list(MockEmbeddings().embed(texts, dim=dim, model=model))

    def close(self) -> None:
        pass


def _source(settings: EmbeddingSettings) -> _Source:
    match settings.kind:
        case "openai-compatible":
            from omnigraph.embed.remote import OpenAICompatible

            return OpenAICompatible(settings)
        case "gemini":
            from omnigraph.embed.remote import Gemini

            return Gemini(settings)
        case "local":
            from omnigraph.embed.local import LocalModel

            return LocalModel()
        case _:
            return _Mock()
