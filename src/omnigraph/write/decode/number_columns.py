"""Columns of numbers, alone or in lists, in another type of number: whole columns at once where no number changes.

A list of doubles for a vector, or of 32-bit integers for 64-bit ones, is what many sources have. Looking at each item
by itself takes a thousand times as long.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

_MOST_ITEMS = 2**31 - 1
"""What the lists of one column can hold together."""


def is_number(type_: pa.DataType) -> bool:
    """Whether values of an Arrow type are numbers, and no decimals."""
    return bool(pa.types.is_integer(type_) or pa.types.is_floating(type_))


def is_list(type_: pa.DataType) -> bool:
    """Whether values of an Arrow type are lists."""
    return bool(pa.types.is_list(type_) or pa.types.is_large_list(type_) or pa.types.is_fixed_size_list(type_))


def cast_or_none(column: pa.ChunkedArray, stored: pa.DataType) -> Any | None:
    """The column in another type; None when one of its values has none there."""
    try:
        return column.cast(stored)
    except pa.ArrowInvalid:
        return None


def narrowed(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Numbers as the nearest 32-bit floats; None when one of them has none."""
    narrow = column.cast(pa.float32())
    if pa.types.is_float16(column.type):
        return narrow  # it was wider before
    lost = pc.or_(
        pc.and_(pc.is_finite(column), pc.invert(pc.is_finite(narrow))),
        pc.and_(pc.not_equal(column, pa.scalar(0, column.type)), pc.equal(narrow, pa.scalar(0, pa.float32()))),
    )
    return None if pc.any(lost).as_py() else narrow


def same_lists(column: pa.ChunkedArray, stored: pa.DataType) -> Any | None:
    """Lists in the stored type; None when an item would change, or a list of another length is none there."""
    given, item = column.type.value_type, stored.value_type
    if given != item:
        lists = _with_items(column, item) if is_number(given) and is_number(item) else None
    else:
        lists = column if is_number(item) or pa.types.is_string(item) else None
    return None if lists is None else cast_or_none(lists, stored)


def _with_items(column: pa.ChunkedArray, item: pa.DataType) -> pa.ChunkedArray | None:
    given = column.type.value_type
    array = column.combine_chunks()
    items = pa.chunked_array([pc.list_flatten(array)], given)
    if pa.types.is_floating(given):
        taken = narrowed(items) if item == pa.float32() else cast_or_none(items, item)
    else:
        taken = cast_or_none(items, item)
    if taken is None or len(taken) > _MOST_ITEMS or (pa.types.is_floating(given) and not pa.types.is_floating(item)):
        return None
    ends = pc.cumulative_sum(pc.list_value_length(array).cast(pa.int32()).fill_null(0))
    starts = pa.concat_arrays([pa.array([0], pa.int32()), ends])
    return pa.chunked_array([pa.ListArray.from_arrays(starts, taken.combine_chunks(), mask=array.is_null())])
