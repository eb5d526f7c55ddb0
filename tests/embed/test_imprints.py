"""A vector knows its text and model, and is told from one that somebody gave."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pytest

from omnigraph.embed.due import due, embed_mode
from omnigraph.embed.imprints import imprint_of, imprinted, is_certain, read_imprints
from omnigraph.errors import BadRequest

TEXTS = ["", "a cat", "the same cat", "猫 🐈", "\ud800 half"]


def some_vectors(count: int, dim: int) -> np.ndarray:
    found = np.random.default_rng(count * dim).normal(size=(count, dim)).astype(np.float32)
    unit: np.ndarray = found / np.linalg.norm(found, axis=1, keepdims=True)
    return unit.astype(np.float32)


@pytest.mark.parametrize("dim", [1, 3, 4, 8, 12, 31, 32, 96, 97, 384, 1536])
def test_imprints_are_read_back_and_change_hardly_anything(dim: int) -> None:
    given = some_vectors(len(TEXTS), dim)
    made = imprinted(given, TEXTS, "m")
    found = read_imprints(made)
    assert found.made_here.all()
    assert found.model.tolist() == [imprint_of("m", dim)] * len(TEXTS)
    assert found.text.tolist() == [imprint_of(text, dim) for text in TEXTS]
    assert np.isfinite(made).all()
    assert np.abs(made - given).max() < (2**-15 if dim < 96 else 2**-23)
    # What goes out as text and comes back, as JSON does it, is the same vector.
    again = np.array(json.loads(json.dumps(made.tolist())), np.float32)
    assert read_imprints(again).text.tolist() == found.text.tolist()


@pytest.mark.parametrize("dim", [12, 384])
def test_given_vectors_have_no_imprint(dim: int) -> None:
    assert is_certain(dim)
    assert not read_imprints(some_vectors(5000, dim)).made_here.any()
    assert not read_imprints(np.zeros((3, dim), np.float32)).made_here.any()
    assert not read_imprints(np.ones((3, dim), np.float32)).made_here.any()
    assert not is_certain(11)


def test_what_is_due() -> None:
    dim = 16
    made = imprinted(some_vectors(6, dim), ["fresh", "old", "gone", "fresh", "x", "x"], "m")
    other = imprinted(some_vectors(1, dim), ["of another model"], "n")
    rows = [
        ("fresh", made[0]),
        ("new", made[1]),
        (None, made[2]),
        ("no vector", None),
        (None, None),
        ("given", some_vectors(1, dim)[0]),
        ("of another model", other[0]),
    ]
    texts = pa.array([text for text, _ in rows], pa.string())
    vectors = pa.array([None if v is None else v.tolist() for _, v in rows], pa.list_(pa.float32(), dim))

    def found(mode: str) -> tuple[list[int], list[int]]:
        what = due(texts, vectors, embed_mode(mode), "m")
        return np.flatnonzero(what.make).tolist(), np.flatnonzero(what.clear).tolist()

    assert found("missing") == ([3], [])
    assert found("stale") == ([1, 3, 6], [2])
    assert found("all") == ([0, 1, 3, 5, 6], [2])
    assert np.flatnonzero(due(texts, vectors, "missing", "m").other_model).tolist() == [6]
    with pytest.raises(BadRequest, match="use missing, stale, all"):
        embed_mode("some")
