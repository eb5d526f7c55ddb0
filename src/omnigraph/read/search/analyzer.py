"""Text to tokens: the tokens that Lance's index makes of a text, made here for whole columns.

Lance splits at everything that is neither letter nor digit, puts characters into lower case one by one and folds them
to ASCII where they have such a form; nothing depends on the neighbours of a character. So plain settings need one
table, character to what becomes of it, which is filled by asking Lance the first time a character is met. Texts that
are ASCII as a whole take a way through Arrow. With stemming or stop words the table holds whole words instead.

Tokens of one text are kept as one string in which each stands between two marks. A token is found in it by a search
for its marked form, and a phrase by the marked forms one after the other.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.read.codes.arrays import Codes
from omnigraph.schema.search_settings import TextSettings
from omnigraph.storage.reading.analysis import is_separator, lance_tokens

MARK = "\x1f"
"""Stands before and after each token; it separates tokens itself, so no token holds it."""
GAP = "\x1e"
"""Stands in the place of a word that the settings leave out."""
MOST_WORDS = 1 << 18
"""So many words are remembered with what becomes of them."""
MOST_QUERIES = 256
"""The tokens of so many query texts are remembered: one run of a query asks for them several times."""


class Analyzer:
    """The tokens of texts under one set of settings. Made once for each by `analyzer`."""

    def __init__(self, settings: TextSettings) -> None:
        self.settings = settings
        self._characters = _Characters(settings)
        self._splits = _Splits()
        self._words: dict[str, str] = {}
        self._sequence_of = lru_cache(MOST_QUERIES)(self._made_sequence)
        self._words_of = lru_cache(MOST_QUERIES)(self._made_words)

    def marked(self, texts: pa.Array) -> pa.Array:
        """The tokens of each text between marks, in sequence; nothing for a missing text."""
        plain = pc.fill_null(texts, "").cast(pa.large_string())
        if not self.settings.plain:
            return pa.array([self._by_word(text) for text in plain.to_pylist()], pa.large_string())
        is_ascii = pc.string_is_ascii(plain)
        if pc.all(is_ascii, min_count=0).as_py():
            return _ascii(plain)
        ascii_at = np.asarray(is_ascii.to_numpy(zero_copy_only=False))
        others = plain.filter(pa.array(~ascii_at)).to_pylist()
        made = pa.array([self._by_character(text) for text in others], pa.large_string())
        both = pa.concat_arrays([_ascii(plain.filter(is_ascii)), made])
        back = np.empty(len(plain), dtype=np.int64)
        back[ascii_at] = np.arange(int(ascii_at.sum()))
        back[~ascii_at] = np.arange(int(ascii_at.sum()), len(plain))
        return both.take(pa.array(back))

    def listed(self, text: str) -> list[str]:
        """The tokens of one text as they come, words that are left out not among them: quick for a few texts."""
        if self.settings.plain:
            tokens = text.translate(self._characters).split(MARK)
            return [token for token in tokens if token] if "" in tokens else tokens
        words = text.translate(self._splits).split(MARK)
        return [token for word in words if word and (token := self._word(word)) != GAP]

    def sequence(self, text: str) -> list[str]:
        """The tokens of one text in sequence, with gaps for words that are left out between them."""
        return list(self._sequence_of(text))

    def _made_sequence(self, text: str) -> tuple[str, ...]:
        marked = self.marked(pa.array([text], pa.large_string()))[0].as_py()
        return tuple(marked.strip(MARK).strip(GAP + MARK).split(MARK + MARK)) if marked.strip(GAP + MARK) else ()

    def tokens(self, text: str) -> list[str]:
        """The distinct tokens of a text, in order of first appearance."""
        return [token for token in dict.fromkeys(self.sequence(text)) if token != GAP]

    def words(self, text: str) -> dict[str, str]:
        """The distinct tokens of a text, each with a word of the text that becomes it."""
        return dict(self._words_of(text))

    def _made_words(self, text: str) -> tuple[tuple[str, str], ...]:
        found: dict[str, str] = {}
        for word in text.translate(self._splits).split(MARK):
            for token in dict.fromkeys(self._made_sequence(word)):
                if token != GAP:
                    found.setdefault(token, word)
        return tuple(found.items())

    def _by_character(self, text: str) -> str:
        pieces = text.translate(self._characters).split(MARK)
        return "".join([f"{MARK}{piece}{MARK}" for piece in pieces if piece])

    def _by_word(self, text: str) -> str:
        pieces = text.translate(self._splits).split(MARK)
        return "".join([f"{MARK}{self._word(piece)}{MARK}" for piece in pieces if piece])

    def _word(self, word: str) -> str:
        known = self._words.get(word)
        if known is None:
            found = lance_tokens(word, self.settings)
            known = found[0][0] if found else GAP
            if len(self._words) >= MOST_WORDS:
                self._words.clear()
            self._words[word] = known
        return known


class _Characters(dict[int, str]):
    """What becomes of each character: a mark for one that separates."""

    def __init__(self, settings: TextSettings) -> None:
        super().__init__()
        self._settings = settings

    def __missing__(self, code: int) -> str:
        found = lance_tokens(chr(code), self._settings)
        self[code] = made = found[0][0] if found else MARK
        return made


class _Splits(dict[int, str]):
    """Each character as it is, and a mark for one that separates."""

    def __missing__(self, code: int) -> str:
        self[code] = made = MARK if is_separator(chr(code)) else chr(code)
        return made


@lru_cache(maxsize=64)
def analyzer(settings: TextSettings) -> Analyzer:
    """The analyzer of these settings."""
    return Analyzer(settings)


def marked_token(token: str) -> str:
    """A token as it stands in marked text."""
    return f"{MARK}{token}{MARK}"


def token_counts(marked: pa.Array) -> Codes:
    """How many tokens each text has. Words that are left out do not count."""
    counts = pc.count_substring(marked, MARK).to_numpy(zero_copy_only=False).astype(np.int64) // 2
    gaps = pc.count_substring(marked, GAP).to_numpy(zero_copy_only=False).astype(np.int64)
    return np.asarray(counts - gaps, dtype=np.int64)


def split_tokens(marked: pa.Array) -> tuple[pa.Array, Codes]:
    """All tokens one after the other, gaps left out, and the text that each is of."""
    lists = pc.split_pattern(pc.utf8_trim(marked, MARK), MARK + MARK)
    pieces, owners = pc.list_flatten(lists), pc.list_parent_indices(lists)
    there = pc.and_(pc.not_equal(pieces, ""), pc.not_equal(pieces, GAP))
    return pieces.filter(there), owners.filter(there).to_numpy().astype(np.int64)


def default_edits(token: str) -> int:
    """How many edits a token may be away when the query does not say: none up to 2 characters, 1 up to 5, else 2."""
    return 0 if len(token) <= 2 else 1 if len(token) <= 5 else 2


def _ascii(texts: pa.Array) -> pa.Array:
    """The way of texts that are ASCII as a whole: letters and digits are their own lower case, all else separates."""
    spaced = pc.replace_substring_regex(pc.ascii_lower(texts), "[^0-9a-z]+", " ")
    joined = pc.replace_substring(pc.ascii_trim_whitespace(spaced), " ", MARK + MARK)
    mark, nothing = pa.scalar(MARK, pa.large_string()), pa.scalar("", pa.large_string())
    return pc.if_else(pc.equal(joined, ""), nothing, pc.binary_join_element_wise(mark, joined, mark, nothing))
