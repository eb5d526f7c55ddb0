"""The two ways in which providers over HTTP are asked, and how their answers are read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from omnigraph.embed.provider_calls import Calls
from omnigraph.embed.provider_settings import EmbeddingSettings
from omnigraph.errors import EmbeddingRefused

GEMINI_URL = "https://generativelanguage.googleapis.com/v1beta"


class OpenAICompatible:
    """`POST {base_url}/embeddings`, as most servers of models understand it."""

    def __init__(self, settings: EmbeddingSettings) -> None:
        assert settings.base_url is not None
        headers = {"Authorization": f"Bearer {settings.api_key}"} if settings.api_key else {}
        self._calls = Calls(settings, settings.base_url, headers)

    def vectors(self, texts: Sequence[str], dim: int, model: str) -> list[Sequence[float]]:
        """The vectors as answered, in the order of the texts."""
        body = {"model": model, "input": list(texts), "encoding_format": "float"}
        found = self._calls.post("embeddings", body)
        try:
            data = list(found["data"])
            by_index = {int(one.get("index", at)): one["embedding"] for at, one in enumerate(data)}
            return [by_index[at] for at in range(len(data))]
        except (KeyError, TypeError, ValueError, AttributeError):
            raise _strange(found) from None

    def close(self) -> None:
        """Let the connections go."""
        self._calls.close()


class Gemini:
    """`POST {base_url}/models/{model}:batchEmbedContents`."""

    def __init__(self, settings: EmbeddingSettings) -> None:
        assert settings.api_key is not None
        self._calls = Calls(settings, settings.base_url or GEMINI_URL, {"x-goog-api-key": settings.api_key})

    def vectors(self, texts: Sequence[str], dim: int, model: str) -> list[Sequence[float]]:
        """The vectors as answered, in the order of the texts."""
        name = model if model.startswith("models/") else f"models/{model}"
        requests = [
            {"model": name, "content": {"parts": [{"text": text}]}, "outputDimensionality": dim} for text in texts
        ]
        found = self._calls.post(f"{name}:batchEmbedContents", {"requests": requests})
        try:
            return [one["values"] for one in found["embeddings"]]
        except (KeyError, TypeError):
            raise _strange(found) from None

    def close(self) -> None:
        """Let the connections go."""
        self._calls.close()


def _strange(found: Any) -> EmbeddingRefused:
    return EmbeddingRefused(
        f"the embedding provider answered an object without vectors; it has {', '.join(map(str, found)) or 'nothing'}"
    )
