"""Ids that are made ready once and then asked about again and again, and columns of ids that have none twice.

A join and a set hash what is known anew for each question. In a load of many edges, whose tasks all ask about the same
nodes, that is most of the work, and it grows with edges times nodes. Here the known ids are put into tables of slots:
the hash of an id names its slot, and who is not alone in it goes on to the next, smaller table. The whole id is
compared in the end, so that what is told does not hang on hashes: short ones as numbers, others as texts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.spark.load.known.short_texts import as_words, fitting, word_hashes, words_for
from omnigraph.spark.load.load_messages import duckdb_connection
from omnigraph.write.validate.key_changes import distinct, one_array

Hashes = np.ndarray[Any, np.dtype[np.uint64]]
Numbers = np.ndarray[Any, np.dtype[np.int32]]

AT_ONCE = 32_768
"""Ids that are placed or looked up at once. What is made of them on the way stays in the caches of a processor, and is
small enough to be made in memory that was used before: of millions of them, each step would ask the system for more."""

_MIXES = tuple(
    np.uint64(number)
    for number in (
        0x9E3779B97F4A7C15,
        0xC2B2AE3D27D4EB4F,
        0x165667B19E3779F9,
        0xD6E8FEB86659FD93,
        0xA0761D6478BD642F,
        0xE7037ED1A0B428DB,
        0x8EBC6AF09C88C6E3,
        0x589965CC75374CC3,
    )
)
"""Each table cuts another piece out of a hash, or those that met in one would meet in all."""


@dataclass(frozen=True, slots=True)
class _Slots:
    """One table: in the slot that a hash names stands the position of an id. A slot that nobody has says 0."""

    mix: np.uint64
    bits: int
    positions: Numbers

    def of(self, hashes: Hashes) -> Numbers:
        """The positions that stand where these hashes lead."""
        return np.asarray(self.positions[_slot(hashes, self.mix, self.bits)])


@dataclass(frozen=True, slots=True)
class _Placed:
    """Tables in which positions have slots to themselves; those that met another one in all of them; and whether two
    that met had the same hash."""

    tables: list[_Slots]
    left: Numbers
    twins: bool


class KnownIds:
    """Ids, and what it takes to find others among them."""

    def __init__(self, ids: pa.ChunkedArray | pa.Array) -> None:
        every = one_array(ids).drop_null()
        self._words = words_for(every)
        short = fitting(every, self._words)
        long = None if short.all() else every.filter(pa.array(~short))
        self._short = _ShortIds(every if long is None else every.filter(pa.array(short)), self._words)
        self._long = None if long is None else _LongIds(long)

    def missing(self, asked: pa.ChunkedArray | pa.Array) -> pa.Array:
        """Of these ids those that are not known, each once; nulls are none."""
        chunks = [asked] if isinstance(asked, pa.Array) else asked.chunks
        pieces = [piece for chunk in chunks for piece in self._missing(chunk.drop_null())]
        return distinct(pa.chunked_array(pieces, pa.string()))

    def _missing(self, texts: pa.Array) -> Iterator[pa.Array]:
        short = fitting(texts, self._words)
        if not short.all():
            long = texts.filter(pa.array(~short))
            yield long if self._long is None else self._long.missing(long)
            texts = texts.filter(pa.array(short))
        for start in range(0, len(texts), AT_ONCE):
            yield self._short.missing(texts.slice(start, AT_ONCE))


class _ShortIds:
    """Those that fit into a few numbers each."""

    def __init__(self, ids: pa.Array, words: int) -> None:
        # The numbers of one id lie side by side: to look at them is one way into memory.
        self._ids = np.empty((len(ids), words), np.uint64)
        hashes = np.empty(len(ids), np.uint64)
        for start in range(0, len(ids), AT_ONCE):
            columns = as_words(ids.slice(start, AT_ONCE), words)
            hashes[start : start + AT_ONCE] = word_hashes(columns)
            for number, column in enumerate(columns):
                self._ids[start : start + AT_ONCE, number] = column
        placed = _placed(hashes)
        self._tables = placed.tables
        self._left = ids.take(pa.array(placed.left))
        self._words = words

    def missing(self, texts: pa.Array) -> pa.Array:
        """Of these short texts those that are none of the ids."""
        asked = as_words(texts, self._words)
        hashes = word_hashes(asked)
        at: Any = None
        for table in self._tables:
            there = np.take(self._ids, table.of(hashes), axis=0)
            differ = there[:, 0] ^ asked[0]
            for number in range(1, self._words):
                differ |= there[:, number] ^ asked[number]
            others = np.flatnonzero(differ != 0)
            if not len(others):
                return texts.slice(0, 0)
            at = others if at is None else at[others]
            hashes, asked = hashes[others], [word[others] for word in asked]
        texts = texts if at is None else texts.take(pa.array(at))
        return texts.filter(pc.invert(pc.is_in(texts, value_set=self._left)))


class _LongIds:
    """The others, whose texts are compared."""

    def __init__(self, ids: pa.Array) -> None:
        self._ids = ids
        placed = _placed(text_hashes(ids))
        self._tables = placed.tables
        self._left = ids.take(pa.array(placed.left))

    def missing(self, texts: pa.Array) -> pa.Array:
        """Of these texts those that are none of the ids."""
        hashes = text_hashes(texts)
        for table in self._tables:
            same = pc.equal(self._ids.take(pa.array(table.of(hashes))), texts)
            others = np.flatnonzero(~same.to_numpy(zero_copy_only=False))
            if not len(others):
                return texts.slice(0, 0)
            texts, hashes = texts.take(pa.array(others)), hashes[others]
        return texts.filter(pc.invert(pc.is_in(texts, value_set=self._left)))


def are_distinct(ids: pa.ChunkedArray) -> bool:
    """Whether no id comes twice. False: one may, which has to be looked for."""
    placed = _placed(text_hashes(ids))
    return not placed.twins and not len(placed.left)


def text_hashes(texts: pa.ChunkedArray | pa.Array) -> Hashes:
    """A number for each text, the same for the same one."""
    connection = duckdb_connection()
    connection.register("given", pa.table({"value": texts}))
    found = one_array(connection.sql("select hash(value) as n from given").to_arrow_table()["n"])
    connection.unregister("given")
    return np.asarray(found.to_numpy())


def _placed(hashes: Hashes) -> _Placed:
    tables: list[_Slots] = []
    left = np.arange(len(hashes), dtype=np.int32)
    twins = False
    for number, mix in enumerate(_MIXES):
        if not len(left):
            break
        # The first table is as small as it can be; there is always more room for the fewer that come later.
        bits = len(left).bit_length() + 1 + number
        positions = np.zeros(1 << bits, np.int32)
        for part in _parts(left):
            positions[_slot(hashes[part], mix, bits)] = part
        tables.append(_Slots(mix, bits, positions))
        left, there = _lost(tables[-1], hashes, left)
        twins = twins or bool((hashes[left] == hashes[there]).any())
    return _Placed(tables, left, twins)


def _lost(table: _Slots, hashes: Hashes, placed: Numbers) -> tuple[Numbers, Numbers]:
    """Of the positions that were put into a table those that another one took the slot of, and that one."""
    lost, theirs = [placed[:0]], [placed[:0]]
    for part in _parts(placed):
        there = table.of(hashes[part])
        others = np.flatnonzero(there != part)
        lost.append(part[others])
        theirs.append(there[others])
    return np.concatenate(lost), np.concatenate(theirs)


def _parts(positions: Numbers) -> Iterator[Numbers]:
    for start in range(0, len(positions), AT_ONCE):
        yield positions[start : start + AT_ONCE]


def _slot(hashes: Hashes, mix: np.uint64, bits: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    return ((hashes * mix) >> np.uint64(64 - bits)).astype(np.int64)
