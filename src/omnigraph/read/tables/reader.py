"""The seam between running a query and where its rows are: a few questions to ask of the tables of one snapshot.

The executor only knows this protocol. Stored snapshots answer it through Lance (`stored.py`); plain Arrow tables
answer it here, for tests and for rows that are not stored yet.
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import InternalError
from omnigraph.query.ir import Expr
from omnigraph.read.codes.arrays import Codes, Mask
from omnigraph.read.tables.values import holds, true_mask
from omnigraph.schema.search_settings import Metric, TextSettings
from omnigraph.storage.index_search import Coverage, TextQuestion, VectorQuestion


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

    def batches(
        self,
        table_key: str,
        columns: Sequence[str],
        predicate: Expr | None = None,
        fragments: Sequence[int] | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """The rows for which the predicate is true, in the table's own order, piece by piece; of some fragments."""
        ...

    def judged(
        self, table_key: str, columns: Sequence[str], predicate: Expr | None, fragments: Sequence[int] | None
    ) -> Iterator[tuple[pa.RecordBatch, Mask]]:
        """All rows piece by piece, each piece with the rows of it for which the predicate is true."""
        ...

    def few(self, table_key: str, columns: Sequence[str], predicate: Expr, most: int) -> pa.Table | None:
        """The rows for which the predicate is true; None when there are more than `most`."""
        ...

    def some(self, table_key: str, column: str, most: int) -> pa.ChunkedArray:
        """The first values of a column that are not null, whichever those are."""
        ...

    def decides(self, predicate: Expr) -> bool:
        """Whether an index can take this predicate as a filter before it ranks."""
        ...

    def text_coverage(self, table_key: str, column: str, settings: TextSettings) -> Coverage | None:
        """What an index of the column's tokens covers; None when there is none to ask."""
        ...

    def vector_coverage(self, table_key: str, column: str, metric: Metric) -> Coverage | None:
        """What an index of the column's vectors covers; None when there is none to ask."""
        ...

    def vector_centres(self, table_key: str, column: str, coverage: Coverage) -> npt.NDArray[np.float32] | None:
        """The centres of the partitions of a vector index; None when they are not to be had."""
        ...

    def indexed_texts(self, table_key: str, coverage: Coverage) -> tuple[int, int] | None:
        """How many texts and tokens a text index counts; None when it cannot be read."""
        ...

    def ask_text(
        self,
        table_key: str,
        question: TextQuestion,
        columns: Sequence[str],
        predicate: Expr | None = None,
        limit: int | None = None,
    ) -> pa.Table:
        """Covered rows that match and pass the predicate, with `_score`. A limit needs a predicate that is decided."""
        ...

    def ask_vectors(
        self, table_key: str, question: VectorQuestion, columns: Sequence[str], predicate: Expr | None
    ) -> pa.Table:
        """The nearest covered rows that pass a predicate that `decides` takes."""
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

    def knows_ids(self, table_key: str) -> bool:
        """Whether it is known without an index where each id is; look-ups by id then tell `ReadCaches.spend`."""
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


def passing(batch: pa.RecordBatch, predicate: Expr | None) -> Mask:
    """The rows of a batch for which a predicate is true."""
    if predicate is None:
        return np.ones(batch.num_rows, dtype=bool)
    return true_mask(holds(predicate, batch.num_rows, batch.column))


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

    def batches(
        self,
        table_key: str,
        columns: Sequence[str],
        predicate: Expr | None = None,
        fragments: Sequence[int] | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """The rows for which the predicate is true, piece by piece."""
        yield from self.scan(table_key, columns, predicate).to_batches(max_chunksize=65_536)

    def judged(
        self, table_key: str, columns: Sequence[str], predicate: Expr | None, fragments: Sequence[int] | None
    ) -> Iterator[tuple[pa.RecordBatch, Mask]]:
        """All rows with whether the predicate is true."""
        for batch in self._tables[table_key].to_batches(max_chunksize=65_536):
            yield batch.select(list(columns)), passing(batch, predicate)

    def few(self, table_key: str, columns: Sequence[str], predicate: Expr, most: int) -> pa.Table | None:
        """The rows for which the predicate is true, if they are few."""
        rows = self.scan(table_key, columns, predicate)
        return rows if rows.num_rows <= most else None

    def decides(self, predicate: Expr) -> bool:
        """Any predicate can be decided before ranking here."""
        return True

    def text_coverage(self, table_key: str, column: str, settings: TextSettings) -> Coverage | None:
        """In memory nothing is indexed."""
        return None

    def vector_coverage(self, table_key: str, column: str, metric: Metric) -> Coverage | None:
        """In memory nothing is indexed."""
        return None

    def vector_centres(self, table_key: str, column: str, coverage: Coverage) -> npt.NDArray[np.float32] | None:
        """In memory nothing is indexed."""
        return None

    def indexed_texts(self, table_key: str, coverage: Coverage) -> tuple[int, int] | None:
        """In memory nothing is indexed."""
        return None

    def ask_text(
        self,
        table_key: str,
        question: TextQuestion,
        columns: Sequence[str],
        predicate: Expr | None = None,
        limit: int | None = None,
    ) -> pa.Table:
        """There is no index to ask."""
        raise InternalError(f"{table_key} has no text index")

    def ask_vectors(
        self, table_key: str, question: VectorQuestion, columns: Sequence[str], predicate: Expr | None
    ) -> pa.Table:
        """There is no index to ask."""
        raise InternalError(f"{table_key} has no vector index")

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

    def knows_ids(self, table_key: str) -> bool:
        """In memory nothing is known of ids."""
        return False
