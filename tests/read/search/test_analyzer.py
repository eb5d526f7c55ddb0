"""Our tokens are Lance's tokens, text for text."""

from __future__ import annotations

import sys

import lance
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omnigraph.read.search.analyzer import GAP, MARK, analyzer, split_tokens, token_counts
from omnigraph.schema.search_settings import TextSettings
from omnigraph.storage.reading.analysis import analysis_parameters

CORPUS = [
    "",
    " ",
    "The quick brown Fox; the QUICK-brown_fox.",
    "foxes were running, ran and runs; the organization of organizers",
    "ﬁne_Tuning: Ⅸ/Größe e\u0301cole école ÉCOLE İstanbul ǅungla ß ẞ ſ",
    "日本語のテキスト 한국어 텍스트 ภาษาไทย हिन्दी में पाठ العربية ﷺ",
    "🙂 emoji🙂joined 👩‍👩‍👧 family ͺ ⒜ ⑴ ㈠ ²³ ½ Ⅳ",
    "user@example.com http://a.b/c?d=e 3.14 1,000 don't l'été",
    "a\x00b\x1ec\x1fd\ttab\nline\u2028sep\u00a0nbsp\u200bzero",
    "x" * 50_000 + " " + "y z " * 20_000,
]
SETTINGS = [
    TextSettings(),
    TextSettings(fold=False),
    TextSettings(stem=True),
    TextSettings(stem=True, stop_words=True),
    TextSettings(language="german", stem=True, stop_words=True, fold=False),
]


def lances(text: str, wanted: TextSettings) -> list[str]:
    return [token.text for token in lance.tokenize(text, **analysis_parameters(wanted))]


def ours(text: str, wanted: TextSettings) -> list[str]:
    return [token for token in analyzer(wanted).sequence(text) if token != GAP]


@pytest.mark.parametrize("wanted", SETTINGS, ids=str)
def test_the_tokens_of_a_corpus_are_those_of_lance(wanted):
    for text in CORPUS:
        assert ours(text, wanted) == lances(text, wanted), text[:60]


@pytest.mark.parametrize("wanted", SETTINGS[:4:3], ids=str)
@given(text=st.text() | st.text(alphabet="abAB é_-.\u0301İß日한🙂1\x1f\x1eͺﷺ", max_size=40))
@settings(max_examples=300, deadline=None)
def test_the_tokens_of_any_text_are_those_of_lance(wanted, text):
    assert ours(text, wanted) == lances(text, wanted)


def test_what_becomes_of_a_character_does_not_depend_on_its_neighbours():
    every = [chr(code) for code in range(0, sys.maxunicode + 1, 97) if not 0xD800 <= code < 0xE000]
    text = "".join(f"a{character}b " for character in every)
    assert ours(text, TextSettings()) == lances(text, TextSettings())


def test_columns_are_analyzed_like_single_texts_and_missing_ones_have_no_tokens():
    texts = pa.array([*CORPUS, None])
    for wanted in SETTINGS:
        marked = analyzer(wanted).marked(texts)
        pieces, owners = split_tokens(marked)
        by_text: list[list[str]] = [[] for _ in texts]
        for piece, owner in zip(pieces.to_pylist(), owners.tolist(), strict=True):
            by_text[owner].append(piece)
        assert by_text == [*(lances(text, wanted) for text in CORPUS), []]
        assert token_counts(marked).tolist() == [len(tokens) for tokens in by_text]


def test_no_token_holds_a_mark_or_a_gap():
    every = "".join(chr(code) + " " for code in range(sys.maxunicode + 1) if not 0xD800 <= code < 0xE000)
    assert not any(MARK in token or GAP in token for token in lances(every, TextSettings()))


def test_a_word_that_is_left_out_leaves_a_gap_between_others():
    wanted = TextSettings(stop_words=True)
    assert analyzer(wanted).sequence("the cat and the dog of") == ["cat", GAP, GAP, "dog"]
    assert analyzer(wanted).tokens("the cat and the dog of") == ["cat", "dog"]
    assert analyzer(wanted).tokens("the") == []
