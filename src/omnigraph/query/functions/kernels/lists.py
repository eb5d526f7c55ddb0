"""Lists: their size, their items, and lists made of values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.query.functions.kernels.arguments import columns, fit


def size(args: Sequence[Any], result: pa.DataType) -> pa.Array:
    """The number of items."""
    return pc.list_value_length(args[0]).cast(result)


def item(lists: Any, places: Any) -> pa.Array:
    """The item at a place, from 0; negative from the end; null outside."""
    lists, places = columns([lists, places])
    lists = lists.cast(pa.list_(lists.type.value_type))
    numbers = fit(places, pa.int64())
    sizes = pc.list_value_length(lists).cast(pa.int64())
    from_start = pc.if_else(pc.less(numbers, 0), pc.add(pc.max_element_wise(numbers, -(2**40)), sizes), numbers)
    inside = pc.and_(pc.greater_equal(from_start, 0), pc.less(from_start, sizes))
    inside = pc.fill_null(inside, False)
    starts = pa.array(np.asarray(lists.offsets.to_numpy(zero_copy_only=False))[:-1].astype(np.int64))
    at = pc.if_else(inside, pc.add(starts, pc.if_else(inside, from_start, 0)), None)
    return lists.values.take(at)


def made_of(items: Sequence[Any], result: pa.DataType) -> pa.Array:
    """A list of one value from each column; null where one of them is null."""
    parts = [fit(column, result.value_type) for column in columns(items)]
    count, length = len(parts), len(parts[0])
    order = np.arange(count * length, dtype=np.int64).reshape(count, length).T.ravel()
    values = pa.concat_arrays(parts).take(pa.array(order))
    offsets = np.arange(0, count * length + 1, count, dtype=np.int32)
    missing = np.zeros(length, dtype=bool)
    for part in parts:
        missing |= part.is_null().to_numpy(zero_copy_only=False)
    return pa.ListArray.from_arrays(pa.array(offsets), values, mask=pa.array(missing))


def joined(left: Any, right: Any, result: pa.DataType) -> pa.Array:
    """The items of one list behind those of another; null where one of them is null."""
    left, right = (fit(column, result) for column in columns([left, right]))
    sizes = [pc.fill_null(pc.list_value_length(part), 0).to_numpy(zero_copy_only=False) for part in (left, right)]
    missing = pc.or_(left.is_null(), right.is_null())
    kept = ~missing.to_numpy(zero_copy_only=False)
    totals = np.where(kept, sizes[0] + sizes[1], 0).astype(np.int64)
    offsets = np.concatenate(([0], np.cumsum(totals)))
    pieces = pa.concat_arrays([left.flatten(), right.flatten()])
    starts = [np.concatenate(([0], np.cumsum(part)))[:-1] for part in sizes]
    starts[1] = starts[1] + int(sizes[0].sum())
    rows = np.repeat(np.arange(len(totals)), totals)
    inside = np.arange(len(rows)) - offsets[:-1][rows]
    behind = inside >= sizes[0][rows]
    at = np.where(behind, starts[1][rows] + inside - sizes[0][rows], starts[0][rows] + inside)
    values = pieces.take(pa.array(at.astype(np.int64)))
    return pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), values, mask=missing)
