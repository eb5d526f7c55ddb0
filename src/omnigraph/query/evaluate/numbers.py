"""Exact comparison of numbers on Arrow, whatever their types: integers are never rounded to floats.

Arrow itself refuses or rounds when it compares 64-bit integers with floats or signed with unsigned ones.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.query.ir import CompareOp

_KERNELS = {
    CompareOp.EQ: pc.equal,
    CompareOp.NE: pc.not_equal,
    CompareOp.LT: pc.less,
    CompareOp.LE: pc.less_equal,
    CompareOp.GT: pc.greater,
    CompareOp.GE: pc.greater_equal,
}
_WHEN_LESS = {CompareOp.EQ: False, CompareOp.NE: True, CompareOp.LT: True, CompareOp.LE: True}
_MIRROR = {
    CompareOp.EQ: CompareOp.EQ,
    CompareOp.NE: CompareOp.NE,
    CompareOp.LT: CompareOp.GT,
    CompareOp.LE: CompareOp.GE,
    CompareOp.GT: CompareOp.LT,
    CompareOp.GE: CompareOp.LE,
}


def compare_numbers(op: CompareOp, left: Any, right: Any) -> Any:
    """`left op right` for arrays or scalars of any number types; null where either side is null."""
    left_float, right_float = pa.types.is_floating(left.type), pa.types.is_floating(right.type)
    if left.type == right.type:
        return _floats(op, left, right) if left_float else _KERNELS[op](left, right)
    if not left_float and not right_float:
        return _integers(op, left, right)
    if left_float and right_float:
        return _floats(op, left.cast(pa.float64()), right.cast(pa.float64()))
    if left_float:
        return compare_numbers(_MIRROR[op], right, left)
    if left.type.bit_width <= 32:
        return _floats(op, left.cast(pa.float64()), right.cast(pa.float64()))
    return _integer_with_float(op, left, right.cast(pa.float64()))


def members_like(items: Any, members: Any) -> tuple[Any, Any]:
    """Integer items and the members of a list in one type, for a membership test.

    Members that the items cannot be equal to, because their type does not reach so far, are left out.
    """
    if pa.types.is_uint64(items.type) == pa.types.is_uint64(members.type):
        target = pa.uint64() if pa.types.is_uint64(items.type) else pa.int64()
        return items.cast(target), members.cast(target)
    if pa.types.is_uint64(items.type):
        signed = members.cast(pa.int64())
        return items, signed.filter(pc.greater_equal(signed, pa.scalar(0, pa.int64()))).cast(pa.uint64())
    reachable = members.filter(pc.less_equal(members, pa.scalar(2**63 - 1, pa.uint64())))
    return items.cast(pa.int64()), reachable.cast(pa.int64())


def _integers(op: CompareOp, left: Any, right: Any) -> Any:
    left_wide, right_wide = pa.types.is_uint64(left.type), pa.types.is_uint64(right.type)
    if left_wide == right_wide:
        target = pa.uint64() if left_wide else pa.int64()
        return _KERNELS[op](left.cast(target), right.cast(target))
    if left_wide:
        return _integers(_MIRROR[op], right, left)
    if pa.types.is_unsigned_integer(left.type):
        return _KERNELS[op](left.cast(pa.uint64()), right)
    signed = left.cast(pa.int64())
    negative = pc.less(signed, pa.scalar(0, pa.int64()))
    clipped = pc.if_else(negative, pa.scalar(0, pa.int64()), signed).cast(pa.uint64())
    plain = _KERNELS[op](clipped, right)
    below = pc.and_(negative, pc.is_valid(right))
    return pc.if_else(pc.fill_null(below, False), pa.scalar(_WHEN_LESS.get(op, False)), plain)


def _floats(op: CompareOp, left: Any, right: Any) -> Any:
    if not _any_nan(left) and not _any_nan(right):
        return _KERNELS[op](left, right)
    left_nan, right_nan = pc.is_nan(left), pc.is_nan(right)
    # NaN is the greatest value and equal to itself, so two NaN compare as 0 = 0 and one NaN as 1 against 0.
    rank = _KERNELS[op](left_nan.cast(pa.int8()), right_nan.cast(pa.int8()))
    return pc.if_else(pc.or_(left_nan, right_nan), rank, _KERNELS[op](left, right))


def _any_nan(values: Any) -> bool:
    if isinstance(values, pa.Scalar):
        number = values.as_py()
        return number is not None and number != number
    return bool(pc.any(pc.is_nan(values), min_count=0).as_py())


def _integer_with_float(op: CompareOp, integers: Any, floats: Any) -> Any:
    """A 64-bit integer against a float: first against the whole part, and on a tie by the fraction."""
    length = len(integers) if not isinstance(integers, pa.Scalar) else None
    if length is None and not isinstance(floats, pa.Scalar):
        length = len(floats)
    numbers, numbers_valid = _numpy(integers, length)
    reals, reals_valid = _numpy(floats, length)
    top = 2.0**64 if numbers.dtype == np.uint64 else 2.0**63
    bottom = 0.0 if numbers.dtype == np.uint64 else -(2.0**63)
    whole = np.floor(reals)
    above = np.isnan(reals) | (whole >= top)
    below = whole < bottom
    inside = ~(above | below)
    comparable = np.where(inside, whole, 0.0).astype(numbers.dtype)
    sign = np.zeros(numbers.shape, dtype=np.int8)
    sign[numbers < comparable] = -1
    sign[numbers > comparable] = 1
    sign[(numbers == comparable) & (reals > whole)] = -1
    sign[above] = -1
    sign[below] = 1
    result = _KERNELS[op](pa.array(sign, mask=~(numbers_valid & reals_valid)), pa.scalar(0, pa.int8()))
    return result if length is not None else result[0]


def _numpy(values: Any, length: int | None) -> tuple[Any, Any]:
    """The values with nulls as zero, and which of them are valid."""
    if isinstance(values, pa.Scalar):
        count = 1 if length is None else length
        values = pa.repeat(values, count) if values.is_valid else pa.nulls(count, values.type)
    valid = pc.is_valid(values).to_numpy(zero_copy_only=False).astype(bool)
    filled = pc.fill_null(values, pa.scalar(0, values.type))
    return filled.to_numpy(zero_copy_only=False), valid
