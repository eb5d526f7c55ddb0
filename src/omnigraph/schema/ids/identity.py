"""Row identity: the id of a keyed node or edge is the canonical text of its key.

This is the reference, one row at a time; columns of rows are done in bulk elsewhere and must agree with it.

* One key property: its text as it is. `String` and enums: themselves. Integers: decimal. Booleans: `true`, `false`.
  `Date`: `2026-01-02`. `DateTime`: ISO text in UTC with `Z`, a fraction of six digits only where there is one. Types of
  graphs that were made before ids had this form keep theirs (`iso_dates` is not set): days and microseconds since
  1970-01-01T00:00:00Z.
* Floats: the shortest digits that read back as the same number of the same width, `-0` as `0`, without `.0`; plain
  notation from 0.000001 up to below 1e10, otherwise with an exponent, as in `1e+10` and `1.5e-7`. That is what Arrow's
  cast to text gives. Not-a-number and infinities are refused.
* Several key properties, and every edge: a JSON array of those texts, in the order of `key` (for edges `src` and `dst`
  first, then properties by their stable id, which no rename changes). The array is compact, only `"`, `\\` and control
  characters are escaped, in their shortest form.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Mapping
from datetime import date, datetime, timedelta
from typing import Any

from omnigraph.errors import BadRequest
from omnigraph.schema.catalog import EdgeType, NodeType
from omnigraph.schema.compiler.annotations import INTEGER_BOUNDS
from omnigraph.schema.floats import NoFloat, as_float
from omnigraph.schema.literals import EPOCH, EPOCH_DATE, format_date, format_datetime
from omnigraph.schema.types import FLOATS, INTEGERS, EnumType, PropertyType, Scalar, ScalarType


def node_id(node_type: NodeType, values: Mapping[str, Any]) -> str | None:
    """The id of a keyed node with these property values; None for a type without a key."""
    if not node_type.key:
        return None
    texts = [_key_text(node_type, column, values) for column in node_type.key]
    return texts[0] if len(texts) == 1 else key_array(texts)


def edge_id(edge_type: EdgeType, src: str, dst: str, values: Mapping[str, Any]) -> str | None:
    """The id of a keyed edge between these ends; None for a type without a key."""
    if not edge_type.key:
        return None
    ends = {"src": src, "dst": dst}
    return key_array([ends[n] if n in ends else _key_text(edge_type, n, values) for n in edge_type.key])


def key_array(texts: list[str]) -> str:
    """Several texts as one id: a compact JSON array."""
    return json.dumps(texts, ensure_ascii=False, separators=(",", ":"))


def _key_text(graph_type: NodeType | EdgeType, column: str, values: Mapping[str, Any]) -> str:
    property_ = graph_type.by_column[column]
    name = property_.name
    value = values.get(name)
    if value is None:
        raise BadRequest(f"the key property `{name}` of `{graph_type.name}` has no value; give one")
    try:
        return canonical_scalar(value, property_.type, iso_dates=graph_type.iso_dates)
    except BadRequest as error:
        raise BadRequest(f"the key property `{name}` of `{graph_type.name}`: {error.message}") from error


def canonical_scalar(value: Any, type_: PropertyType, *, iso_dates: bool = True) -> str:
    """The text of one value of a key. Raises BadRequest for a value that has none."""
    if isinstance(type_, EnumType):
        return _text(value, type_)
    if not isinstance(type_, ScalarType) or type_.scalar is Scalar.BLOB:
        raise BadRequest(f"a value of type `{type_}` cannot be part of a key")
    scalar = type_.scalar
    if scalar is Scalar.STRING:
        return _text(value, type_)
    if scalar is Scalar.BOOL:
        if not isinstance(value, bool):
            raise _misfit(value, type_)
        return "true" if value else "false"
    if scalar in INTEGERS:
        low, high = INTEGER_BOUNDS[scalar]
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise _misfit(value, type_)
        return str(value)
    if scalar in FLOATS:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise _misfit(value, type_)
        return _float_text(value, scalar)
    if scalar is Scalar.DATE:
        days = _days(value, type_)
        return format_date(days) if iso_dates else str(days)
    microseconds = _microseconds(value, type_)
    return format_datetime(microseconds) if iso_dates else str(microseconds)


def _misfit(value: Any, type_: PropertyType) -> BadRequest:
    return BadRequest(f"{value!r} is not a `{type_}`")


def _text(value: Any, type_: PropertyType) -> str:
    if not isinstance(value, str) or (isinstance(type_, EnumType) and value not in type_.values):
        raise _misfit(value, type_)
    return value


def _days(value: Any, type_: PropertyType) -> int:
    if isinstance(value, date) and not isinstance(value, datetime):
        return (value - EPOCH_DATE).days
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise _misfit(value, type_)


def _microseconds(value: Any, type_: PropertyType) -> int:
    if isinstance(value, datetime) and value.tzinfo is not None:
        return (value - EPOCH) // timedelta(microseconds=1)
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, datetime):
        raise BadRequest(f"{value.isoformat()} has no time zone; give `Z` or an offset")
    raise _misfit(value, type_)


def _float_text(value: int | float, scalar: Scalar) -> str:
    try:
        number = as_float(value, scalar)
    except NoFloat as error:
        raise BadRequest(f"{value!r} is no `{scalar.value}`: it {error}") from error
    if not math.isfinite(number):
        raise BadRequest(f"{value!r} is not a finite number and cannot be part of a key")
    if number == 0:
        return "0"
    sign = "-" if number < 0 else ""
    digits, exponent = _shortest_digits(abs(number), scalar)
    return sign + _decimal(digits, exponent)


def _shortest_digits(number: float, scalar: Scalar) -> tuple[str, int]:
    """The fewest digits that read back as the number, and the power of ten of the first of them."""
    if scalar is Scalar.F64:
        return _split(repr(number))
    text = ""
    packed = struct.pack("<f", number)
    for precision in range(9):
        text = f"{number:.{precision}e}"
        try:
            if struct.pack("<f", float(text)) == packed:
                break
        except OverflowError:
            continue
    return _split(text)


def _split(text: str) -> tuple[str, int]:
    """Digits without leading and trailing zeros, and the power of ten of the first."""
    mantissa, _, exponent = text.partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    power = int(exponent or 0) + len(whole) - 1 - (len(whole + fraction) - len(digits))
    return digits.rstrip("0"), power


def _decimal(digits: str, power: int) -> str:
    if -6 <= power < 10:
        if power < 0:
            return "0." + "0" * (-power - 1) + digits
        whole = digits[: power + 1].ljust(power + 1, "0")
        fraction = digits[power + 1 :]
        return f"{whole}.{fraction}" if fraction else whole
    mantissa = digits[0] + ("." + digits[1:] if len(digits) > 1 else "")
    return f"{mantissa}e{'+' if power > 0 else '-'}{abs(power)}"
