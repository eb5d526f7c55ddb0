"""The groups of rows, or of states, that one task has, as functions on Arrow batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from omnigraph.query import ir
from omnigraph.query.evaluate.aggregates import aggregate
from omnigraph.query.typing import type_of
from omnigraph.read.codes.arrays import Codes, factorize
from omnigraph.read.codes.order import order_codes
from omnigraph.schema.types import ValueType
from omnigraph.spark.query.groups.states import State
from omnigraph.spark.query.needs import stored_type
from omnigraph.spark.spread import with_details
from omnigraph.spark.types import travelling_type

SOMETHING = "something"
"""The column that tells rows from the one that is put in so that a task runs over nothing too."""
_AT_ONCE = 2**18
"""Rows that are held, and grouped, together."""
_WORTH_IT = 0.5
"""Groups for each row, above which the rows of a task are not grouped any more but sent on as they are."""

Batches = Iterator[pa.RecordBatch]
_aggregated = with_details(aggregate)


@dataclass(frozen=True, slots=True)
class WholeGroups:
    """The groups of one task that has all rows of each of them.

    Columns: keys, what is carried with them, arguments, the order of rows, a mark.
    """

    keys: int
    kept: int
    asked: Sequence[tuple[ir.Aggregate, ValueType]]
    names: tuple[str, ...]

    def run(self, batches: Batches) -> Batches:
        """One row for each group."""
        table = _marked(batches)
        if table is None:
            return
        columns = [_array(column) for column in table.columns]
        behind = self.kept + len(self.asked)
        order = _order([code for column in columns[behind:] for code in _order_codes(column)], table.num_rows)
        columns = [column if order is None else column.take(order) for column in columns[:behind]]
        numbers, first = _groups(columns[: self.keys], table.num_rows)
        count = len(first) if self.keys else 1
        made = [column.take(pa.array(first)) for column in columns[: self.kept]]
        for (wanted, type_), values in zip(self.asked, columns[self.kept :], strict=True):
            stored = values.cast(stored_type(type_of(wanted.arg)))
            result = stored_type(type_)
            of_group = _aggregated(wanted, stored, numbers, count, result, nothing=table.num_rows == 0)
            made.append(of_group.cast(travelling_type(result)))
        yield pa.RecordBatch.from_arrays(made, names=list(self.names))


@dataclass(frozen=True, slots=True)
class GroupStates:
    """What one task knows of the groups among its rows. Columns: keys, what is carried with them, arguments."""

    keys: int
    kept: int
    states: Sequence[State]
    names: tuple[str, ...]

    def run(self, batches: Batches) -> Batches:
        """A row for each group of so many rows at once; where that is nearly each row, a row for each."""
        grouping = True
        for table in _in_stretches(batches):
            columns = [_array(column) for column in table.columns]
            rows = table.num_rows
            if grouping or not self.keys:
                numbers, first = _groups(columns[: self.keys], rows)
            else:
                numbers = first = np.arange(rows, dtype=np.int64)
            grouping = len(first) <= rows * _WORTH_IT
            made = [column.take(pa.array(first)) for column in columns[: self.kept]]
            for state, values in zip(self.states, columns[self.kept :], strict=True):
                made += state.of_rows(values, numbers, len(first))
            yield pa.RecordBatch.from_arrays(made, names=list(self.names))


@dataclass(frozen=True, slots=True)
class MergedStates:
    """The groups of one task that has all states of each of them.

    Columns: keys, what is carried with them, the columns of the states, a mark.
    """

    keys: int
    kept: int
    states: Sequence[State]
    names: tuple[str, ...]

    def run(self, batches: Batches) -> Batches:
        """One row for each group."""
        table = _marked(batches)
        if table is None:
            return
        columns = [_array(column) for column in table.columns]
        numbers, first = _groups(columns[: self.keys], table.num_rows)
        count = len(first) if self.keys else 1
        made = [column.take(pa.array(first)) for column in columns[: self.kept]]
        at = self.kept
        for state in self.states:
            made.append(state.whole(columns[at : at + len(state.types)], numbers, count))
            at += len(state.types)
        yield pa.RecordBatch.from_arrays(made, names=list(self.names))


def _in_stretches(batches: Batches) -> Iterator[pa.Table]:
    """Batches together, as many rows as are grouped at once."""
    held: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        held.append(batch)
        rows += batch.num_rows
        if rows >= _AT_ONCE:
            yield pa.Table.from_batches(held)
            held, rows = [], 0
    if rows:
        yield pa.Table.from_batches(held)


def _marked(batches: Batches) -> pa.Table | None:
    """The rows that are marked, without the mark, which is their last column; None if there is not even another."""
    given = list(batches)
    if not given:
        return None
    table = pa.Table.from_batches(given)
    return table.filter(table.column(SOMETHING)).combine_chunks().drop_columns([SOMETHING])


def _groups(keys: Sequence[pa.Array], length: int) -> tuple[Codes, Codes]:
    """The number of each row's group, and a row of each group."""
    return factorize([code for column in keys for code in _codes(column)], length)


def _order(codes: list[Codes], length: int) -> pa.Array | None:
    return pa.array(np.lexsort(tuple(reversed(codes)))) if codes and length else None


def _codes(column: pa.Array) -> list[Codes]:
    """Integers that are equal for equal values; for the key of an entity of several tables two."""
    if pa.types.is_struct(column.type):
        return [code for part in column.flatten() for code in _codes(part)]
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        encoded = column.dictionary_encode(null_encoding="encode")
        return [np.asarray(encoded.indices.to_numpy(zero_copy_only=False)).astype(np.int64)]
    return _order_codes(column)


def _order_codes(column: pa.Array) -> list[Codes]:
    """As `_codes`, and they sort as the values do."""
    if pa.types.is_struct(column.type):
        return [order_codes(part) for part in column.flatten()]
    return [order_codes(column.cast(pa.uint64()) if pa.types.is_decimal(column.type) else column)]


def _array(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks or [pa.array([], column.type)])
