"""Which rows repeat a tuple that an earlier row has: on key columns alone, whole columns at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.write.validate.partitions import ROWS_PER_PART, Parts, parts_for, take_in_chunks
from omnigraph.write.validate.zeros import one_zero

Positions = np.ndarray[Any, np.dtype[np.int64]]


def has_repeats(column: pa.ChunkedArray | pa.Array) -> bool:
    """Whether some value comes twice; nulls do not count."""
    column = one_zero(column)
    return bool(pc.count_distinct(column, mode="only_valid").as_py() < len(column) - column.null_count)


def tuple_codes(columns: Sequence[pa.ChunkedArray]) -> tuple[Positions, np.ndarray[Any, np.dtype[np.bool_]]]:
    """One number per distinct tuple, and which rows have no null in theirs."""
    complete = np.ones(len(columns[0]), dtype=bool)
    codes = np.zeros(len(columns[0]), dtype=np.int64)
    for column in columns:
        encoded = pc.dictionary_encode(_one_chunk(one_zero(column)))
        indices = pc.fill_null(encoded.indices, 0).to_numpy(zero_copy_only=False).astype(np.int64)
        complete &= pc.is_valid(_one_chunk(column)).to_numpy(zero_copy_only=False)
        if len(columns) == 1:
            return indices, complete
        # Dense again after each step, so that the product of two codes stays small.
        _, codes = np.unique(codes * (len(encoded.dictionary) + 1) + indices, return_inverse=True)
    return codes, complete


def repeats(columns: Sequence[pa.ChunkedArray]) -> tuple[Positions, Positions]:
    """The rows whose tuple an earlier row has, and that first row for each. A tuple with a null is exempt."""
    if len(columns[0]) > ROWS_PER_PART and pa.types.is_string(columns[0].type):
        return _repeats_in_parts(columns)
    return _repeats_at_once(columns)


def _repeats_at_once(columns: Sequence[pa.ChunkedArray]) -> tuple[Positions, Positions]:
    if len(columns[0]) < 2 or (len(columns) == 1 and not has_repeats(columns[0])):
        return np.empty(0, np.int64), np.empty(0, np.int64)
    codes, complete = tuple_codes(columns)
    rows = np.flatnonzero(complete)
    _, first, inverse = np.unique(codes[rows], return_index=True, return_inverse=True)
    first_of_row = first[inverse]
    later = np.flatnonzero(first_of_row != np.arange(len(rows)))
    return rows[later], rows[first_of_row[later]]


def _repeats_in_parts(columns: Sequence[pa.ChunkedArray]) -> tuple[Positions, Positions]:
    """`repeats` of many rows: part by part of the first column."""
    table = pa.table(list(columns), names=[str(number) for number in range(len(columns))])
    columns = pa.Table.from_batches(table.to_batches()).columns  # in the same chunks, whatever they came in
    count = parts_for(len(columns[0]))
    parts = Parts(columns[0], count)
    starts = np.cumsum([0, *(len(chunk) for chunk in columns[0].chunks)])
    found: list[tuple[Positions, Positions]] = []
    for part in range(count):
        pieces = parts.positions(part)
        later, first = _repeats_at_once([take_in_chunks(column, pieces) for column in columns])
        if not len(later):
            continue
        rows = np.concatenate([piece + start for piece, start in zip(pieces, starts)])
        found.append((rows[later], rows[first]))
    if not found:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    later, first = (np.concatenate(side) for side in zip(*found))
    order = np.argsort(later, kind="stable")
    return later[order], first[order]


def match_tuples(columns: Sequence[pa.ChunkedArray], others: Sequence[pa.ChunkedArray]) -> tuple[Positions, Positions]:
    """The rows of `columns` whose tuple is also one of `others`, and one row of `others` that has it."""
    count = len(columns[0])
    joined = [_chunked([column, other]) for column, other in zip(columns, others)]
    codes, complete = tuple_codes(joined)
    known = np.flatnonzero(complete[count:])
    distinct, first = np.unique(codes[count:][known], return_index=True)
    if not len(distinct):
        return np.empty(0, np.int64), np.empty(0, np.int64)
    position = np.clip(np.searchsorted(distinct, codes[:count]), 0, len(distinct) - 1)
    found = np.flatnonzero(complete[:count] & (distinct[position] == codes[:count]))
    return found, known[first[position[found]]]


def _chunked(columns: Sequence[pa.ChunkedArray]) -> pa.ChunkedArray:
    first = columns[0].type
    return pa.chunked_array([chunk.cast(first) for column in columns for chunk in column.chunks], first)


def _one_chunk(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    if isinstance(column, pa.Array):
        return column
    if column.num_chunks == 1:
        return column.chunk(0)
    return column.combine_chunks() if column.num_chunks else pa.array([], column.type)
