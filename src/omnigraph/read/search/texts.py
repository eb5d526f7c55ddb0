"""Judging texts by themselves: which match a predicate, and how often they have the tokens of a query.

This is what a text predicate means. An index answers the same for the rows that it covers; these functions answer for
the rest, for rows that a query has bound already, and inside Spark tasks.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.query import ir
from omnigraph.read.codes.arrays import Codes, Mask
from omnigraph.read.search.analyzer import (
    GAP,
    MARK,
    analyzer,
    default_edits,
    marked_token,
    split_tokens,
    token_counts,
)
from omnigraph.read.search.edit_distance import within
from omnigraph.schema.search_settings import TextSettings


@dataclass(frozen=True, slots=True)
class TextQuery:
    """A predicate with its values: what is looked for, and how tokens are made."""

    predicate: ir.TextPredicate
    text: str
    edits: int | None
    settings: TextSettings

    @property
    def tokens(self) -> list[str]:
        """The distinct tokens that are looked for."""
        return analyzer(self.settings).tokens(self.text)

    def edits_of(self, token: str) -> int:
        """How far a token may be away."""
        return default_edits(token) if self.edits is None else self.edits


def matching(texts: pa.Array, query: TextQuery) -> Mask:
    """Which texts match. A missing text, and a query without tokens, match nothing."""
    tokens = query.tokens
    found = np.zeros(len(texts), dtype=bool)
    if not tokens or len(texts) == 0:
        return found
    if query.predicate is ir.TextPredicate.FUZZY:
        return _near(analyzer(query.settings).marked(texts), query, tokens)
    at = np.flatnonzero(may_have(texts, tokens, query.settings))
    found[at] = _matching(analyzer(query.settings).marked(texts.take(pa.array(at))), query, tokens)
    return found


def may_have(texts: pa.Array, tokens: list[str], settings: TextSettings) -> Mask:
    """The texts that can have one of the tokens.

    A text that is ASCII as a whole has a token only where it has its letters, if words stay as they are: a look for
    those is much quicker than taking it apart.
    """
    if not settings.plain:
        return np.ones(len(texts), dtype=bool)
    can: Mask = ~_mask(pc.fill_null(pc.string_is_ascii(texts), True))
    lowered = pc.ascii_lower(texts)
    for token in tokens:
        can |= _mask(pc.fill_null(pc.match_substring(lowered, token), False))
    return can


def _matching(marked: pa.Array, query: TextQuery, tokens: list[str]) -> Mask:
    match query.predicate:
        case ir.TextPredicate.SEARCH:
            return np.asarray(_having(marked, tokens).any(axis=0))
        case ir.TextPredicate.MATCH_ALL:
            return np.asarray(_having(marked, tokens).all(axis=0))
        case _:
            return _phrase(marked, analyzer(query.settings).sequence(query.text))


def _having(marked: pa.Array, tokens: list[str]) -> npt.NDArray[np.bool_]:
    return np.array([_mask(pc.match_substring(marked, marked_token(token))) for token in tokens])


def _phrase(marked: pa.Array, sequence: list[str]) -> Mask:
    if GAP not in sequence:
        return _mask(pc.match_substring(marked, "".join(map(marked_token, sequence))))
    pattern = "".join(f"{MARK}[^{MARK}]*{MARK}" if each == GAP else re.escape(marked_token(each)) for each in sequence)
    return _mask(pc.match_substring_regex(marked, pattern))


def _near(marked: pa.Array, query: TextQuery, tokens: list[str]) -> Mask:
    pieces, owners = split_tokens(marked)
    encoded = pieces.dictionary_encode()
    near = np.zeros(len(encoded.dictionary), dtype=bool)
    for token in tokens:
        near[within(token, encoded.dictionary, query.edits_of(token))] = True
    found = np.zeros(len(marked), dtype=bool)
    found[owners[near[encoded.indices.to_numpy()]]] = True
    return found


def _mask(found: pa.Array) -> Mask:
    return np.asarray(found.to_numpy(zero_copy_only=False), dtype=bool)


@dataclass(frozen=True, slots=True)
class Counted:
    """How many tokens each text has, and how often each of some tokens: one row of `counts` for each token."""

    sizes: Codes
    counts: npt.NDArray[np.int64]

    @property
    def matched(self) -> Mask:
        """The texts that have one of the tokens."""
        return np.asarray(self.counts.any(axis=0))


FEW = 128
"""So many texts are counted one by one: the way over whole columns costs as much before it begins."""


def counted(texts: pa.Array, tokens: list[str], settings: TextSettings) -> Counted:
    """Count tokens in texts."""
    if len(texts) <= FEW:
        wanted = analyzer(settings)
        listed = [[] if text is None else wanted.listed(text) for text in texts.to_pylist()]
        sizes = np.array([len(each) for each in listed], dtype=np.int64)
        found = np.array([[each.count(token) for each in listed] for token in tokens], dtype=np.int64)
        return Counted(sizes, found.reshape(len(tokens), len(texts)))
    marked = analyzer(settings).marked(texts)
    rows = [pc.count_substring(marked, marked_token(token)).to_numpy(zero_copy_only=False) for token in tokens]
    counts = np.array(rows, dtype=np.int64).reshape(len(tokens), len(texts))
    return Counted(token_counts(marked), counts)


BM25_K1 = 1.2
BM25_B = 0.75


@dataclass(frozen=True, slots=True)
class Corpus:
    """What BM25 knows of a column: the mean number of tokens of a text, and the rarity of each token of a query."""

    average: float
    rarities: tuple[float, ...]


def rarity(texts: int, having: int) -> float:
    """The weight of a token that so many of all texts have."""
    return float(np.log(1 + (texts - having + 0.5) / (having + 0.5)))


def token_weight(counts: Any, sizes: Any, average: float) -> Any:
    """What the counts of a token in texts of these sizes multiply its rarity by; for one text, or for an array."""
    return counts * (BM25_K1 + 1) / (counts + BM25_K1 * (1 - BM25_B + BM25_B * sizes / average))


def bm25(found: Counted, corpus: Corpus) -> npt.NDArray[np.float64]:
    """The score of each text, not-a-number where no token matches. Tokens count in the order of the query."""
    scores = np.zeros(len(found.sizes))
    for counts, weight in zip(found.counts, corpus.rarities, strict=True):
        at = np.flatnonzero(counts)
        scores[at] += weight * token_weight(counts[at], found.sizes[at], corpus.average)
    scores[~found.matched] = np.nan
    return scores


def scored(texts: pa.Array, tokens: list[str], settings: TextSettings, corpus: Corpus) -> npt.NDArray[np.float64]:
    """The score of each text, to the last bit what `bm25` makes of their counts; a few texts are scored one by one."""
    if len(texts) > FEW:
        return bm25(counted(texts, tokens, settings), corpus)
    listed = analyzer(settings).listed
    weights = tuple(zip(tokens, corpus.rarities, strict=True))
    return np.array([_score([] if text is None else listed(text), weights, corpus) for text in texts.to_pylist()])


def _score(words: list[str], weights: tuple[tuple[str, float], ...], corpus: Corpus) -> float:
    score, size = None, len(words)
    for token, weight in weights:
        count = words.count(token)
        if count:
            score = (score or 0.0) + weight * token_weight(count, size, corpus.average)
    return math.nan if score is None else score
