"""Which rows want a vector, as a function on Arrow columns: what `missing`, `stale` and `all` mean on any engine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.choices import EmbedMode
from omnigraph.embed.imprints import imprint_of, is_certain, read_imprints
from omnigraph.errors import BadRequest

Mask = np.ndarray[Any, np.dtype[np.bool_]]


@dataclass(frozen=True, slots=True)
class Due:
    """What is to be done to rows: a vector to be made, a vector whose text is gone to be taken away."""

    make: Mask
    clear: Mask
    other_model: Mask
    """Vectors that were made here by another model than the one that is asked now."""


def embed_mode(mode: str) -> EmbedMode:
    """The mode of that name."""
    for known in get_args(EmbedMode):
        if mode == known:
            return known  # type: ignore[no-any-return]  # one of the literals
    raise BadRequest(f"`{mode}` is not a choice of rows to embed; use {', '.join(get_args(EmbedMode))}")


def due(texts: pa.Array, vectors: pa.Array, mode: EmbedMode, model: str | None) -> Due:
    """What is to be done to rows with these texts and vectors, when `model` makes the vectors (None: it is not known).

    A vector that somebody gave has no imprint: it is kept by every mode but `all`.
    """
    has_text = _mask(pc.is_valid(texts))
    has_vector = _mask(pc.is_valid(vectors))
    nothing = np.zeros(len(texts), bool)
    missing = has_text & ~has_vector
    made_here, text_moved, model_moved = _imprints(texts, vectors, has_text & has_vector, has_vector, model)
    other_model = model_moved if is_certain(vectors.type.list_size) else nothing
    if mode == "missing":
        return Due(missing, nothing, other_model)
    clear = made_here & ~has_text
    if mode == "all":
        return Due(has_text, clear, nothing)
    return Due(missing | text_moved | model_moved, clear, nothing)


def _imprints(
    texts: pa.Array, vectors: pa.Array, both: Mask, has_vector: Mask, model: str | None
) -> tuple[Mask, Mask, Mask]:
    """Per row: its vector was made here; of another text than the row has; by another model than `model`."""
    made_here = np.zeros(len(texts), bool)
    text_moved, model_moved = made_here.copy(), made_here.copy()
    there = np.flatnonzero(has_vector)
    if not len(there):
        return made_here, text_moved, model_moved
    dim = vectors.type.list_size
    imprints = read_imprints(vector_matrix(vectors.take(pa.array(there))))
    made_here[there] = imprints.made_here
    if model is not None:
        model_moved[there] = imprints.made_here & (imprints.model != imprint_of(model, dim)) & both[there]
    of_text = np.zeros(len(texts), np.uint64)
    of_text[there] = imprints.text
    for row in np.flatnonzero(made_here & both):
        text_moved[row] = int(of_text[row]) != imprint_of(texts[row].as_py(), dim)
    return made_here, text_moved, model_moved


def vector_matrix(vectors: pa.Array) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Vectors without nulls among them, as the rows of a matrix."""
    numbers = vectors.flatten().to_numpy(zero_copy_only=False)
    found: np.ndarray[Any, np.dtype[np.float32]] = numbers.reshape(len(vectors), vectors.type.list_size)
    return found


def _mask(values: Any) -> Mask:
    found: Mask = values.to_numpy(zero_copy_only=False)
    return found
