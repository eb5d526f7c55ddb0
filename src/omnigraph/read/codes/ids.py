"""Ids as small integers. All bindings inside a query are integer codes; text appears again only in the result.

Ids compare as Unicode text by code point, which is the order of their UTF-8 bytes, which is how Arrow sorts.
"""

from __future__ import annotations

from bisect import bisect_left

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.read.codes.arrays import Codes, codes_of, combined

FEW = 64
"""Up to so many ids are found by binary search; more of them are worth a hash table."""


class SortedIds:
    """All ids of a table in their order: the code of an id is its rank, so codes sort as ids do."""

    def __init__(self, ids: pa.Array) -> None:
        """`ids` are sorted and distinct."""
        self.ids = ids

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return int(self.ids.nbytes)

    def find(self, wanted: pa.Array) -> Codes:
        """The code of each id, -1 for one that is not there."""
        if len(wanted) <= FEW:
            return np.fromiter((self._find_one(text) for text in wanted.to_pylist()), dtype=np.int64, count=len(wanted))
        found = pc.index_in(wanted, value_set=self.ids)
        return codes_of(pc.fill_null(found, -1))

    def _find_one(self, text: str | None) -> int:
        if text is None:
            return -1
        # Python compares text by code point, as Arrow's sort has ordered it.
        at = bisect_left(_Texts(self.ids), text)
        return at if at < len(self.ids) and self.ids[at].as_py() == text else -1


class _Texts:
    """The ids as a sequence of `str`, for bisection without copying them."""

    def __init__(self, ids: pa.Array) -> None:
        self._ids = ids

    def __len__(self) -> int:
        return len(self._ids)

    def __getitem__(self, at: int) -> str:
        return str(self._ids[at].as_py())


class NodeIds(SortedIds):
    """The ids of one node table, and where each row is in the table's own order."""

    def __init__(self, scanned: pa.ChunkedArray) -> None:
        ids = combined(scanned)
        positions = pc.sort_indices(ids).to_numpy().astype(np.int64)
        in_order = bool(np.all(positions[1:] > positions[:-1])) if len(positions) > 1 else True
        super().__init__(ids if in_order else ids.take(pa.array(positions)))
        self.positions: Codes | None = None if in_order else positions
        """The row of each code in scan order; None when rows are in id order already."""
        self.codes: Codes | None = None
        """The code of each row in scan order; None when rows are in id order already."""
        if self.positions is not None:
            self.codes = np.empty(len(positions), dtype=np.int64)
            self.codes[positions] = np.arange(len(positions))

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return int(self.ids.nbytes) + (0 if self.positions is None else 16 * len(self))

    def rows_of(self, codes: Codes) -> Codes:
        """Where these codes are in the table's own order."""
        return codes if self.positions is None else self.positions[codes]

    def codes_of_rows(self, rows: Codes) -> Codes:
        """The codes of rows in the table's own order."""
        return rows if self.codes is None else self.codes[rows]


_NO_IDS = pa.array([], pa.large_string())


class GrowingIds:
    """The ids that one query has met so far, in the order of meeting. Used where reading all ids would cost more."""

    def __init__(self) -> None:
        self.ids: pa.Array = _NO_IDS
        self._by_text: dict[str, int] | None = None

    def __len__(self) -> int:
        return len(self.ids)

    def encode_distinct(self, ids: pa.Array) -> Codes:
        """Codes of ids that are known to be distinct: the first batch needs no look-up at all."""
        if len(self.ids) == 0:
            self.ids = combined(ids)
            self._by_text = None
            return np.arange(len(ids), dtype=np.int64)
        return self.encode(ids)

    def encode(self, ids: pa.Array) -> Codes:
        """Codes of ids; new ids get new codes."""
        ids = combined(ids)
        if len(ids) <= 4096:
            return self._encode_few(ids)
        codes = codes_of(pc.fill_null(pc.index_in(ids, value_set=self.ids), -1)).copy()
        missing = codes < 0
        if missing.any():
            encoded = ids.filter(pa.array(missing)).dictionary_encode()
            codes[missing] = encoded.indices.to_numpy() + len(self.ids)
            self.ids = pa.concat_arrays([self.ids, encoded.dictionary])
            self._by_text = None
        return codes

    def _encode_few(self, ids: pa.Array) -> Codes:
        if self._by_text is None:
            self._by_text = {text: code for code, text in enumerate(self.ids.to_pylist())}
        known = self._by_text
        before = len(known)
        codes = np.fromiter((known.setdefault(text, len(known)) for text in ids.to_pylist()), np.int64, len(ids))
        if before == 0 and len(known) == len(ids):
            # The first ids, each once.
            self.ids = ids
        elif len(known) > before:
            fresh = list(known)[before:]
            self.ids = pa.concat_arrays([self.ids, pa.array(fresh, pa.large_string())])
        return codes

    def at(self, codes: Codes) -> pa.Array:
        """The ids behind codes."""
        if len(codes) == len(self.ids) and bool((codes == np.arange(len(codes))).all()):
            return self.ids
        return self.ids.take(pa.array(codes))

    def order_of(self, codes: Codes) -> Codes:
        """Integers that sort as the ids do."""
        return text_ranks(self.at(codes))


def text_ranks(texts: pa.Array) -> Codes:
    """Equal texts get equal integers, and the integers sort as the texts do."""
    encoded = combined(texts).dictionary_encode()
    order = pc.sort_indices(encoded.dictionary).to_numpy().astype(np.int64)
    ranks = np.empty(len(order), dtype=np.int64)
    ranks[order] = np.arange(len(order))
    return ranks[codes_of(encoded.indices)]
