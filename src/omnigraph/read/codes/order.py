"""Values as integers that sort the same way, and the places of rows in that order.

Nulls are smallest, then numbers, dates and text in their own order (text by code point), then not-a-number.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.read.codes.arrays import Codes, combined, paired
from omnigraph.read.codes.ids import text_ranks


def order_codes(values: pa.Array) -> Codes:
    """Integers that are equal for equal values and sort as the values do, nulls first."""
    values = combined(values)
    type_ = values.type
    if is_list(type_):
        return _list_ranks(values)
    if pa.types.is_large_string(type_):
        ranks = text_ranks(values.drop_null() if values.null_count else values)
    else:
        plain = values.drop_null() if values.null_count else values
        numbers = _numbers(plain)
        if values.null_count == 0 and numbers.dtype == np.int64:
            return numbers
        ranks = _dense(numbers)
    if values.null_count == 0:
        return ranks
    codes = np.full(len(values), -1, dtype=np.int64)
    codes[np.asarray(values.is_valid().to_numpy(zero_copy_only=False))] = ranks
    return codes


def is_list(type_: pa.DataType) -> bool:
    """Whether values are lists or vectors."""
    return bool(pa.types.is_list(type_) or pa.types.is_fixed_size_list(type_) or pa.types.is_large_list(type_))


def _list_ranks(values: pa.Array) -> Codes:
    """Lists sort item by item, a shorter one before its continuations. As keys they are rare: plain Python will do."""
    rows = [None if row is None else tuple((item is not None, item) for item in row) for row in values.to_pylist()]
    distinct = sorted({row for row in rows if row is not None})
    rank: dict[object, int] = {row: at for at, row in enumerate(distinct)}
    return np.fromiter((-1 if row is None else rank[row] for row in rows), dtype=np.int64, count=len(rows))


def _numbers(values: pa.Array) -> np.ndarray:
    type_ = values.type
    if pa.types.is_timestamp(type_):
        return np.asarray(values.cast(pa.int64()).to_numpy())
    if pa.types.is_date(type_):
        return np.asarray(values.cast(pa.int32()).to_numpy()).astype(np.int64)
    if pa.types.is_boolean(type_):
        return np.asarray(values.to_numpy(zero_copy_only=False)).astype(np.int64)
    numbers = np.asarray(values.to_numpy(zero_copy_only=False))
    if pa.types.is_uint64(type_) or pa.types.is_floating(type_):
        return numbers
    return numbers.astype(np.int64)


def _dense(numbers: np.ndarray) -> Codes:
    # np.unique puts not-a-number last and, by default, makes all of them one value; -0.0 equals 0.0.
    return np.unique(numbers, return_inverse=True)[1].astype(np.int64)


def first_places(key: Codes, count: int) -> Codes:
    """The rows that can be among the first `count`: those not above the value at that place."""
    if count == 0:
        return np.empty(0, dtype=np.int64)
    last = np.partition(key, count - 1)[count - 1]
    return np.flatnonzero(key <= last).astype(np.int64)


def total_order(keys: list[Codes], limit: int | None = None) -> Codes | None:
    """Where the rows go; None when they are in order already and all are wanted."""
    key = keys[0]
    for more in keys[1:]:
        key = paired(key, more)
    if bool(np.all(key[1:] >= key[:-1])):
        return None if limit is None or limit >= len(key) else np.arange(limit, dtype=np.int64)
    if limit is not None and limit < len(key) // 4:
        candidates = first_places(key, limit)
        return candidates[np.argsort(key[candidates], kind="stable")][:limit]
    order = np.argsort(key, kind="stable")
    return order if limit is None else order[:limit]


def is_null(values: pa.Array) -> np.ndarray:
    """True where a value is missing."""
    return np.asarray(pc.is_null(values).to_numpy(zero_copy_only=False))
