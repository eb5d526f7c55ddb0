"""Text to tokens: the one definition that documents and queries share.

Text is put into Unicode form NFKC and lower-cased character by character. A token is a longest run of letters,
marks and digits; everything else separates. There are no stop words and no stemming, and tokens of any length
count. Scripts that do not separate words give one token for each unbroken run.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.read.codes.arrays import Codes

SEPARATOR = r"[^\pL\pM\pN]+"


def tokenize(texts: pa.Array) -> tuple[pa.Array, Codes]:
    """All tokens one after the other, and where the tokens of each text start (one more entry than texts)."""
    if len(texts) == 0:
        return pa.array([], pa.large_string()), np.zeros(1, dtype=np.int64)
    plain = pc.fill_null(texts, "").cast(pa.large_string())
    lists = pc.split_pattern_regex(pc.utf8_lower(pc.utf8_normalize(plain, "NFKC")), SEPARATOR)
    pieces = pc.list_flatten(lists)
    owners = pc.list_parent_indices(lists)
    full = pc.not_equal(pieces, "")
    counts = np.bincount(owners.filter(full).to_numpy(), minlength=len(texts))
    return pieces.filter(full), np.concatenate(([0], np.cumsum(counts))).astype(np.int64)


def query_tokens(text: str) -> list[str]:
    """The distinct tokens of a query text, in order of first appearance."""
    return list(dict.fromkeys(phrase_tokens(text)))


def phrase_tokens(text: str) -> list[str]:
    """The tokens of a query text in sequence."""
    return list(tokenize(pa.array([text], pa.large_string()))[0].to_pylist())


def default_edits(token: str) -> int:
    """How many edits a token may be away when the query does not say: none up to 2 characters, 1 up to 5, else 2."""
    return 0 if len(token) <= 2 else 1 if len(token) <= 5 else 2
