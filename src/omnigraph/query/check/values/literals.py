"""Literals and the types they can take: exact or refused."""

from __future__ import annotations

import datetime
from typing import Any

from omnigraph.diagnostics import did_you_mean
from omnigraph.query import ir
from omnigraph.query.typing import BOOL, DATE, DATETIME, F64, I64, STRING, U64
from omnigraph.schema.floats import NoFloat, as_float
from omnigraph.schema.types import (
    FLOATS,
    INTEGERS,
    EnumType,
    ListType,
    PropertyType,
    Scalar,
    ScalarType,
    ValueType,
    VectorType,
)

INTEGER_RANGES: dict[Scalar, tuple[int, int]] = {
    Scalar.I32: (-(2**31), 2**31 - 1),
    Scalar.I64: (-(2**63), 2**63 - 1),
    Scalar.U32: (0, 2**32 - 1),
    Scalar.U64: (0, 2**64 - 1),
}


class Misfit(ValueError):
    """A literal that its place cannot take; `hint` says what to write instead."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


def default_type(value: Any) -> PropertyType | None:
    """The type of a literal that nothing around it decides; None when there is none (null, an empty list)."""
    match value:
        case bool():
            return BOOL
        case int():
            return I64 if value <= INTEGER_RANGES[Scalar.I64][1] else U64
        case float():
            return F64
        case str():
            return STRING
        case datetime.datetime():
            return DATETIME
        case datetime.date():
            return DATE
        case tuple():
            items = {default_type(item) for item in value}
            if items == {I64, F64}:
                return ListType(Scalar.F64)
            item = next(iter(items)) if len(items) == 1 else None
            return ListType(item.scalar) if isinstance(item, ScalarType) else None
        case _:
            return None


def coerce(value: Any, target: ValueType) -> Any:
    """The literal as a value of the type. Raises `Misfit`."""
    match target:
        case EnumType(values):
            return _enum(value, values)
        case VectorType(dim):
            return _vector(value, dim)
        case ListType(item):
            if not isinstance(value, tuple):
                raise Misfit(f"expected a list of {item.value}, found {describe(value)}")
            return tuple(coerce(each, ScalarType(item)) for each in value)
        case ScalarType(scalar):
            return _scalar(value, scalar)
        case _:
            raise Misfit(f"expected {target}, found {describe(value)}")


def typed(value: Any, target: ValueType) -> ir.Literal:
    """The literal as a typed IR value. Raises `Misfit`."""
    return ir.Literal(coerce(value, target), target)


def _enum(value: Any, values: tuple[str, ...]) -> str:
    if not isinstance(value, str):
        raise Misfit(f"expected one of {', '.join(values)}, found {describe(value)}")
    if value not in values:
        raise Misfit(f'"{value}" is not one of {", ".join(values)}', did_you_mean(value, values))
    return value


def _vector(value: Any, dim: int) -> tuple[float, ...]:
    if not isinstance(value, tuple):
        raise Misfit(f"expected a vector of {dim} numbers, found {describe(value)}")
    if len(value) != dim:
        raise Misfit(f"expected a vector of {dim} numbers, found {len(value)}")
    return tuple(_scalar(item, Scalar.F32) for item in value)


def _scalar(value: Any, scalar: Scalar) -> Any:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if scalar in INTEGERS and is_number:
        return _integer(value, scalar)
    if scalar in FLOATS and is_number:
        return _float(value, scalar)
    if scalar is Scalar.DATE:
        if isinstance(value, datetime.date) and not isinstance(value, datetime.datetime):
            return value
        hint = f'write date("{value}")' if isinstance(value, str) else None
        raise Misfit(f"expected Date, found {describe(value)}", hint)
    if scalar is Scalar.DATETIME:
        if isinstance(value, datetime.datetime):
            return value
        hint = f'write datetime("{value}")' if isinstance(value, str) else None
        raise Misfit(f"expected DateTime, found {describe(value)}", hint)
    wanted: dict[Scalar, type] = {Scalar.STRING: str, Scalar.BOOL: bool}
    if scalar in wanted and isinstance(value, wanted[scalar]):
        return value
    raise Misfit(f"expected {scalar.value}, found {describe(value)}")


def _integer(value: int | float, scalar: Scalar) -> int:
    if isinstance(value, float) and not value.is_integer():
        raise Misfit(f"{value!r} is not a whole number, and {scalar.value} holds whole numbers")
    low, high = INTEGER_RANGES[scalar]
    if not low <= value <= high:
        raise Misfit(f"{_number(value)} does not fit {scalar.value} ({low} to {high})")
    return int(value)


def _float(value: int | float, scalar: Scalar) -> float:
    try:
        return as_float(value, scalar)
    except NoFloat as problem:
        raise Misfit(f"{_number(value)} {problem}") from None


def _number(value: int | float) -> str:
    return repr(value)


def describe(value: Any) -> str:
    """A literal in words, for messages."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int() | float():
            return f"the number {value!r}"
        case str():
            text = value if len(value) <= 30 else value[:29] + "…"
            return f'the string "{text}"'
        case datetime.datetime():
            return "a DateTime"
        case datetime.date():
            return "a Date"
        case tuple():
            return "a list"
        case _:
            return f"a {type(value).__name__}"
