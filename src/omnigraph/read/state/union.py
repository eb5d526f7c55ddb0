"""Entities of several tables as one: what a variable of an interface, or of edge alternatives, ranges over.

A code is `code in the table * number of tables + number of the table`, so that tables whose entities are only met one
by one can grow. Entities order by id, then by the name of their type.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.read.codes.arrays import Codes, combined
from omnigraph.read.codes.ids import text_ranks
from omnigraph.read.state.spaces import Space

Fetch = Callable[[Codes], list[pa.Array]]


class UnionSpace:
    """Several spaces with the face of one."""

    def __init__(self, tables: Sequence[str], spaces: Sequence[Space]) -> None:
        self.tables = tuple(tables)
        self.spaces = tuple(spaces)

    def size(self) -> int:
        """Codes are below this."""
        return max(space.size() for space in self.spaces) * len(self.spaces)

    def number(self, table_key: str) -> int:
        """The number of a table."""
        return self.tables.index(table_key)

    def code(self, table_key: str, codes: Codes) -> Codes:
        """The codes here of entities of one table."""
        return codes * len(self.spaces) + self.number(table_key)

    def part(self, codes: Codes, table_key: str) -> tuple[Codes, Codes]:
        """Where entities of one table are among the codes, and their codes in that table."""
        if table_key not in self.tables:
            return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
        count = len(self.spaces)
        at = np.flatnonzero(codes % count == self.number(table_key))
        return at, codes[at] // count

    def ids(self, codes: Codes) -> pa.Array:
        """The ids behind codes."""
        return self._gathered(codes, lambda space, part: [space.ids(part)])[0]

    def order(self, codes: Codes) -> Codes:
        """Integers that sort as the ids do, and entities of one id by type."""
        count = len(self.spaces)
        return text_ranks(self.ids(codes)) * count + codes % count

    def columns(self, codes: Codes, names: Sequence[str]) -> list[pa.Array]:
        """Values of several properties."""
        return self._gathered(codes, lambda space, part: space.columns(part, names))

    def prefetch(self, codes: Codes, names: Sequence[str]) -> None:
        """Read what is not in memory in one go, table by table."""
        for table_key, space in zip(self.tables, self.spaces, strict=True):
            space.prefetch(self.part(codes, table_key)[1], names)

    def type_names(self, codes: Codes) -> pa.Array:
        """The name of the type of each entity."""
        names = pa.array([table_key.split(":", 1)[1] for table_key in self.tables], pa.string())
        return names.take(pa.array(codes % len(self.spaces)))

    def by_table(self, codes: Codes, fetch: Callable[[str, Codes], list[pa.Array]]) -> list[pa.Array]:
        """What is fetched from each table for its entities, put together in the order of the codes."""
        tables = dict(zip(map(id, self.spaces), self.tables, strict=True))
        return self._gathered(codes, lambda space, part: fetch(tables[id(space)], part))

    def _gathered(self, codes: Codes, fetch: Callable[[Space, Codes], list[pa.Array]]) -> list[pa.Array]:
        """Columns of all tables, put together in the order of the codes."""
        parts = [self.part(codes, table_key) for table_key in self.tables]
        found = [
            [combined(values) for values in fetch(space, local)]
            for space, (_, local) in zip(self.spaces, parts, strict=True)
        ]
        back = np.empty(len(codes), dtype=np.int64)
        back[np.concatenate([at for at, _ in parts])] = np.arange(len(codes))
        return [_joined([columns[number] for columns in found]).take(pa.array(back)) for number in range(len(found[0]))]


def _joined(arrays: list[pa.Array]) -> pa.Array:
    """Arrays of one logical type as one; a table without rows may not know its type."""
    type_ = next((array.type for array in arrays if not pa.types.is_null(array.type)), arrays[0].type)
    return pa.concat_arrays([array if array.type == type_ else array.cast(type_) for array in arrays])


def over_present(codes: Codes, fetch: Fetch) -> list[pa.Array]:
    """What is fetched for the codes; null for a code that stands for no entity."""
    missing = codes < 0
    if not missing.any():
        return fetch(codes)
    if missing.all():
        return [pa.nulls(len(codes), values.type) for values in fetch(codes[:0])]
    # Some entity stands in for none, and its values are taken out again: cheaper than closing gaps and opening them.
    asked = np.where(missing, codes.max(), codes)
    gaps = pa.array(missing)
    return [pc.if_else(gaps, pa.scalar(None, values.type), combined(values)) for values in fetch(asked)]
