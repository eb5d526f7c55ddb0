"""Ids that are made ready once and then asked about again and again, and columns of ids that have none twice.

A join and a set hash what is known anew for each question. In a load of many edges, whose tasks all ask about the same
nodes, that is most of the work, and it grows with edges times nodes. Here the known ids are put into tables of slots:
the hash of an id names its slot, and who is not alone in it goes on to the next, smaller table. The text itself is
compared in the end, so that what is told does not hang on hashes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.spark.load.load_messages import duckdb_connection
from omnigraph.write.validate.key_changes import distinct, one_array

Hashes = np.ndarray[Any, np.dtype[np.uint64]]
Numbers = np.ndarray[Any, np.dtype[np.int32]]

ASKED_TOGETHER = 250_000
"""Ids that are looked up at once: what is held for them beside the tables is some ten megabytes."""

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
        self._ids = one_array(ids).drop_null()
        placed = _placed(text_hashes(self._ids))
        self._tables = placed.tables
        self._left = self._ids.take(pa.array(placed.left))

    def missing(self, asked: pa.ChunkedArray | pa.Array) -> pa.Array:
        """Of these ids those that are not known, each once; nulls are none."""
        chunks = [asked] if isinstance(asked, pa.Array) else asked.chunks
        pieces = [
            self._missing(chunk.slice(start, ASKED_TOGETHER).drop_null())
            for chunk in chunks
            for start in range(0, len(chunk), ASKED_TOGETHER)
        ]
        return distinct(pa.chunked_array(pieces, pa.string()))

    def _missing(self, texts: pa.Array) -> pa.Array:
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
        slots = _slot(hashes[left], mix, bits)
        positions = np.zeros(1 << bits, np.int32)
        positions[slots] = left
        tables.append(_Slots(mix, bits, positions))
        there = positions[slots]
        lost = there != left
        left, there = left[lost], there[lost]
        twins = twins or bool((hashes[left] == hashes[there]).any())
    return _Placed(tables, left, twins)


def _slot(hashes: Hashes, mix: np.uint64, bits: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    return ((hashes * mix) >> np.uint64(64 - bits)).astype(np.int64)
