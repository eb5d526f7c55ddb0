"""One value of a source as a value of a property's type: strict, never a silent cast.

This is the meaning of every value that comes as JSON or as a Python object. The fast decoder accepts a value by itself
only where this function would accept it and give the same; whatever else it meets, it leaves to this function.
"""

from __future__ import annotations

import base64
import binascii
import datetime
from collections.abc import Mapping
from typing import Any

import numpy as np

from omnigraph.query.blob_text import BASE64_MARK
from omnigraph.schema.floats import NoFloat, as_float
from omnigraph.schema.ids.given_ids import IdForm, NoId
from omnigraph.schema.literals import EPOCH, EPOCH_DATE, TOO_FINE, parse_date, parse_datetime
from omnigraph.schema.types import FLOATS, INTEGERS, EnumType, ListType, PropertyType, Scalar, ScalarType, VectorType
from omnigraph.write.decode.blob_sources import bytes_at
from omnigraph.write.decode.json_text import MinusZero

LIMITS: Mapping[Scalar, tuple[int, int]] = {
    Scalar.I32: (-(1 << 31), (1 << 31) - 1),
    Scalar.I64: (-(1 << 63), (1 << 63) - 1),
    Scalar.U32: (0, (1 << 32) - 1),
    Scalar.U64: (0, (1 << 64) - 1),
}

_TEXT_INTEGERS = frozenset({Scalar.I64, Scalar.U64})


class BadValue(ValueError):
    """A value that is not one of the property's type; the text says why, when more than the type is wrong."""

    def __init__(self, why: str | None = None) -> None:
        super().__init__(why or "")
        self.why = why


class WrongDimension(BadValue):
    """A vector with too few or too many numbers."""

    def __init__(self, found: int) -> None:
        super().__init__(f"it has {found} numbers")
        self.found = found


def to_value(type_: PropertyType, value: Any) -> Any:
    """The value in the form that Arrow stores: dates as days, datetimes as microseconds. Raises BadValue."""
    if value is None:
        return None
    if isinstance(value, np.generic):
        value = value.item()
    match type_:
        case ScalarType(scalar=scalar):
            return _scalar(scalar, value)
        case EnumType():
            return _text(value)
        case VectorType(dim=dim):
            items = _items(value)
            if len(items) != dim:
                raise WrongDimension(len(items))
            return [_item(Scalar.F32, item) for item in items]
        case ListType(item=scalar):
            return [_item(scalar, item) for item in _items(value)]


def to_id(form: IdForm, value: Any) -> str | None:
    """The id that a value stands for: itself, or what the key makes of it. Raises BadValue."""
    if value is None:
        return None
    try:
        return form.take(value)
    except NoId as problem:
        raise BadValue(str(problem) or None) from None


def _scalar(scalar: Scalar, value: Any) -> Any:
    if scalar is Scalar.STRING:
        return _text(value)
    if scalar is Scalar.BOOL:
        if not isinstance(value, bool):
            raise BadValue
        return value
    if scalar in INTEGERS:
        return _integer(scalar, value)
    if scalar in FLOATS:
        return _float(scalar, value)
    if scalar is Scalar.DATE:
        return _date(value)
    if scalar is Scalar.DATETIME:
        return _datetime(value)
    return blob_bytes(value)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise BadValue
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise BadValue("half of a surrogate pair is not a character") from None
    return value


def _integer(scalar: Scalar, value: Any) -> int:
    if isinstance(value, str) and scalar in _TEXT_INTEGERS:
        digits = value.removeprefix("-")
        if not (digits.isascii() and digits.isdigit()) or str(int(value)) != value:
            raise BadValue
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        raise BadValue
    low, high = LIMITS[scalar]
    if not low <= value <= high:
        raise BadValue(f"it is outside {low}..{high}")
    return value


def _float(scalar: Scalar, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise BadValue
    if isinstance(value, MinusZero):
        return -0.0
    try:
        return as_float(value, scalar)
    except NoFloat as problem:
        raise BadValue(f"it {problem}") from None


def _date(value: Any) -> int:
    if isinstance(value, datetime.date) and not isinstance(value, datetime.datetime):
        return (value - EPOCH_DATE).days
    if not isinstance(value, str):
        raise BadValue
    try:
        return parse_date(value)
    except ValueError as error:
        raise BadValue(str(error)) from None


def _datetime(value: Any) -> int:
    if isinstance(value, datetime.datetime):
        if value.tzinfo is None:
            raise BadValue("it has no offset from UTC, so it names no instant")
        if getattr(value, "nanosecond", 0):  # of pandas
            raise BadValue(TOO_FINE)
        return (value - EPOCH) // datetime.timedelta(microseconds=1)
    if not isinstance(value, str):
        raise BadValue
    try:
        return parse_datetime(value)
    except ValueError as error:
        raise BadValue(str(error)) from None


def blob_bytes(value: Any) -> bytes:
    """The bytes of a blob: themselves, base64 text (also with `base64:` before it, or as `{"base64": …}`), or a URI.

    A URI is read now. Raises BadValue.
    """
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    if isinstance(value, Mapping):
        if set(value) != {"base64"}:
            raise BadValue('an object for a blob is written {"base64": "…"}')
        value = value["base64"]
        if not isinstance(value, str):
            raise BadValue
    elif isinstance(value, str) and value.startswith(BASE64_MARK):
        value = value.removeprefix(BASE64_MARK)
    elif isinstance(value, str) and ":" in value:
        try:
            return bytes_at(value)
        except ValueError as problem:
            raise BadValue(str(problem)) from None
    if not isinstance(value, str):
        raise BadValue
    return _base64(value)


def _base64(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise BadValue("it is not base64") from None


def _items(value: Any) -> list[Any]:
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if not isinstance(value, list | tuple):
        raise BadValue
    return list(value)


def _item(scalar: Scalar, item: Any) -> Any:
    if item is None:
        raise BadValue("an item is null")
    if isinstance(item, np.generic):
        item = item.item()
    return _scalar(scalar, item)
