"""The tables of a stored snapshot, read at exactly the versions that it pins."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa

from omnigraph.ledger.values import TablePin
from omnigraph.query import ir
from omnigraph.query.predicates import leaves
from omnigraph.read.codes.arrays import Codes
from omnigraph.read.tables.caches import ReadCaches
from omnigraph.read.tables.reader import type_width
from omnigraph.read.tables.values import conjunction, holds
from omnigraph.storage.pushdown import split
from omnigraph.storage.tables import TableStore
from omnigraph.storage.values import TableVersion

ROW_ID = "_rowid"


class StoredTables:
    """Answers the questions of `TableReader` through Lance."""

    def __init__(self, tables: TableStore, pins: Mapping[str, TablePin], caches: ReadCaches) -> None:
        self._tables = tables
        self._pins = pins
        self._caches = caches

    def row_count(self, table_key: str) -> int:
        """The count that the pin says."""
        return self._pins[table_key].row_count

    def state(self, table_key: str) -> Hashable:
        """Where the version is and which one it is: branches that share it have the same."""
        pin = self._pins[table_key]
        return (pin.location, pin.lance_branch, pin.version)

    def scan(self, table_key: str, columns: Sequence[str], predicate: ir.Expr | None = None) -> pa.Table:
        """The rows for which the predicate is true, in the table's own order."""
        pushed, rest = split(predicate)
        residual = conjunction(rest)
        wanted = list(dict.fromkeys(columns))
        if residual is None:
            return self._tables.scan_table(self._version(table_key), columns=wanted, filter=pushed)
        names = {leaf.column for leaf in leaves(residual) if isinstance(leaf, ir.Prop)}
        read = [*wanted, *sorted(names - set(wanted))]
        table = self._tables.scan_table(self._version(table_key), columns=read, filter=pushed)
        return table.filter(holds(residual, table.num_rows, table.column)).select(wanted)

    def batches(self, table_key: str, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """All rows in the table's own order, piece by piece."""
        yield from self._tables.scan(self._version(table_key), columns=list(columns))

    def lookup(self, table_key: str, column: str, values: pa.Array, columns: Sequence[str]) -> pa.Table:
        """The rows whose column is one of the values."""
        return self._tables.take_ids(
            self._version(table_key), values.cast(pa.string()), list(dict.fromkeys(columns)), key=column
        )

    def take(self, table_key: str, rows: Codes, columns: Sequence[str]) -> pa.Table:
        """The rows at these places of the table's own order, found by their row ids."""
        row_ids = self._caches.columns.get((self.state(table_key), ROW_ID), lambda: self._row_ids(table_key))
        return self._tables.take_rows(self._version(table_key), row_ids.take(pa.array(rows)), list(columns))

    def width(self, table_key: str, column: str) -> int:
        """Bytes of one value of a column, roughly."""
        return type_width(self._tables.schema(self._version(table_key)).field(column).type)

    def is_indexed(self, table_key: str, column: str) -> bool:
        """Whether most of the table is covered by an index on this column."""
        covered = self._caches.indexed.get(self.state(table_key), lambda: self._indexed(table_key))
        return column in covered

    def _indexed(self, table_key: str) -> frozenset[str]:
        indexes = self._tables.list_indexes(self._version(table_key))
        return frozenset(
            index.column for index in indexes if len(index.uncovered_fragments) <= len(index.covered_fragments)
        )

    def _row_ids(self, table_key: str) -> pa.Array:
        table = self._tables.scan_table(self._version(table_key), columns=[], with_row_id=True)
        column = table.column(ROW_ID)
        return pa.array(
            np.concatenate([chunk.to_numpy() for chunk in column.chunks]) if column.num_chunks else [], pa.uint64()
        )

    def _version(self, table_key: str) -> TableVersion:
        pin = self._pins[table_key]
        return TableVersion(pin.location, pin.lance_branch, pin.version)
