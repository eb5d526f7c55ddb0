"""A change of the graph as the cross-row rules see it: per table the key columns of new rows, and the ids that go.

Only key columns are here (id, the ends of edges, unique tuples), never whole rows, so that a large load can be checked
without holding it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.schema.catalog import EdgeType, GraphType
from omnigraph.write.validate.collector import NOWHERE, Place

SOURCE = "__source"
RECORD = "__record"


def key_columns(type_: GraphType) -> tuple[str, ...]:
    """The columns that cross-row rules look at."""
    names = ["id", *(("src", "dst") if isinstance(type_, EdgeType) else ())]
    for unique in type_.uniques:
        names += [name for name in unique if name not in names]
    return tuple(names)


def no_ids() -> pa.Array:
    """An empty array of ids."""
    return pa.array([], pa.string())


@dataclass(frozen=True)
class TableChange:
    """What a write does to one table.

    `keys` holds the key columns of rows that are new or changed, one row per id (and, where the input has places, the
    columns SOURCE and RECORD). `deleted` are ids that go. With `replaces_all` nothing else of the table stays.
    `touched` names the columns that may differ from what is committed, None when any may: rules over other columns need
    no second look. `known_new` says that none of the ids is committed.
    """

    keys: pa.Table
    deleted: pa.Array = field(default_factory=no_ids)
    replaces_all: bool = False
    touched: frozenset[str] | None = None
    known_new: bool = False

    @property
    def ids(self) -> pa.ChunkedArray:
        """The ids of the rows that are new or changed."""
        return self.keys.column("id")

    def may_change(self, columns: Sequence[str]) -> bool:
        """Whether one of the columns can be different after the write."""
        return self.keys.num_rows > 0 and (self.touched is None or not self.touched.isdisjoint(columns))

    def place(self, row: int) -> Place:
        """Where in the input a row came from."""
        if RECORD not in self.keys.column_names:
            return NOWHERE
        return Place(self.keys[SOURCE][row].as_py(), self.keys[RECORD][row].as_py())

    def surviving(self, rows: pa.Table) -> pa.Table:
        """Of committed rows (with an `id` column) those that the write neither changes nor deletes."""
        if self.replaces_all:
            return rows.slice(0, 0)
        if rows.num_rows and self.keys.num_rows and not self.known_new:
            rows = rows.filter(pc.invert(pc.is_in(rows["id"], value_set=one_array(self.ids))))
        if rows.num_rows and len(self.deleted):
            rows = rows.filter(pc.invert(pc.is_in(rows["id"], value_set=self.deleted)))
        return rows


GraphChange = Mapping[str, TableChange]


class Committed(Protocol):
    """The committed rows that a change is made on top of. Looks up by value; never reads a table without need."""

    def count(self, table_key: str) -> int:
        """How many rows the table has."""

    def rows_with(self, table_key: str, column: str, values: pa.Array, columns: Sequence[str]) -> pa.Table:
        """The rows whose `column` is one of `values`."""

    def unknown_ids(self, table_key: str, ids: pa.ChunkedArray | pa.Array) -> pa.Array:
        """Of these ids those that no row has, each once."""

    def scan(self, table_key: str, columns: Sequence[str]) -> Iterator[pa.Table]:
        """All rows, in pieces."""


def one_array(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    """A column as one array."""
    if isinstance(column, pa.Array):
        return column
    if column.num_chunks == 1:
        return column.chunk(0)
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)


def distinct(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    """The values of a column, each once, without null."""
    return one_array(pc.unique(column)).drop_null()
