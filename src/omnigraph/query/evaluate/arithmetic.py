"""`+ - * / %` on Arrow: integers exactly, floats finite, text and lists joined."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.query.functions.kernels import lists
from omnigraph.query.functions.kernels.arguments import CannotCompute, any_true, by_row, columns, fit
from omnigraph.query.ir import ArithmeticOp

_CHECKED = {
    ArithmeticOp.ADD: pc.add_checked,
    ArithmeticOp.SUBTRACT: pc.subtract_checked,
    ArithmeticOp.MULTIPLY: pc.multiply_checked,
}
_FLOATS = {
    ArithmeticOp.ADD: np.add,
    ArithmeticOp.SUBTRACT: np.subtract,
    ArithmeticOp.MULTIPLY: np.multiply,
    ArithmeticOp.DIVIDE: np.divide,
    ArithmeticOp.MODULO: np.fmod,
}


def compute(op: ArithmeticOp, left: Any, right: Any, result: pa.DataType) -> pa.Array:
    """`left op right`, at least one side an array. Raises `CannotCompute`."""
    if pa.types.is_string(result):
        return pc.binary_join_element_wise(fit(left, result), fit(right, result), "")
    if pa.types.is_list(result):
        return lists.joined(left, right, result)
    if op in (ArithmeticOp.DIVIDE, ArithmeticOp.MODULO) and _has_zero(left, right):
        raise CannotCompute("division by zero")
    if pa.types.is_floating(result):
        return _floats(op, fit(left, result), fit(right, result))
    try:
        left, right = fit(left, result), fit(right, result)
    except CannotCompute:
        return _wide(op, left, right, result)
    if op is ArithmeticOp.MODULO:
        return _modulo(left, right, result)
    try:
        return _CHECKED[op](left, right)
    except pa.ArrowInvalid:
        raise _too_large(result) from None


def negate(item: Any, result: pa.DataType) -> Any:
    """`-item`."""
    if pa.types.is_floating(result):
        return pc.negate(fit(item, result))
    try:
        return pc.negate_checked(fit(item, result))
    except (pa.ArrowInvalid, CannotCompute):
        zero = pa.scalar(0, result)
        if isinstance(item, pa.Scalar):
            return _wide(ArithmeticOp.SUBTRACT, zero, pa.array([item]), result)[0]
        return _wide(ArithmeticOp.SUBTRACT, zero, item, result)


def _wide(op: ArithmeticOp, left: Any, right: Any, result: pa.DataType) -> pa.Array:
    """Integers of which one does not fit the type of the result, which itself may all the same (U64 beside I64)."""
    try:
        return by_row(_EXACT[op], [left, right], result)
    except (pa.ArrowInvalid, OverflowError):
        raise _too_large(result) from None


def _remainder(number: int, divisor: int) -> int:
    """With the sign of the dividend."""
    return abs(number) % abs(divisor) * (-1 if number < 0 else 1)


_EXACT: dict[ArithmeticOp, Callable[[int, int], int]] = {
    ArithmeticOp.ADD: operator.add,
    ArithmeticOp.SUBTRACT: operator.sub,
    ArithmeticOp.MULTIPLY: operator.mul,
    ArithmeticOp.MODULO: _remainder,
}


def _too_large(result: pa.DataType) -> CannotCompute:
    return CannotCompute(f"a result that does not fit {'U64' if pa.types.is_uint64(result) else 'I64'}")


def _has_zero(left: Any, right: Any) -> bool:
    zero = pc.equal(right, pa.scalar(0, right.type))
    return any_true(pc.and_(zero, pc.is_valid(left)))


def _floats(op: ArithmeticOp, left: Any, right: Any) -> pa.Array:
    first, second = columns([left, right])
    valid = first.is_valid().to_numpy(zero_copy_only=False) & second.is_valid().to_numpy(zero_copy_only=False)
    with np.errstate(all="ignore"):
        values = _FLOATS[op](
            first.fill_null(1.0).to_numpy(zero_copy_only=False), second.fill_null(1.0).to_numpy(zero_copy_only=False)
        )
    if bool(np.any(valid & ~np.isfinite(values))):
        raise CannotCompute("a result that is not a finite number")
    return pa.array(values, pa.float64(), mask=~valid)


def _modulo(left: Any, right: Any, result: pa.DataType) -> pa.Array:
    """The remainder, with the sign of the dividend."""
    first, second = columns([left, right])
    valid = first.is_valid().to_numpy(zero_copy_only=False) & second.is_valid().to_numpy(zero_copy_only=False)
    numbers = first.fill_null(0).to_numpy(zero_copy_only=False)
    divisors = second.fill_null(1).to_numpy(zero_copy_only=False)
    divisors = np.where(valid, divisors, divisors.dtype.type(1))
    return pa.array(np.fmod(numbers, divisors), result, mask=~valid)
