"""Comparing values on Arrow: numbers by exact value, text by code point, two spellings of one type made equal."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.query import ir
from omnigraph.query.evaluate.numbers import compare_numbers

_COMPARE = {
    ir.CompareOp.EQ: pc.equal,
    ir.CompareOp.NE: pc.not_equal,
    ir.CompareOp.LT: pc.less,
    ir.CompareOp.LE: pc.less_equal,
    ir.CompareOp.GT: pc.greater,
    ir.CompareOp.GE: pc.greater_equal,
}


def compare(op: ir.CompareOp, left: Any, right: Any) -> Any:
    """`left op right`, null where either side is null."""
    left_type, right_type = left.type, right.type
    if is_numeric(left_type) and is_numeric(right_type):
        return compare_numbers(op, left, right)
    if left_type != right_type:
        left, right = same_type(left, right)
    return _COMPARE[op](left, right)


def is_numeric(type_: pa.DataType) -> bool:
    """Whether this is a type of numbers."""
    return bool(pa.types.is_integer(type_) or pa.types.is_floating(type_))


def same_type(left: Any, right: Any) -> tuple[Any, Any]:
    """Two spellings of one logical type (a longer string type, another unit of time) made equal."""
    if pa.types.is_null(left.type):
        return left.cast(right.type), right
    if pa.types.is_null(right.type):
        return left, right.cast(left.type)
    if pa.types.is_timestamp(left.type) and pa.types.is_timestamp(right.type):
        target = pa.timestamp("us", tz="UTC")
    else:
        target = pa.large_utf8()
    return left.cast(target), right.cast(target)
