"""Arguments as rows: what kernels without an Arrow function of their own are written with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc


class CannotCompute(ValueError):
    """An expression that has no value for some row; the text says why, without naming the expression."""


def length_of(args: Sequence[Any]) -> int:
    """How many rows there are."""
    return next(len(arg) for arg in args if not isinstance(arg, pa.Scalar))


def as_array(value: Any, length: int) -> pa.Array:
    """A scalar as an array that repeats it."""
    if not isinstance(value, pa.Scalar):
        return value
    return pa.repeat(value, length) if value.is_valid else pa.nulls(length, value.type)


def columns(args: Sequence[Any]) -> list[pa.Array]:
    """All arguments as arrays."""
    length = length_of(args)
    return [as_array(arg, length) for arg in args]


def by_row(function: Callable[..., Any], args: Sequence[Any], result: pa.DataType) -> pa.Array:
    """A Python function of each row's values, null where one of them is null."""
    lists = [column.to_pylist() for column in columns(args)]
    values = [None if any(each is None for each in row) else function(*row) for row in zip(*lists, strict=True)]
    return pa.array(values, result)


def constant(arg: Any) -> Any:
    """The value of an argument that is the same in every row and not null; None when it is not."""
    return arg.as_py() if isinstance(arg, pa.Scalar) else None


def any_true(mask: Any) -> bool:
    """Whether a mask is true somewhere; null counts as false."""
    return bool(pc.any(mask, min_count=0).as_py())


def fit(values: Any, type_: pa.DataType) -> Any:
    """The values in another type of numbers, text or lists. Raises `CannotCompute` for one that does not fit."""
    if values.type == type_:
        return values
    try:
        if pa.types.is_floating(type_):
            # An integer becomes the nearest float.
            return values.cast(type_, safe=False)
        return values.cast(type_)
    except pa.ArrowInvalid:
        if pa.types.is_string(type_):
            raise CannotCompute("more than 2 GB of texts in one column") from None
        raise CannotCompute(f"a number that does not fit {_NAMES.get(str(type_), str(type_))}") from None


def exactly(values: Any, type_: pa.DataType) -> Any:
    """The numbers in another type. Raises `CannotCompute` for an integer that the type cannot hold exactly.

    A float becomes the nearest one of a narrower type; one that becomes infinite or zero does not fit.
    """
    if values.type == type_ or pa.types.is_null(values.type):
        return values.cast(type_)
    made = fit(values, type_)
    if pa.types.is_floating(type_) and pa.types.is_integer(values.type):
        kept = pc.equal(made.cast(pa.float64()).cast(values.type, safe=False), values)
        inside = pc.less(pc.abs(made), 2.0**63)
        lost = any_true(pc.invert(pc.and_(kept, inside)))
    elif pa.types.is_floating(type_):
        zero = pc.and_(pc.equal(made, pa.scalar(0, type_)), pc.not_equal(values, 0.0))
        lost = any_true(pc.or_(zero, pc.and_(pc.is_inf(made), pc.is_finite(values))))
    else:
        lost = False
    if lost:
        raise CannotCompute(f"a number that does not fit {_NAMES.get(str(type_), 'F64')}")
    return made


_NAMES = {"int64": "I64", "uint64": "U64", "int32": "I32", "uint32": "U32", "float": "F32"}
