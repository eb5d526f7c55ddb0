"""All tokens of a text column, in memory: which texts have a token, where, and how often.

The predicates and scores of a query are computed from this alone, never from the index files of the table, so what
matches cannot depend on how much of the table an index covers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.read.codes.arrays import Codes, Mask, codes_of, ranges
from omnigraph.read.codes.ids import SortedIds
from omnigraph.read.search.edit_distance import within
from omnigraph.read.search.tokenizer import default_edits, tokenize

BM25_K1 = 1.2
BM25_B = 0.75


class TextIndex:
    """A text is known by its place in the column; a missing text has no tokens and does not count."""

    def __init__(self, words: SortedIds, stream: Codes, starts: Codes, present: Mask) -> None:
        """`stream` holds the word of every token of every text in sequence; `starts` where each text begins.

        `present` says which texts are there at all.
        """
        self.words = words
        self.size = len(starts) - 1
        self.present = present
        self.texts = int(np.count_nonzero(present))
        self._stream = stream.astype(np.int32)
        self._starts = starts
        self._text_of = np.repeat(np.arange(self.size, dtype=np.int32), np.diff(starts))
        self._order = np.argsort(self._stream, kind="stable").astype(np.int32)
        counts = (
            np.bincount(self._stream, minlength=len(words)) if len(stream) else np.zeros(len(words), dtype=np.int64)
        )
        self._offsets = np.concatenate(([0], np.cumsum(counts))).astype(np.int64)

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        arrays = (self._stream, self._starts, self._text_of, self._order, self._offsets, self.present)
        return sum(array.nbytes for array in arrays) + self.words.nbytes

    def any_of(self, tokens: Sequence[str]) -> Mask:
        """The texts that have at least one of the tokens."""
        return self._having(self._known(tokens))

    def all_of(self, tokens: Sequence[str]) -> Mask:
        """The texts that have every one of the tokens, wherever they stand."""
        words = self._known(tokens)
        if not tokens or len(words) < len(tokens):
            return np.zeros(self.size, dtype=bool)
        matched = np.ones(self.size, dtype=bool)
        for word in words:
            matched &= self._having(np.array([word]))
        return matched

    def near_any_of(self, tokens: Sequence[str], edits: int | None) -> Mask:
        """The texts that have a token within the edit distance of one of the tokens (None: by the token's length)."""
        found = [within(token, self.words.ids, default_edits(token) if edits is None else edits) for token in tokens]
        return self._having(np.unique(np.concatenate(found)) if found else np.empty(0, dtype=np.int64))

    def phrase(self, tokens: Sequence[str]) -> Mask:
        """The texts that have all tokens one right after the other."""
        matched = np.zeros(self.size, dtype=bool)
        words = self._known(tokens)
        if not tokens or len(words) < len(tokens):
            return matched
        # Start from the rarest token: the fewest places to look at.
        rarest = int(np.argmin(self._offsets[words + 1] - self._offsets[words]))
        places = self._places(words[rarest : rarest + 1]).astype(np.int64) - rarest
        places = places[(places >= 0) & (places + len(words) <= len(self._stream))]
        for step, word in enumerate(words):
            places = places[self._stream[places + step] == word]
        places = places[self._text_of[places] == self._text_of[places + len(words) - 1]]
        matched[self._text_of[places]] = True
        return matched

    def bm25(self, tokens: Sequence[str]) -> npt.NDArray[np.float64]:
        """The BM25 score of every text, NaN where no token matches. Tokens count in the order given."""
        scores = np.zeros(self.size)
        matched = np.zeros(self.size, dtype=bool)
        if self.texts == 0 or len(self._stream) == 0:
            return np.full(self.size, np.nan)
        average = len(self._stream) / self.texts
        for word in self._known(tokens):
            texts, counts = np.unique(self._text_of[self._places(np.array([word]))], return_counts=True)
            sizes = self._starts[texts + 1] - self._starts[texts]
            scores[texts] += bm25_share(counts, sizes, len(texts), self.texts, average)
            matched[texts] = True
        scores[~matched] = np.nan
        return scores

    def _known(self, tokens: Sequence[str]) -> Codes:
        words = self.words.find(pa.array(list(tokens), pa.large_string()))
        return words[words >= 0]

    def _places(self, words: Codes) -> npt.NDArray[np.int32]:
        counts = self._offsets[words + 1] - self._offsets[words]
        return self._order[ranges(self._offsets[words], counts)]

    def _having(self, words: Codes) -> Mask:
        matched = np.zeros(self.size, dtype=bool)
        matched[self._text_of[self._places(words)]] = True
        return matched


def bm25_share(
    counts: npt.NDArray[Any], sizes: npt.NDArray[Any], having: int, texts: int, average: float
) -> npt.NDArray[np.float64]:
    """What one token adds to the score of texts that have it `counts` times among `sizes` tokens.

    `having` of all `texts` have the token; `average` is the mean number of tokens of a text.
    """
    rarity = np.log(1 + (texts - having + 0.5) / (having + 0.5))
    share: npt.NDArray[np.float64] = (
        rarity * counts * (BM25_K1 + 1) / (counts + BM25_K1 * (1 - BM25_B + BM25_B * sizes / average))
    )
    return share


def build_text_index(batches: Iterable[pa.RecordBatch]) -> TextIndex:
    """An index over the first column of the batches."""
    return index_texts(batch.column(0) for batch in batches)


def index_texts(columns: Iterable[pa.Array]) -> TextIndex:
    """An index over texts that come in pieces."""
    encoded: list[pa.DictionaryArray] = []
    counts: list[Codes] = []
    present: list[Mask] = []
    for column in columns:
        tokens, starts = tokenize(column)
        encoded.append(tokens.dictionary_encode())
        counts.append(np.diff(starts))
        present.append(np.asarray(column.is_valid().to_numpy(zero_copy_only=False), dtype=bool))
    names = pc.unique(pa.concat_arrays([pa.array([], pa.large_string()), *(piece.dictionary for piece in encoded)]))
    words = SortedIds(names.take(pc.sort_indices(names)))
    streams = [words.find(piece.dictionary)[codes_of(piece.indices)] for piece in encoded if len(piece)]
    stream = np.concatenate(streams) if streams else np.empty(0, dtype=np.int64)
    starts = np.concatenate(([0], np.cumsum(np.concatenate(counts)))) if counts else np.zeros(1, dtype=np.int64)
    there = np.concatenate(present) if present else np.empty(0, dtype=bool)
    return TextIndex(words, stream, starts.astype(np.int64), there)
