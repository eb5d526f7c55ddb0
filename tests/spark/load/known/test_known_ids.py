"""Ids that are asked about again and again: what is missing among them, judged by Python's own sets."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omnigraph.spark.load.known import all_committed, known_ids
from omnigraph.spark.load.known.known_ids import KnownIds, are_distinct
from omnigraph.storage.values import TableVersion

FEW = st.sampled_from(["\0", "a", "b", "\xff", "\u20ac", "\U0001f600"])
"""So few that texts are often the same but for one character, or for their length."""
TEXTS = st.text(st.characters(codec="utf-8"), max_size=12) | st.integers(0, 9).flatmap(
    lambda times: st.text(FEW, max_size=9).map(lambda tail: "\0" * 8 * times + tail)
)


def chunked(*parts: list[str | None]) -> pa.ChunkedArray:
    return pa.chunked_array([pa.array(part, pa.string()) for part in parts], pa.string())


@settings(max_examples=60, deadline=None)
@given(known=st.sets(TEXTS), asked=st.lists(st.lists(st.none() | TEXTS)), picked=st.integers(0, 5))
def test_what_is_missing_is_told_once(known: set[str], asked: list[list[str | None]], picked: int) -> None:
    asked.append(sorted(known)[:picked])
    found = KnownIds(pa.array(sorted(known), pa.string())).missing(chunked(*asked)).to_pylist()
    assert sorted(found) == sorted({text for part in asked for text in part if text is not None} - known)


@settings(max_examples=60, deadline=None)
@given(texts=st.lists(TEXTS, max_size=20), cut=st.integers(0, 20))
def test_none_comes_twice(texts: list[str], cut: int) -> None:
    assert are_distinct(chunked(texts[:cut], texts[cut:])) is (len(set(texts)) == len(texts))


def test_many_ids_have_places_of_their_own() -> None:
    texts = pa.array([f"person-{number}" for number in range(300_000)], pa.string())
    assert are_distinct(pa.chunked_array([texts]))
    for twin in (0, 150_000, 299_999):  # in the first of many parts, in one between, and in the last
        assert not are_distinct(pa.chunked_array([texts, texts.slice(twin, 1)]))
    known = KnownIds(texts.slice(1))
    assert not len(known.missing(texts.slice(1)))
    assert known.missing(pa.concat_arrays([texts, pa.array(["person-300000"])])).to_pylist() == [
        "person-0",
        "person-300000",
    ]


@pytest.mark.parametrize("tail", ["", "x" * 7, "x" * 62, "x" * 63, "x" * 200])
def test_ids_decide_where_hashes_are_the_same(monkeypatch: pytest.MonkeyPatch, tail: str) -> None:
    monkeypatch.setattr(known_ids, "text_hashes", lambda texts: np.full(len(texts), 7, np.uint64))
    monkeypatch.setattr(known_ids, "word_hashes", lambda words: np.full(len(words[0]), 7, np.uint64))
    known = KnownIds(pa.array(["a" + tail, "b" + tail, "c" + tail]))
    asked = pa.array(["c" + tail, "d" + tail, "a" + tail, "d" + tail, None])
    assert known.missing(asked).to_pylist() == ["d" + tail]
    assert not are_distinct(chunked(["a", "b"]))  # one may come twice, which has to be looked for


def test_a_few_long_ids_among_short_ones() -> None:
    short, long = [f"p{number}" for number in range(1000)], ["https://example.org/" + "x" * size for size in range(100)]
    known = KnownIds(pa.array([*short, *long[1:]]))
    found = known.missing(pa.array([*long, *short, "p", "", "x" * 500])).to_pylist()
    assert sorted(found) == sorted([long[0], "p", "", "x" * 500])


def test_ids_may_come_twice_or_be_missing() -> None:
    known = KnownIds(chunked(["a", None, "b"], ["a"] * 20))
    assert known.missing(pa.array(["a", "b", "c", None, "c"])).to_pylist() == ["c"]


def test_a_slot_that_nobody_has_is_not_the_first_id() -> None:
    """An empty slot names position 0, whose text then says no."""
    known = KnownIds(pa.array(["a"]))
    assert known.missing(pa.array([f"x{number}" for number in range(64)] + ["a"])).to_pylist() == [
        f"x{number}" for number in range(64)
    ]


def test_a_worker_keeps_the_ids_of_both_ends_and_of_one_version_each(monkeypatch: pytest.MonkeyPatch) -> None:
    ids = KnownIds(pa.array(["a"]))
    kept = {
        ("uri", "one", TableVersion("people", None, 1)): ids,
        ("uri", "one", TableVersion("places", None, 1)): ids,
    }
    monkeypatch.setattr(all_committed, "_kept", kept)
    all_committed._make_room(TableVersion("people", None, 2))
    assert [key[2].location for key in kept] == ["places"]
    kept["uri", "one", TableVersion("people", None, 2)] = ids
    all_committed._make_room(TableVersion("things", None, 1))
    assert [key[2].location for key in kept] == ["people"]
