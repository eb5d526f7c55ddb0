"""Vectors of stored texts: made by the provider's client, imprinted with their text and model, equal texts once."""

from __future__ import annotations

import functools
import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from omnigraph.embed.client import client_for
from omnigraph.embed.imprints import imprinted
from omnigraph.embed.provider_settings import EmbeddingSettings, from_environment
from omnigraph.errors import EmbeddingRefused

REMEMBERED = 2048
"""So many of the last vectors are kept: a write that is prepared again does not ask again."""

Matrix = np.ndarray[Any, np.dtype[np.float32]]

Named = Callable[[int], str]
"""Which row a text belongs to, for people."""


class TextVectors:
    """One provider for stored texts. Safe to share between threads."""

    def __init__(self, settings: EmbeddingSettings) -> None:
        self.settings = settings
        self._client = client_for(settings)
        self._lock = threading.Lock()
        self._recent: OrderedDict[bytes, Matrix] = OrderedDict()

    def model_for(self, declared: str | None) -> str:
        """The model that makes the vectors of a property, given the one that it declares."""
        return self._client.model_for(declared)

    def make(self, texts: Sequence[str], *, dim: int, model: str | None, named: Named) -> Matrix:
        """The imprinted vectors of these texts, one row each. A text that the provider fails is told by its row."""
        meant = self.model_for(model)
        keys = [text_key(text, dim, meant) for text in texts]
        with self._lock:
            known = {key: self._recent[key] for key in keys if key in self._recent}
        first = {key: row for row, key in reversed(list(enumerate(keys))) if key not in known}
        asked = sorted(first.values())
        if asked:
            chosen = [texts[row] for row in asked]
            try:
                answered = self._client.embed(chosen, dim=dim, model=model)
            except EmbeddingRefused as refusal:
                raise _about_the_row(refusal, asked, named) from None
            made = imprinted(np.asarray(answered, np.float32).reshape(len(chosen), dim), chosen, meant)
            known.update(zip((keys[row] for row in asked), made, strict=True))
            self._remember({keys[row]: vector for row, vector in zip(asked, made, strict=True)})
        return np.stack([known[key] for key in keys]) if keys else np.empty((0, dim), np.float32)

    def _remember(self, made: dict[bytes, Matrix]) -> None:
        with self._lock:
            for key in list(made)[-REMEMBERED:]:
                self._recent[key] = made[key].copy()
            while len(self._recent) > REMEMBERED:
                self._recent.popitem(last=False)


def text_key(text: str, dim: int, model: str) -> bytes:
    """What a text's vector of one model and size is known by."""
    whole = f"{model}\0{dim}\0{text}".encode("utf-8", "surrogatepass")
    return hashlib.blake2b(whole, digest_size=16).digest()


@functools.lru_cache(maxsize=8)
def text_vectors(settings: EmbeddingSettings) -> TextVectors:
    """The vectors of these settings; whoever uses them in this process shares what was made last."""
    return TextVectors(settings)


def vectors_on_write(settings: EmbeddingSettings | None) -> TextVectors | None:
    """What fills the vectors of rows that are written: by these settings, or by the environment's provider.

    None when there is no provider, or it is not to be asked by writes.
    """
    chosen = settings if settings is not None else from_environment()
    return text_vectors(chosen) if chosen is not None and chosen.on_write else None


def _about_the_row(refusal: EmbeddingRefused, asked: Sequence[int], named: Named) -> EmbeddingRefused:
    details = dict(refusal.details)
    position = details.pop("text", None)
    if position is None:
        return refusal
    return EmbeddingRefused(f"{refusal.message}; the text is {named(asked[position])}", **details)
