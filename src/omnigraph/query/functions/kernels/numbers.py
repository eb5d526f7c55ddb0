"""Functions on numbers. Results that are no finite number are errors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.query.functions.kernels.arguments import CannotCompute, any_true, columns, constant, fit

_MOST_DIGITS = 300


def absolute(args: Sequence[Any], result: pa.DataType) -> pa.Array:
    """Without the sign."""
    values = fit(args[0], result)
    if pa.types.is_unsigned_integer(result):
        return values
    try:
        return pc.abs_checked(values)
    except pa.ArrowInvalid:
        raise CannotCompute("a result that does not fit I64") from None


def rounded(args: Sequence[Any], result: pa.DataType) -> pa.Array:
    """To so many digits, halves away from zero."""
    values = fit(args[0], result)
    if len(args) == 1:
        return values if pa.types.is_integer(result) else _rounded(values, 0)
    if any_true(pc.greater(pc.abs(fit(args[1], pa.int64())), _MOST_DIGITS)):
        raise CannotCompute(f"digits that are not between -{_MOST_DIGITS} and {_MOST_DIGITS}")
    digits = constant(args[1])
    if digits is not None:
        return _rounded(values, digits)
    values, places = columns([values, fit(args[1], pa.int64())])
    chosen = pa.nulls(len(values), result)
    for each in pc.unique(places.drop_null()).to_pylist():
        here = pc.fill_null(pc.equal(places, each), False)
        chosen = pc.if_else(here, _rounded(values, each), chosen)
    return chosen


def _rounded(values: Any, digits: int) -> Any:
    if pa.types.is_integer(values.type):
        if digits >= 0:
            return values
        if digits < -18:
            return pc.multiply(values, pa.scalar(0, values.type))
    try:
        made = pc.round(values, ndigits=digits, round_mode="half_towards_infinity")
    except pa.ArrowInvalid:
        raise CannotCompute("a result that does not fit") from None
    if pa.types.is_floating(values.type):
        # Where the scaling leaves the range of floats, the number has no such digits to lose.
        made = pc.if_else(pc.is_finite(made), made, values if digits > 0 else pc.multiply(values, 0.0))
    return made


def floor(args: Sequence[Any], result: pa.DataType) -> pa.Array:
    """Down to a whole number."""
    values = fit(args[0], result)
    return values if pa.types.is_integer(result) else pc.floor(values)


def ceil(args: Sequence[Any], result: pa.DataType) -> pa.Array:
    """Up to a whole number."""
    values = fit(args[0], result)
    return values if pa.types.is_integer(result) else pc.ceil(values)


def square_root(args: Sequence[Any], result: pa.DataType) -> pa.Array:
    """The square root."""
    return _real(np.sqrt, args, "the square root of a negative number")


def natural_logarithm(args: Sequence[Any], result: pa.DataType) -> pa.Array:
    """The natural logarithm."""
    return _real(np.log, args, "the logarithm of a number that is not above zero")


def exponential(args: Sequence[Any], result: pa.DataType) -> pa.Array:
    """e to a power."""
    return _real(np.exp, args, "a result that is too large")


def power(args: Sequence[Any], result: pa.DataType) -> pa.Array:
    """One number to the power of another."""
    return _real(np.power, args, "a power that is too large or not a real number")


def try_divide(args: Sequence[Any], result: pa.DataType) -> pa.Array:
    """A quotient, null where there is none."""
    values, valid = _computed(np.divide, args)
    return pa.array(values, pa.float64(), mask=~(valid & np.isfinite(values)))


def _real(function: Callable[..., Any], args: Sequence[Any], problem: str) -> pa.Array:
    values, valid = _computed(function, args)
    if bool(np.any(valid & ~np.isfinite(values))):
        raise CannotCompute(problem)
    return pa.array(values, pa.float64(), mask=~valid)


def _computed(function: Callable[..., Any], args: Sequence[Any]) -> tuple[Any, Any]:
    """The values of a NumPy function on floats, and for which rows no argument is null."""
    floats = [fit(column, pa.float64()) for column in columns(args)]
    valid = np.ones(len(floats[0]), dtype=bool)
    for column in floats:
        valid &= column.is_valid().to_numpy(zero_copy_only=False)
    with np.errstate(all="ignore"):
        values = function(*(column.fill_null(1.0).to_numpy(zero_copy_only=False) for column in floats))
    return values, valid
