"""The tables of a stored snapshot, read at exactly the versions that it pins."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from functools import partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.ledger.values import TablePin
from omnigraph.query import ir
from omnigraph.query.predicates import leaves
from omnigraph.read.codes.arrays import Codes, Mask, combined
from omnigraph.read.tables.caches import ReadCaches
from omnigraph.read.tables.reader import passing, type_width
from omnigraph.read.tables.values import conjunction, holds
from omnigraph.schema.search_settings import Metric, TextSettings
from omnigraph.storage.index_search import Coverage, TextQuestion, VectorQuestion
from omnigraph.storage.reading.filters import Compare, is_null, not_
from omnigraph.storage.reading.pushdown import split
from omnigraph.storage.tables import TableStore
from omnigraph.storage.values import TableVersion

ROW_ID = "_rowid"

KNOWN_LOOKUP = 100.0
"""Rough microseconds that a look-up of an id whose place is known takes longer than one in memory."""


class StoredTables:
    """Answers the questions of `TableReader` through Lance."""

    def __init__(
        self,
        tables: TableStore,
        pins: Mapping[str, TablePin],
        caches: ReadCaches,
        check: Callable[[], None] | None = None,
    ) -> None:
        """`check` raises when the query may not wait any longer."""
        self._tables = tables
        self._pins = pins
        self._caches = caches
        self._check = check
        self._known: dict[tuple[str, str, tuple[str, ...]], pa.Table] = {}

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
        match pushed:
            case Compare(column="id", operator="=", value=str(one)) if residual is None:
                return self._row(table_key, one, wanted)
        if residual is None:
            return self._tables.scan_table(self._version(table_key), columns=wanted, filter=pushed)
        read = _with_columns_of(residual, wanted)
        table = self._tables.scan_table(self._version(table_key), columns=read, filter=pushed)
        return table.filter(holds(residual, table.num_rows, table.column)).select(wanted)

    def _row(self, table_key: str, wanted: str, columns: Sequence[str]) -> pa.Table:
        """The row with an id. It is kept for as long as the files that it is in stay what they are: writes to other
        rows make new versions of the table, and a reader beside them would ask for the same row at each."""
        known = self._known.get((table_key, wanted, tuple(columns)))
        if known is not None:
            return known
        version = self._version(table_key)
        place = self._tables.place_of_id(version, wanted)
        if place is None:
            return self._tables.row_of_id(version, wanted, columns, check=self._check)
        key = (place.content, wanted, tuple(columns))
        row = self._caches.rows.peek(key)
        if row is None:
            # Not read by the cache: who waits for it there would get the error of another who may wait no more.
            self._caches.spend(self.state(table_key), KNOWN_LOOKUP)
            row = _with_long_texts(self._tables.row_of_id(version, wanted, columns, place=place, check=self._check))
        return self._caches.rows.get(key, lambda: row)

    def fetch(self, table_key: str, ids: Sequence[str], columns: Sequence[str]) -> dict[str, pa.Table]:
        """The row of each of some ids, as `scan` gives it for one of them; by few reads."""
        version = self._version(table_key)
        found: dict[str, pa.Table] = {}
        places = {wanted: self._tables.place_of_id(version, wanted) for wanted in dict.fromkeys(ids)}
        anywhere: list[str] = []
        somewhere: list[str] = []
        fragments: set[int] = set()
        for wanted, place in places.items():
            kept = self._caches.rows.peek((place.content, wanted, tuple(columns))) if place is not None else None
            if kept is not None:
                found[wanted] = kept
            elif place is None:
                anywhere.append(wanted)
            else:
                somewhere.append(wanted)
                fragments.update(place.fragments)
        if anywhere:
            found |= self._tables.rows_of_ids(version, anywhere, columns)
        if somewhere:
            found |= self._tables.rows_of_ids(version, somewhere, columns, tuple(sorted(fragments)))
        for wanted, place in places.items():
            if place is not None:
                self._caches.spend(self.state(table_key), KNOWN_LOOKUP)
                found[wanted] = self._caches.rows.get(
                    (place.content, wanted, tuple(columns)), partial(found.get, wanted)
                )
        return found

    def know(self, table_key: str, wanted: str, columns: Sequence[str], row: pa.Table) -> None:
        """Take the row with an id as read."""
        self._known[table_key, wanted, tuple(columns)] = row

    def batches(
        self,
        table_key: str,
        columns: Sequence[str],
        predicate: ir.Expr | None = None,
        fragments: Sequence[int] | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """The rows for which the predicate is true, in the table's own order, piece by piece."""
        pushed, rest = split(predicate)
        residual = conjunction(rest)
        read = _with_columns_of(residual, columns)
        scanned = self._tables.scan(self._version(table_key), columns=read, filter=pushed, fragments=fragments)
        for batch in scanned:
            kept = batch if residual is None else batch.filter(pa.array(passing(batch, residual)))
            yield kept.select(list(columns))

    def judged(
        self, table_key: str, columns: Sequence[str], predicate: ir.Expr | None, fragments: Sequence[int] | None
    ) -> Iterator[tuple[pa.RecordBatch, Mask]]:
        """All rows piece by piece, with whether the predicate is true."""
        read = _with_columns_of(predicate, columns)
        for batch in self._tables.scan(self._version(table_key), columns=read, fragments=fragments):
            yield batch.select(list(columns)), passing(batch, predicate)

    def few(self, table_key: str, columns: Sequence[str], predicate: ir.Expr, most: int) -> pa.Table | None:
        """The rows for which the predicate is true, if they are few: row ids tell before columns are read."""
        pushed, rest = split(predicate)
        assert not rest, "a predicate that storage decides"
        version = self._version(table_key)
        found = self._tables.scan_table(version, columns=[], with_row_id=True, filter=pushed, limit=most + 1)
        if found.num_rows > most:
            return None
        return self._tables.take_rows(version, combined(found.column(ROW_ID)), list(columns))

    def some(self, table_key: str, column: str, most: int) -> pa.ChunkedArray:
        """The first values of a column that are not null."""
        there = not_(is_null(column))
        return self._tables.scan_table(self._version(table_key), columns=[column], filter=there, limit=most)[column]

    def decides(self, predicate: ir.Expr) -> bool:
        """Whether storage decides all of it."""
        return not split(predicate)[1]

    def text_coverage(self, table_key: str, column: str, settings: TextSettings) -> Coverage | None:
        """What the text index of a column covers."""
        key = (self.state(table_key), column, settings)
        return self._caches.coverages.get(
            key, lambda: self._tables.text_coverage(self._version(table_key), column, settings)
        )

    def vector_coverage(self, table_key: str, column: str, metric: Metric) -> Coverage | None:
        """What the vector index of a column covers."""
        key = (self.state(table_key), column, metric)
        return self._caches.coverages.get(
            key, lambda: self._tables.vector_coverage(self._version(table_key), column, metric)
        )

    def vector_centres(self, table_key: str, column: str, coverage: Coverage) -> npt.NDArray[np.float32] | None:
        """The centres of the partitions of a vector index; they outlive writes, as its segments do."""
        found: npt.NDArray[np.float32] | None = self._caches.centres.get(
            (coverage.segments, column),
            lambda: self._tables.vector_centres(self._version(table_key), column, coverage),
        )
        return found

    def indexed_texts(self, table_key: str, coverage: Coverage) -> tuple[int, int] | None:
        """How many texts and tokens a text index counts."""
        return self._tables.indexed_texts(self._version(table_key), coverage)

    def ask_text(
        self,
        table_key: str,
        question: TextQuestion,
        columns: Sequence[str],
        predicate: ir.Expr | None = None,
        limit: int | None = None,
    ) -> pa.Table:
        """Covered rows that match and pass the predicate, with `_score`."""
        pushed, rest = split(predicate)
        residual = conjunction(rest)
        assert limit is None or residual is None, "a limit takes a predicate that storage decides"
        read = _with_columns_of(residual, columns)
        rows = self._tables.ask_text_index(self._version(table_key), question, read, pushed, limit)
        if residual is not None:
            rows = rows.filter(holds(residual, rows.num_rows, rows.column))
        return rows.select([*columns, "_score"])

    def ask_vectors(
        self, table_key: str, question: VectorQuestion, columns: Sequence[str], predicate: ir.Expr | None
    ) -> pa.Table:
        """The nearest covered rows that pass the predicate."""
        pushed, rest = split(predicate)
        assert not rest, "a predicate that storage decides"
        return self._tables.ask_vector_index(self._version(table_key), question, columns, pushed)

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

    def knows_ids(self, table_key: str) -> bool:
        """Whether it is known of all fragments which ids they have."""
        return self._tables.knows_ids(self._version(table_key))

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


def _with_columns_of(predicate: ir.Expr | None, columns: Sequence[str]) -> list[str]:
    """The columns, and those that a predicate reads besides."""
    wanted = list(dict.fromkeys(columns))
    names = {leaf.column for leaf in leaves(predicate) if isinstance(leaf, ir.Prop)} if predicate is not None else set()
    return [*wanted, *sorted(names - set(wanted))]


def _with_long_texts(row: pa.Table) -> pa.Table:
    """A row that will be asked for again, in the form in which queries hold texts: converted once, not at each read."""
    return pa.table({name: combined(row.column(name)) for name in row.column_names})
