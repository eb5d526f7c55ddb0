"""Conditions on rows as plain values, so that no caller ever builds filter text.

A condition is made by the functions below from column names and typed Python values. Storage renders it for Lance with
the column's own type and correct quoting. Lance accepts these with or without an index: equality, membership, order and
prefix use a BTREE when there is one.

Lance is not asked to evaluate anything else. What the languages above can say beyond this (functions of values, regular
expressions, comparison of two columns) is evaluated by their own engine on the rows that come back.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Literal, TypeAlias

import pyarrow as pa

from omnigraph.errors import BadRequest

Value: TypeAlias = str | int | float | bool | bytes | date | datetime | Decimal
Operator: TypeAlias = Literal["=", "!=", "<", "<=", ">", ">="]


@dataclass(frozen=True, slots=True)
class Compare:
    """`column operator value`; false for null, as in SQL."""

    column: str
    operator: Operator
    value: Value


@dataclass(frozen=True, slots=True)
class IsIn:
    """Membership in a list of values. An empty list matches nothing."""

    column: str
    values: tuple[Value, ...] | pa.Array


@dataclass(frozen=True, slots=True)
class IsNull:
    """The value is missing."""

    column: str


@dataclass(frozen=True, slots=True)
class StartsWith:
    """A string begins with `prefix`, letter by letter."""

    column: str
    prefix: str


@dataclass(frozen=True, slots=True)
class Contains:
    """A string has `part` somewhere in it, letter by letter."""

    column: str
    part: str


@dataclass(frozen=True, slots=True)
class ListContains:
    """A list column has `value` among its elements."""

    column: str
    value: Value


@dataclass(frozen=True, slots=True)
class And:
    """All of them hold. None at all holds always."""

    parts: tuple[Filter, ...]


@dataclass(frozen=True, slots=True)
class Or:
    """One of them holds. None at all never holds."""

    parts: tuple[Filter, ...]


@dataclass(frozen=True, slots=True)
class Not:
    """It does not hold. Null stays null, as in SQL."""

    part: Filter


Filter: TypeAlias = Compare | IsIn | IsNull | StartsWith | Contains | ListContains | And | Or | Not


def eq(column: str, value: Value | None) -> Filter:
    """The column equals the value; None asks for null."""
    return IsNull(column) if value is None else Compare(column, "=", value)


def compare(column: str, operator: Operator, value: Value) -> Filter:
    """The column stands in this order to the value."""
    if operator not in ("=", "!=", "<", "<=", ">", ">="):
        raise BadRequest(f"`{operator}` is not a comparison")
    return Compare(column, operator, value)


def is_in(column: str, values: Iterable[Value] | pa.Array | pa.ChunkedArray) -> Filter:
    """The column is one of the values. Nulls among the values match nothing."""
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    if isinstance(values, pa.Array):
        return IsIn(column, values.drop_null())
    return IsIn(column, tuple(value for value in values if value is not None))


def is_null(column: str) -> Filter:
    """The column has no value."""
    return IsNull(column)


def starts_with(column: str, prefix: str) -> Filter:
    """The string begins with the prefix."""
    return StartsWith(column, prefix)


def contains(column: str, part: str) -> Filter:
    """The string has the part in it."""
    return Contains(column, part)


def list_contains(column: str, value: Value) -> Filter:
    """The list has the value among its elements."""
    return ListContains(column, value)


def and_(*parts: Filter) -> Filter:
    """All of them."""
    return parts[0] if len(parts) == 1 else And(parts)


def or_(*parts: Filter) -> Filter:
    """Any of them."""
    return parts[0] if len(parts) == 1 else Or(parts)


def not_(part: Filter) -> Filter:
    """Its contrary."""
    return Not(part)


def value_asked(condition: object, column: str) -> Value | None:
    """The one value that a column has in every row for which the condition holds; None when it may have several."""
    match condition:
        case Compare(name, "=", value) if name == column:
            return value
        case And(parts):
            asked = (value_asked(part, column) for part in parts)
            return next((value for value in asked if value is not None), None)
        case _:
            return None


def to_sql(condition: Filter, schema: pa.Schema) -> str:
    """The condition as filter text for Lance, with literals of the column's type. For the storage package only."""
    match condition:
        case And(parts):
            return "(" + " AND ".join(to_sql(part, schema) for part in parts) + ")" if parts else "TRUE"
        case Or(parts):
            return "(" + " OR ".join(to_sql(part, schema) for part in parts) + ")" if parts else "FALSE"
        case Not(part):
            return f"(NOT {to_sql(part, schema)})"
        case IsNull(column):
            return f"({_name(column)} IS NULL)"
        case StartsWith(column, prefix):
            return f"starts_with({_name(column)}, {_text(prefix)})"
        case Contains(column, part):
            return f"contains({_name(column)}, {_text(part)})"
        case ListContains(column, value):
            return f"array_has({_name(column)}, {_literal(value, _type(schema, column).value_type)})"
        case IsIn(column, values):
            return _membership(column, values, _type(schema, column))
        case Compare(column, operator, value):
            return _comparison(column, operator, value, _type(schema, column))


_ROW_COLUMNS = frozenset({"_rowid", "_rowaddr", "_row_created_at_version", "_row_last_updated_at_version"})


def _type(schema: pa.Schema, column: str) -> pa.DataType:
    if column in _ROW_COLUMNS:
        return pa.uint64()
    index = schema.get_field_index(column)
    if index < 0:
        raise BadRequest(f"the table has no column `{column}`; it has {', '.join(schema.names)}")
    return schema.field(index).type


def _name(column: str) -> str:
    if not column or "`" in column or "\0" in column:
        raise BadRequest(f"`{column}` cannot be the name of a column")
    return f"`{column}`"


def _membership(column: str, values: tuple[Value, ...] | pa.Array, type: pa.DataType) -> str:
    plain = values.to_pylist() if isinstance(values, pa.Array) else values
    if not len(plain):
        return "FALSE"
    if pa.types.is_floating(type) or any(_outside(value, type) for value in plain):
        return "(" + " OR ".join(_comparison(column, "=", value, type) for value in plain) + ")"
    return f"({_name(column)} IN ({', '.join(_literal(value, type) for value in plain)}))"


def _comparison(column: str, operator: str, value: Value, type: pa.DataType) -> str:
    name = _name(column)
    if _outside(value, type):
        # The literal is no value of the column's type (5.5 for an integer): compare as double, as people mean it.
        return f"(CAST({name} AS DOUBLE) {operator} {_literal(value, pa.float64())})"
    return f"({name} {operator} {_literal(value, type)})"


_INTEGER_BOUNDS = {
    pa.int8(): (-(2**7), 2**7 - 1),
    pa.int16(): (-(2**15), 2**15 - 1),
    pa.int32(): (-(2**31), 2**31 - 1),
    pa.int64(): (-(2**63), 2**63 - 1),
    pa.uint8(): (0, 2**8 - 1),
    pa.uint16(): (0, 2**16 - 1),
    pa.uint32(): (0, 2**32 - 1),
    pa.uint64(): (0, 2**64 - 1),
}


def _outside(value: Value, type: pa.DataType) -> bool:
    """Whether a number is no value of an integer column's type."""
    if not pa.types.is_integer(type) or isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        return False
    if isinstance(value, int):
        low, high = _INTEGER_BOUNDS[type]
        return not low <= value <= high
    return True


def _literal(value: Value, type: pa.DataType) -> str:
    wrong = BadRequest(f"{value!r} cannot be compared with a column of type {type}")
    if pa.types.is_dictionary(type):
        return _literal(value, type.value_type)
    if pa.types.is_string(type) or pa.types.is_large_string(type):
        if not isinstance(value, str):
            raise wrong
        return _text(value)
    if pa.types.is_boolean(type):
        if not isinstance(value, bool):
            raise wrong
        return "TRUE" if value else "FALSE"
    if pa.types.is_date(type):
        if not isinstance(value, date) or isinstance(value, datetime):
            raise wrong
        return f"DATE '{value.isoformat()}'"
    if pa.types.is_timestamp(type):
        if not isinstance(value, datetime):
            raise wrong
        return _timestamp(value, type)
    if pa.types.is_binary(type) or pa.types.is_large_binary(type):
        if not isinstance(value, bytes):
            raise wrong
        return f"X'{value.hex()}'"
    return _number(value, type, wrong)


def _number(value: Value, type: pa.DataType, wrong: BadRequest) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise wrong
    if pa.types.is_integer(type):
        return str(value)
    if not pa.types.is_floating(type) and not pa.types.is_decimal(type):
        raise wrong
    number = float(value)
    if math.isnan(number):
        return "CAST('NaN' AS DOUBLE)"
    if math.isinf(number):
        return f"CAST('{'-' if number < 0 else ''}Infinity' AS DOUBLE)"
    return f"CAST({_text(repr(number))} AS DOUBLE)"


def _timestamp(value: datetime, type: pa.DataType) -> str:
    scalar = pa.scalar(value, pa.timestamp("us", tz="UTC" if value.tzinfo else None))
    text = scalar.as_py().isoformat(sep="T", timespec="microseconds").replace("+00:00", "Z")
    if type.tz is not None and value.tzinfo is None:
        text += "Z"
    if type.tz is None:
        text = text.removesuffix("Z")
    return f"TIMESTAMP '{text}'"


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
