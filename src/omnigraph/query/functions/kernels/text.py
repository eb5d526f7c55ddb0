"""Functions on text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.query.functions.kernels.arguments import CannotCompute, any_true, by_row, constant, fit


def lower(args: Sequence[Any], result: pa.DataType) -> pa.Array:
    """In lower case."""
    return pc.utf8_lower(args[0])


def upper(args: Sequence[Any], result: pa.DataType) -> pa.Array:
    """In upper case."""
    return pc.utf8_upper(args[0])


def trim(args: Sequence[Any], result: pa.DataType) -> pa.Array:
    """Without white space at the ends."""
    return pc.utf8_trim_whitespace(args[0])


def length(args: Sequence[Any], result: pa.DataType) -> pa.Array:
    """The number of code points."""
    return fit(pc.utf8_length(args[0]), result)


def substring(args: Sequence[Any], result: pa.DataType) -> pa.Array:
    """The part from a place on."""
    if len(args) > 2 and any_true(pc.less(args[2], 0)):
        raise CannotCompute("a negative number of characters")
    start = constant(args[1])
    if start is not None and start >= 0 and not isinstance(args[0], pa.Scalar):
        if len(args) == 2:
            return pc.utf8_slice_codeunits(args[0], _bounded(start))
        count = constant(args[2])
        if count is not None:
            return pc.utf8_slice_codeunits(args[0], _bounded(start), _bounded(start + count))
    return by_row(_substring, args, result)


_FAR = 2**31 - 1
"""Beyond the end of any text."""


def _bounded(place: int) -> int:
    return min(place, _FAR)


def _substring(text: str, start: int, count: int | None = None) -> str:
    begin = max(start + len(text), 0) if start < 0 else start
    return text[begin:] if count is None else text[begin : begin + count]


def replace(args: Sequence[Any], result: pa.DataType) -> pa.Array:
    """With every occurrence replaced."""
    old, new = constant(args[1]), constant(args[2])
    if old and new is not None and not isinstance(args[0], pa.Scalar):
        return pc.replace_substring(args[0], old, new)
    return by_row(lambda text, old, new: text.replace(old, new) if old else text, args, result)


def split(args: Sequence[Any], result: pa.DataType) -> pa.Array:
    """The parts between separators."""
    if any_true(pc.equal(args[1], "")):
        raise CannotCompute("an empty separator")
    separator = constant(args[1])
    if separator is not None and not isinstance(args[0], pa.Scalar):
        return pc.split_pattern(args[0], separator)
    return by_row(lambda text, between: text.split(between), args, result)


def join(args: Sequence[Any], result: pa.DataType) -> pa.Array:
    """The items with a separator between them."""
    if not isinstance(args[0], pa.Scalar):
        return pc.binary_join(args[0].cast(pa.list_(pa.utf8())), fit(args[1], pa.utf8()))
    return by_row(lambda items, between: between.join(items), args, result)
