"""Spark's filters as conditions that Lance evaluates, where the two mean exactly the same; and conditions as JSON that
travels in an option of a frame.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

from omnigraph.storage.reading import filters
from omnigraph.storage.reading.filters import Filter


def to_condition(spark_filter: Any, schema: pa.Schema) -> Filter | None:
    """The condition for one of Spark's filters, or None when it stays with Spark."""
    name = type(spark_filter).__name__
    if name == "Not":
        inner = to_condition(spark_filter.child, schema)
        return None if inner is None else filters.not_(inner)
    path = spark_filter.attribute
    if len(path) != 1 or path[0] not in schema.names or not can_be_filtered(schema.field(path[0]).type):
        return None
    column = path[0]
    if name == "IsNull":
        return filters.is_null(column)
    if name == "IsNotNull":
        return filters.not_(filters.is_null(column))
    if name == "In":
        values = [_value(value) for value in spark_filter.value]
        return None if None in values else filters.is_in(column, values)
    value = _value(spark_filter.value)
    make = _BINARY.get(name)
    return None if make is None or value is None else make(column, value)


def is_exact(spark_filter: Any) -> bool:
    """Whether Spark need not look at the rows again: text, whole numbers, booleans and dates mean the same to both."""
    if type(spark_filter).__name__ == "Not":
        return is_exact(spark_filter.child)
    value = getattr(spark_filter, "value", None)
    values = value if isinstance(value, list | tuple) else [value]
    return not any(isinstance(item, float | Decimal | datetime) for item in values)


_BINARY: dict[str, Callable[[str, Any], Filter]] = {
    "EqualTo": filters.eq,
    "GreaterThan": lambda column, value: filters.compare(column, ">", value),
    "GreaterThanOrEqual": lambda column, value: filters.compare(column, ">=", value),
    "LessThan": lambda column, value: filters.compare(column, "<", value),
    "LessThanOrEqual": lambda column, value: filters.compare(column, "<=", value),
    "StringStartsWith": filters.starts_with,
    "StringContains": filters.contains,
}


def can_be_filtered(type_: pa.DataType) -> bool:
    """Columns whose values compare the same way on both sides (32-bit floats are widened by Spark first)."""
    return not (pa.types.is_nested(type_) or pa.types.is_float32(type_) or isinstance(type_, pa.BaseExtensionType))


def _value(value: Any) -> Any:
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else None
    if isinstance(value, float):
        return value if value == value else None
    return value if isinstance(value, str | int | bool | date) else None


def to_json(condition: Filter) -> dict[str, Any]:
    """A condition as plain data. Its values are text, whole numbers, booleans and dates."""
    given = {name: getattr(condition, name) for name in condition.__slots__}
    return {"kind": type(condition).__name__, **{name: _plain(value) for name, value in given.items()}}


def from_json(given: dict[str, Any]) -> Filter:
    """The condition that `to_json` wrote."""
    kind = _KINDS[given["kind"]]
    condition: Filter = kind(**{name: _restored(value) for name, value in given.items() if name != "kind"})
    return condition


_KINDS: dict[str, Any] = {
    kind.__name__: kind
    for kind in (
        filters.Compare,
        filters.IsIn,
        filters.IsNull,
        filters.StartsWith,
        filters.And,
        filters.Or,
        filters.Not,
    )
}


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if isinstance(value, date):
        return {"date": value.isoformat()}
    return to_json(value) if hasattr(value, "__slots__") and type(value).__name__ in _KINDS else value


def _restored(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_restored(item) for item in value)
    if isinstance(value, dict):
        return date.fromisoformat(value["date"]) if "date" in value else from_json(value)
    return value
