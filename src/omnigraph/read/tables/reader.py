"""The seam between running a query and where its rows are: a few questions to ask of the tables of one snapshot.

The executor only knows this protocol. Stored snapshots answer it through Lance (`stored.py`); plain Arrow tables
answer it here, for tests and for rows that are not stored yet.
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.query.ir import Expr
from omnigraph.read.codes.arrays import Codes
from omnigraph.read.tables.values import holds


class TableReader(Protocol):
    """The tables of one snapshot. Every answer is about the same, immutable rows."""

    def row_count(self, table_key: str) -> int:
        """How many rows the table has."""
        ...

    def state(self, table_key: str) -> Hashable:
        """What identifies the physical rows: equal states mean equal rows in an equal scan order."""
        ...

    def scan(self, table_key: str, columns: Sequence[str], predicate: Expr | None = None) -> pa.Table:
        """The rows for which the predicate is true, in the table's own order.

        The predicate is over one variable and holds no parameters any more.
        """
        ...

    def batches(self, table_key: str, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """All rows in the table's own order, piece by piece."""
        ...

    def lookup(self, table_key: str, column: str, values: pa.Array, columns: Sequence[str]) -> pa.Table:
        """The rows whose `column` (`id`, `src` or `dst`) is one of `values`, in any order."""
        ...

    def take(self, table_key: str, rows: Codes, columns: Sequence[str]) -> pa.Table:
        """The rows at these places of the table's own order, in the order asked for."""
        ...

    def width(self, table_key: str, column: str) -> int:
        """Bytes of one value of a column, roughly."""
        ...

    def is_indexed(self, table_key: str, column: str) -> bool:
        """Whether `lookup` and equality on this column are answered without reading the whole column."""
        ...


TEXT_WIDTH = 64
LIST_ITEMS = 8


def type_width(type_: pa.DataType) -> int:
    """Bytes of one value of an Arrow type; texts and lists are taken to be short."""
    if pa.types.is_fixed_size_list(type_):
        return int(type_.list_size) * type_width(type_.value_type)
    if pa.types.is_list(type_):
        return LIST_ITEMS * type_width(type_.value_type)
    return int(type_.bit_width // 8) or 1 if pa.types.is_primitive(type_) else TEXT_WIDTH


_NUMBERS = itertools.count()


class ArrowTables:
    """Tables that are in memory already."""

    def __init__(self, tables: Mapping[str, pa.Table]) -> None:
        self._tables = dict(tables)
        self._number = next(_NUMBERS)

    def row_count(self, table_key: str) -> int:
        """How many rows the table has."""
        return int(self._tables[table_key].num_rows)

    def state(self, table_key: str) -> Hashable:
        """This reader's own number: nothing derived from it is shared."""
        return ("arrow", self._number, table_key)

    def scan(self, table_key: str, columns: Sequence[str], predicate: Expr | None = None) -> pa.Table:
        """The rows for which the predicate is true."""
        table = self._tables[table_key]
        if predicate is None:
            return table.select(list(columns))
        mask = holds(predicate, table.num_rows, table.column)
        return table.select(list(columns)).filter(mask)

    def batches(self, table_key: str, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """All rows, piece by piece."""
        yield from self._tables[table_key].select(list(columns)).to_batches(max_chunksize=65_536)

    def lookup(self, table_key: str, column: str, values: pa.Array, columns: Sequence[str]) -> pa.Table:
        """The rows whose column is one of the values."""
        table = self._tables[table_key]
        return table.filter(pc.is_in(table.column(column), value_set=values)).select(list(columns))

    def take(self, table_key: str, rows: Codes, columns: Sequence[str]) -> pa.Table:
        """The rows at these places."""
        return self._tables[table_key].select(list(columns)).take(pa.array(rows))

    def width(self, table_key: str, column: str) -> int:
        """Bytes of one value of a column, roughly."""
        return type_width(self._tables[table_key].schema.field(column).type)

    def is_indexed(self, table_key: str, column: str) -> bool:
        """In memory nothing is indexed."""
        return False
