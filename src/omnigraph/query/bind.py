"""Parameter values from JSON (or from Python) to the typed values that a query runs with."""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping, Sequence
from typing import Any

from omnigraph.errors import BadRequest
from omnigraph.query import ir
from omnigraph.query.blob_text import parse_blob
from omnigraph.query.check.scope import suggest_variable
from omnigraph.query.check.values.literals import INTEGER_RANGES
from omnigraph.query.moments import in_utc, parse_date, parse_datetime
from omnigraph.schema.floats import NoFloat, Underflow, as_float
from omnigraph.schema.types import FLOATS, EnumType, ListType, Scalar, ScalarType, ValueType, VectorType


class _Unfit(ValueError):
    """A value that is not of the type; the text says what it is instead."""


def bind_parameters(parameters: Sequence[ir.Parameter], values: Mapping[str, Any]) -> dict[str, Any]:
    """The typed value of every declared parameter, null for an optional one that is absent.

    Dates are `datetime.date`, datetimes aware `datetime.datetime` in UTC, lists and vectors tuples, blobs bytes or a
    URI. Raises `BadRequest` for a missing, unknown or ill-typed parameter.
    """
    declared = {parameter.name: parameter for parameter in parameters}
    given = {str(name).removeprefix("$"): value for name, value in values.items()}
    for name in given:
        if name not in declared:
            hint = suggest_variable(name, declared) or _declared_words(declared)
            raise BadRequest(f"unknown parameter `${name}`; {hint}", parameter=name)
    bound: dict[str, Any] = {}
    for name, parameter in declared.items():
        if name not in given and parameter.default is not None:
            bound[name] = parameter.default.value
            continue
        value = given.get(name)
        if value is None:
            if not parameter.nullable:
                state = "is null" if name in given else "is missing"
                expected = str(parameter.type)
                raise BadRequest(
                    f"parameter `${name}` {state}; it needs a value of type {expected}",
                    parameter=name,
                    expected=expected,
                )
            bound[name] = None
            continue
        try:
            bound[name] = _convert(value, parameter.type)
        except _Unfit as unfit:
            expected = str(parameter.type)
            raise BadRequest(
                f"parameter `${name}` must be {expected}: {unfit}", parameter=name, expected=expected
            ) from None
    return bound


def limit_count(limit: ir.Limit, params: Mapping[str, Any]) -> int:
    """How many rows a `limit` lets through. Raises `BadRequest` when its parameter is negative."""
    assert limit.count is not None
    return _row_number(limit.count, params, "a limit")


def offset_count(limit: ir.Limit, params: Mapping[str, Any]) -> int:
    """How many rows an `offset` leaves out, 0 without one. Raises `BadRequest` when its parameter is negative."""
    return 0 if limit.offset is None else _row_number(limit.offset, params, "an offset")


def _row_number(count: ir.Expr, params: Mapping[str, Any], what: str) -> int:
    if isinstance(count, ir.Literal):
        return int(count.value)
    assert isinstance(count, ir.Param)
    value = params[count.name]
    if value is None or value < 0:
        raise BadRequest(f"parameter `${count.name}` is {what} and must not be {value}", parameter=count.name)
    return int(value)


def _declared_words(declared: Mapping[str, ir.Parameter]) -> str:
    if not declared:
        return "the query has no parameters"
    return "the query has " + ", ".join(f"`${name}`" for name in declared)


def _convert(value: Any, type_: ValueType | ir.RowsType) -> Any:
    match type_:
        case ir.RowsType():
            return _rows(value)
        case VectorType(dim):
            return _vector(value, dim)
        case ListType(item):
            return tuple(_item(each, index, item) for index, each in enumerate(_sequence(value, "a list")))
        case EnumType(values):
            if value not in values:
                raise _Unfit(f"{_show(value)} is not one of {', '.join(values)}")
            return value
        case ScalarType(scalar):
            return _scalar(value, scalar)
        case _:
            raise _Unfit(f"{type_} is no type of a parameter")


MAX_ROWS = 1_000_000
"""Rows in one parameter; more are a load."""


def _rows(value: Any) -> tuple[dict[str, Any], ...]:
    """Rows as objects; what is in them is checked when they are written, like the rows of a load."""
    rows = _sequence(value, "a list of objects")
    if len(rows) > MAX_ROWS:
        raise _Unfit(f"{len(rows)} rows are more than {MAX_ROWS}; load them instead")
    for index, row in enumerate(rows):
        if not isinstance(row, Mapping) or not all(isinstance(name, str) for name in row):
            raise _Unfit(f"record {index + 1} must be an object, and is {_show(row)}")
    return tuple(dict(row) for row in rows)


def _item(value: Any, index: int, item: Scalar) -> Any:
    if value is None:
        raise _Unfit(f"item {index} is null")
    try:
        return _scalar(value, item)
    except _Unfit as unfit:
        raise _Unfit(f"item {index}: {unfit}") from None


def _sequence(value: Any, wanted: str) -> Sequence[Any]:
    """Lists, tuples, and array objects that can be turned into a list."""
    if isinstance(value, list | tuple):
        return value
    to_list = getattr(value, "tolist", None)
    if to_list is not None:
        converted = to_list()
        if isinstance(converted, list):
            return converted
    raise _Unfit(f"expected {wanted}, found {_show(value)}")


def _vector(value: Any, dim: int) -> tuple[float, ...]:
    items = _sequence(value, f"{dim} numbers")
    if len(items) != dim:
        raise _Unfit(f"expected {dim} numbers, found {len(items)}")
    return tuple(_item(item, index, Scalar.F32) for index, item in enumerate(items))


def _scalar(value: Any, scalar: Scalar) -> Any:
    if scalar in INTEGER_RANGES:
        return _integer(value, scalar)
    if scalar in FLOATS:
        return _float(value, scalar)
    match scalar:
        case Scalar.STRING:
            return _text(value)
        case Scalar.BOOL:
            if not isinstance(value, bool):
                raise _Unfit(f"expected true or false, found {_show(value)}")
            return value
        case Scalar.DATE:
            return _date(value)
        case Scalar.DATETIME:
            return _datetime(value)
        case _:
            return _blob(value)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise _Unfit(f"expected text, found {_show(value)}")
    if not value.isascii() and any("\ud800" <= character <= "\udfff" for character in value):
        raise _Unfit("the text holds half of a surrogate pair, which is no character")
    return value


def _integer(value: Any, scalar: Scalar) -> int:
    if isinstance(value, str) and scalar in {Scalar.I64, Scalar.U64}:
        digits = value.removeprefix("-")
        if not (digits.isascii() and digits.isdigit() and len(digits) <= 20):
            raise _Unfit(f"{_show(value)} is not a whole number")
        value = int(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise _Unfit(f"expected a whole number, found {_show(value)}")
    number = int(value)
    low, high = INTEGER_RANGES[scalar]
    if not low <= number <= high:
        raise _Unfit(f"{_short(str(number))} is outside of {low} to {high}")
    return number


def _float(value: Any, scalar: Scalar) -> float:
    if isinstance(value, bool | str) or not (hasattr(value, "__float__") or hasattr(value, "__index__")):
        raise _Unfit(f"expected a number, found {_show(value)}")
    try:
        number = as_float(value if isinstance(value, int | float) else _plain_number(value), scalar)
    except NoFloat as problem:
        raise _Unfit(f"{_show(value)} {problem}") from None
    if not math.isfinite(number):
        raise _Unfit("NaN and infinity are not allowed")
    return number


def _plain_number(value: Any) -> int | float:
    """A number of another library as one of Python's."""
    if hasattr(value, "__index__"):
        return int(value)
    number = float(value)
    return Underflow(number) if number == 0 and value != 0 else number


def _date(value: Any) -> datetime.date:
    if isinstance(value, datetime.date) and not isinstance(value, datetime.datetime):
        return value
    if not isinstance(value, str):
        raise _Unfit(f'expected ISO text such as "2026-01-02", found {_show(value)}')
    try:
        return parse_date(value)
    except ValueError as error:
        raise _Unfit(str(error)) from None


def _datetime(value: Any) -> datetime.datetime:
    try:
        if isinstance(value, datetime.datetime):
            if getattr(value, "nanosecond", 0):
                raise ValueError("it has more than six digits of a second, and no finer time is kept")
            return in_utc(value)
        if isinstance(value, str):
            return parse_datetime(value)
    except ValueError as error:
        raise _Unfit(str(error)) from None
    raise _Unfit(f'expected ISO text such as "2026-01-02T03:04:05Z", found {_show(value)}')


def _blob(value: Any) -> bytes | str:
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    if not isinstance(value, str):
        raise _Unfit(f"expected base64 or URI text, found {_show(value)}")
    try:
        return parse_blob(value)
    except ValueError as error:
        raise _Unfit(str(error)) from None


def _show(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f'the text "{_short(value)}"'
    if isinstance(value, int | float):
        return f"the number {_short(repr(value))}" if not isinstance(value, int) or abs(value) < 10**40 else "a number"
    if isinstance(value, list | tuple):
        return "a list"
    return "an object" if isinstance(value, Mapping) else f"a {type(value).__name__}"


def _short(text: str) -> str:
    return text if len(text) <= 40 else text[:39] + "…"
