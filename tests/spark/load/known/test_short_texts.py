"""Texts as numbers: the same exactly where the texts are, whatever lies around them in memory."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from omnigraph.spark.load.known.short_texts import LONGEST, as_words, fitting, lengths_of, word_hashes, words_for

TEXTS = st.text(st.sampled_from(["\0", "a", "b", "é", "😀"]), max_size=20) | st.text(st.characters(codec="utf-8"))


def sizes(texts: list[str]) -> list[int]:
    return [len(text.encode()) for text in texts]


@settings(max_examples=200, deadline=None)
@given(texts=st.lists(TEXTS, max_size=12), words=st.integers(1, 8), start=st.integers(0, 3), left_out=st.integers(0, 3))
def test_two_texts_have_the_same_numbers_when_they_are_the_same(
    texts: list[str], words: int, start: int, left_out: int
) -> None:
    texts = [text for text in texts if len(text.encode()) < 8 * words]
    given = pa.array(["before", *texts, "\xff" * 20], pa.string()).slice(1, len(texts))
    given = given.slice(min(start, len(texts)), max(0, len(texts) - left_out))
    found = as_words(given, words)
    rows = list(zip(*(column.tolist() for column in found), strict=True))
    hashes = word_hashes(found).tolist()
    told = given.to_pylist()
    for one, row, hashed in zip(told, rows, hashes, strict=True):
        for other, other_row, other_hash in zip(told, rows, hashes, strict=True):
            assert (row == other_row) is (one == other)
            assert one != other or hashed == other_hash


@given(texts=st.lists(TEXTS), words=st.integers(1, 8))
def test_what_fits_leaves_a_byte_for_its_length(texts: list[str], words: int) -> None:
    given = pa.array(texts, pa.string())
    assert lengths_of(given).tolist() == sizes(texts)
    assert fitting(given, words).tolist() == [size <= 8 * words - 1 for size in sizes(texts)]


def test_a_few_long_texts_do_not_make_room_for_all() -> None:
    assert words_for(pa.array([], pa.string())) == 1
    assert words_for(pa.array(["", "1234567"])) == 1
    assert words_for(pa.array(["12345678"])) == 2
    assert words_for(pa.array(["12345678"] * 100 + ["x" * 1000])) == 4
    assert words_for(pa.array(["x" * 1000])) * 8 == LONGEST + 1


def test_hashes_of_texts_in_a_row_are_all_different() -> None:
    texts = pa.array([f"person-{number}" for number in range(200_000)])
    assert len(np.unique(word_hashes(as_words(texts, 2)))) == 200_000
