"""Conversions: errors where a value has no counterpart, or null in the `try_` forms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.query.functions.kernels.arguments import CannotCompute, any_true, fit
from omnigraph.query.functions.kernels.moments import INSTANT
from omnigraph.query.moments import parse_date, parse_datetime


def to_string(args: Sequence[Any], result: pa.DataType) -> pa.Array:
    """As text."""
    values = args[0]
    if pa.types.is_timestamp(values.type):
        text = pc.strftime(fit(values, INSTANT), format="%Y-%m-%dT%H:%M:%S")
        return (
            pc.binary_join_element_wise(pc.replace_substring_regex(text, r"\.?0*$", ""), "Z", "") if len(text) else text
        )
    if pa.types.is_floating(values.type):
        return pc.replace_substring_regex(values.cast(pa.utf8()), r"^(-?[0-9]+)$", r"\1.0")
    return values.cast(pa.utf8())


def to_int(args: Sequence[Any], result: pa.DataType) -> pa.Array:
    """As I64, or an error."""
    return _all(args[0], *_integers(args[0]), "an integer")


def try_to_int(args: Sequence[Any], result: pa.DataType) -> pa.Array:
    """As I64, or null."""
    return _integers(args[0])[0]


def to_float(args: Sequence[Any], result: pa.DataType) -> pa.Array:
    """As F64, or an error."""
    return _all(args[0], *_floats(args[0]), "a number")


def try_to_float(args: Sequence[Any], result: pa.DataType) -> pa.Array:
    """As F64, or null."""
    return _floats(args[0])[0]


def to_date(args: Sequence[Any], result: pa.DataType) -> pa.Array:
    """As a Date, or an error."""
    return _all(args[0], *_dates(args[0]), "a Date")


def try_to_date(args: Sequence[Any], result: pa.DataType) -> pa.Array:
    """As a Date, or null."""
    return _dates(args[0])[0]


def to_datetime(args: Sequence[Any], result: pa.DataType) -> pa.Array:
    """As a DateTime, or an error."""
    return _all(args[0], *_instants(args[0]), "a DateTime")


def try_to_datetime(args: Sequence[Any], result: pa.DataType) -> pa.Array:
    """As a DateTime, or null."""
    return _instants(args[0])[0]


def _all(given: Any, values: pa.Array, failed: Any, wanted: str) -> pa.Array:
    """The values, or an error that shows the first one that could not be converted."""
    if any_true(failed):
        sample = given.filter(failed)[0].as_py()
        raise CannotCompute(f"{_show(sample)}, which is not {wanted},")
    return values


def _show(value: Any) -> str:
    text = str(value)
    text = text if len(text) <= 40 else text[:39] + "…"
    return f'"{text}"' if isinstance(value, str) else text


def _integers(values: Any) -> tuple[pa.Array, Any]:
    if _is_text(values.type):
        plain = pc.match_substring_regex(values, r"\A[+-]?[0-9]{1,19}\z")
        texts = pc.if_else(plain, pc.replace_substring_regex(values, r"\A\+", ""), None)
        try:
            numbers = texts.cast(pa.int64())
        except pa.ArrowInvalid:
            numbers = pa.array([_in_range(text) for text in texts.to_pylist()], pa.int64())
        return numbers, _lost(values, numbers)
    if pa.types.is_floating(values.type):
        whole = pc.trunc(values.cast(pa.float64()))
        inside = pc.and_(pc.greater_equal(whole, -(2.0**63)), pc.less(whole, 2.0**63))
        numbers = pc.if_else(pc.fill_null(inside, False), whole, None).cast(pa.int64())
        return numbers, _lost(values, numbers)
    if pa.types.is_uint64(values.type):
        numbers = pc.if_else(pc.less(values, pa.scalar(2**63, pa.uint64())), values, None).cast(pa.int64())
        return numbers, _lost(values, numbers)
    return values.cast(pa.int64()), pa.scalar(False)


def _in_range(text: str | None) -> int | None:
    number = None if text is None else int(text)
    return number if number is not None and -(2**63) <= number < 2**63 else None


def _floats(values: Any) -> tuple[pa.Array, Any]:
    if not _is_text(values.type):
        return values.cast(pa.float64(), safe=False), pa.scalar(False)
    plain = pc.match_substring_regex(values, r"\A[+-]?[0-9]{1,400}(\.[0-9]{1,400})?([eE][+-]?[0-9]{1,4})?\z")
    texts = pc.if_else(plain, values, None)
    numbers = pa.array([None if text is None else float(text) for text in texts.to_pylist()], pa.float64())
    numbers = pc.if_else(pc.fill_null(pc.is_finite(numbers), False), numbers, None)
    return numbers, _lost(values, numbers)


def _dates(values: Any) -> tuple[pa.Array, Any]:
    if _is_text(values.type):
        return _parsed(values, parse_date, pa.date32())
    return values.cast(pa.date32(), safe=False), pa.scalar(False)


def _instants(values: Any) -> tuple[pa.Array, Any]:
    if _is_text(values.type):
        return _parsed(values, parse_datetime, INSTANT)
    if pa.types.is_date(values.type):
        return values.cast(pa.timestamp("us")).cast(INSTANT), pa.scalar(False)
    return fit(values, INSTANT), pa.scalar(False)


def _parsed(values: Any, parse: Callable[[str], Any], type_: pa.DataType) -> tuple[pa.Array, Any]:
    """Texts read one by one, each different text once."""
    encoded = values.dictionary_encode()
    known = pa.array([_read(text, parse) for text in encoded.dictionary.to_pylist()], type_)
    parsed = known.take(encoded.indices)
    return parsed, _lost(values, parsed)


def _read(text: str, parse: Callable[[str], Any]) -> Any:
    try:
        return parse(text)
    except ValueError:
        return None


def _lost(given: Any, made: Any) -> Any:
    return pc.and_(pc.is_valid(given), pc.is_null(made))


def _is_text(type_: pa.DataType) -> bool:
    return bool(pa.types.is_string(type_) or pa.types.is_large_string(type_))
