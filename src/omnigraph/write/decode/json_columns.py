"""How Arrow's JSON reader is told to read each type, and how what it read becomes the stored type, strictly."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.schema.arrow import arrow_type
from omnigraph.schema.catalog import EdgeType, GraphType
from omnigraph.schema.types import EnumType, ListType, PropertyType, Scalar, ScalarType, VectorType

_LARGE_INTEGERS = frozenset({Scalar.I64, Scalar.U64})
_LARGEST_F32 = 3.4028234663852886e38
_HALF_OF_SMALLEST_F32 = 2.0**-150


class NotPlain(Exception):
    """A block holds a value that only the slow decoder can judge."""


@dataclass(frozen=True, slots=True)
class Variant:
    """Which of two allowed writings a block uses: 64-bit integers as text, ids of ends as integers."""

    integers_as_text: bool = False
    ends_as_integers: bool = False


@lru_cache(maxsize=512)
def _possible(type_: GraphType) -> tuple[Variant, ...]:
    texts = [False]
    if any(_may_be_text(p.type) for p in type_.properties):
        texts.append(True)
    ends = [False, True] if isinstance(type_, EdgeType) else [False]
    return tuple(Variant(text, end) for end in ends for text in texts)


def _may_be_text(type_: PropertyType) -> bool:
    scalar = type_.item if isinstance(type_, ListType) else type_.scalar if isinstance(type_, ScalarType) else None
    return scalar in _LARGE_INTEGERS


def variants(type_: GraphType, preferred: Variant | None) -> Iterator[Variant]:
    """The writings to try, the one that worked last first."""
    if preferred is not None:
        yield preferred
    for variant in _possible(type_):
        if variant != preferred:
            yield variant


@lru_cache(maxsize=512)
def json_schema(type_: GraphType, variant: Variant) -> pa.Schema:
    """What Arrow is to expect of a record of this type."""
    fields = [] if "id" in type_.by_name else [pa.field("id", pa.string())]
    fields += [pa.field(p.name, _read_type(p.type, variant)) for p in type_.properties]
    own = [pa.field("id", pa.string()), pa.field("data", pa.struct(fields))]
    if not isinstance(type_, EdgeType):
        return pa.schema([pa.field("type", pa.string()), *own])
    end = pa.int64() if variant.ends_as_integers else pa.string()
    return pa.schema([pa.field("edge", pa.string()), pa.field("from", end), pa.field("to", end), *own])


def _read_type(type_: PropertyType, variant: Variant) -> pa.DataType:
    match type_:
        case ScalarType(scalar=scalar):
            return _read_scalar(scalar, variant)
        case EnumType():
            return pa.string()
        case VectorType():
            return pa.list_(pa.float64())
        case ListType(item=scalar):
            return pa.list_(_read_scalar(scalar, variant))


def _read_scalar(scalar: Scalar, variant: Variant) -> pa.DataType:
    if scalar in (Scalar.DATE, Scalar.DATETIME, Scalar.BLOB) or (
        variant.integers_as_text and scalar in _LARGE_INTEGERS
    ):
        return pa.string()
    if scalar is Scalar.F32:
        return pa.float64()
    return arrow_type(ScalarType(scalar))


def plain_column(type_: PropertyType, column: pa.ChunkedArray) -> pa.ChunkedArray:
    """What Arrow read as a column of the stored type. Raises NotPlain where the slow decoder has to judge."""
    stored = arrow_type(type_)
    match type_:
        case EnumType():
            return column
        case ScalarType(scalar=scalar):
            return _plain_scalar(scalar, column, stored)
        case VectorType(dim=dim):
            return _chunkwise(column, stored, lambda chunk: _vector(chunk, dim, stored))
        case ListType(item=scalar):
            return _chunkwise(column, stored, lambda chunk: _list(scalar, chunk, stored))


def _plain_scalar(scalar: Scalar, column: pa.ChunkedArray, stored: pa.DataType) -> pa.ChunkedArray:
    if scalar in (Scalar.F32, Scalar.F64):
        return _finite(column, scalar).cast(stored)
    if scalar is Scalar.DATE:
        return _dates(column)
    if scalar is Scalar.DATETIME:
        return _datetimes(column)
    if scalar is Scalar.BLOB:
        return pa.chunked_array([_blobs(column)], stored)
    if scalar in _LARGE_INTEGERS and pa.types.is_string(column.type):
        return _integers(column, stored)
    return column


def _finite(column: pa.ChunkedArray, scalar: Scalar) -> pa.ChunkedArray:
    if len(column) - column.null_count:
        bounds = pc.min_max(column, skip_nulls=True)
        largest = max(abs(bounds["min"].as_py()), abs(bounds["max"].as_py()))
        limit = _LARGEST_F32 if scalar is Scalar.F32 else 1.7976931348623157e308
        if not largest <= limit or pc.any(pc.is_nan(column)).as_py():
            raise NotPlain
        if scalar is Scalar.F32 and pc.any(_vanishes(column)).as_py():
            raise NotPlain
    return column


def _vanishes(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Where a number is not zero, and its nearest 32-bit float is."""
    return pc.and_(pc.not_equal(column, 0.0), pc.less_equal(pc.abs(column), _HALF_OF_SMALLEST_F32))


_DATE = r"\A[0-9]{4}-[0-9]{2}-[0-9]{2}\z"
_DATETIME = r"\A[0-9]{4}-[0-9]{2}-[0-9]{2}T(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.(?:[0-9]{3}|[0-9]{6}))?Z\z"
_WHOLE = r"\A(?:0|-?[1-9][0-9]{0,18}|1[0-9]{19})\z"


def _shaped(column: pa.ChunkedArray, pattern: str) -> None:
    if not pc.all(pc.match_substring_regex(column, pattern), min_count=0).as_py():
        raise NotPlain


def _parsed(column: pa.ChunkedArray, stored: pa.DataType) -> pa.ChunkedArray:
    try:
        return column.cast(stored)
    except pa.ArrowInvalid:
        raise NotPlain from None


def _dates(column: pa.ChunkedArray) -> pa.ChunkedArray:
    _shaped(column, _DATE)
    if pc.any(pc.starts_with(column, "0000")).as_py():
        raise NotPlain  # Arrow has a year 0
    return _parsed(column, pa.date32())


def _datetimes(column: pa.ChunkedArray) -> pa.ChunkedArray:
    _shaped(column, _DATETIME)
    if pc.any(pc.starts_with(column, "0000")).as_py():
        raise NotPlain
    return _parsed(column, pa.timestamp("us", tz="UTC"))


def _integers(column: pa.ChunkedArray, stored: pa.DataType) -> pa.ChunkedArray:
    _shaped(column, _WHOLE)
    return _parsed(column, stored)


def _blobs(column: pa.ChunkedArray) -> pa.Array:
    if pc.any(pc.match_substring(column, ":")).as_py():
        raise NotPlain
    try:
        values = [None if text is None else base64.b64decode(text, validate=True) for text in column.to_pylist()]
    except (binascii.Error, ValueError):
        raise NotPlain from None
    return pa.array(values, pa.large_binary())


def _chunkwise(column: pa.ChunkedArray, stored: pa.DataType, convert: object) -> pa.ChunkedArray:
    # mypy does not see: a function of an array.
    return pa.chunked_array([convert(chunk) for chunk in column.chunks], stored)  # type: ignore[operator]


def _vector(chunk: pa.ListArray, dim: int, stored: pa.DataType) -> pa.Array:
    if pc.any(pc.not_equal(pc.list_value_length(chunk), dim)).as_py():
        raise NotPlain
    items = pc.list_flatten(chunk)
    if items.null_count:
        raise NotPlain
    narrow = _finite(pa.chunked_array([items]), Scalar.F32).cast(pa.float32()).combine_chunks()
    if not chunk.null_count:
        return pa.FixedSizeListArray.from_arrays(narrow, type=stored)
    # A null row has no items in a list, and `dim` of them in a list of fixed size.
    present = pc.is_valid(chunk)
    positions = pc.if_else(present, pc.subtract(pc.cumulative_sum(present.cast(pa.int64())), 1), None)
    return pa.FixedSizeListArray.from_arrays(narrow, type=stored).take(positions)


def _list(scalar: Scalar, chunk: pa.ListArray, stored: pa.DataType) -> pa.Array:
    items = pc.list_flatten(chunk)
    if items.null_count:
        raise NotPlain
    plain = _plain_scalar(scalar, pa.chunked_array([items]), stored.value_type).combine_chunks()
    lengths = pc.fill_null(pc.list_value_length(chunk), 0)
    ends = pc.cumulative_sum(lengths.cast(pa.int32()))
    offsets = pa.concat_arrays([pa.array([0], pa.int32()), ends])
    return pa.ListArray.from_arrays(offsets, plain, type=stored, mask=pc.is_null(chunk) if chunk.null_count else None)
