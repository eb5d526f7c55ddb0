"""Lines that differ in their values only, as programs write them: cut at their quotes instead of parsed.

A JSON parser looks at every character. Of lines that are alike the first says where the values stand, and that all
others are built the same way is found by comparing whole columns of bytes, at a third of the cost. What is returned is
what Arrow's JSON reader would have made of the lines; None where that is not certain, and then the reader is asked.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from omnigraph.write.decode.json_text import parse_line

Positions = np.ndarray[Any, np.dtype[np.int64]]
Bytes = np.ndarray[Any, np.dtype[np.uint8]]

_QUOTE, _BACKSLASH, _SPACE = b'"\\ '
_WORD = 8
"""Bytes that are compared at once."""

_LITERAL = re.compile(r"(?P<before>\s*:\s*)(?P<literal>-?[0-9][0-9.]*|true|false|null)(?P<after>[\s,}].*)", re.DOTALL)
_WHOLE = r"\A-?(?:0|[1-9][0-9]*)\z"
_DECIMAL = r"\A-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?\z"

Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Value:
    """Where a value stands in each line: from `before` bytes after one quote to `after` bytes before another one.

    `closing` past the last quote means the end of the line.
    """

    path: Path
    quoted: bool
    opening: int
    closing: int
    before: int = 1
    after: int = 0


def alike_table(lines: pa.Array, schema: pa.Schema) -> pa.Table | None:
    """The table of lines that are all built like the first. Each ends with a line feed, and they lie in one piece."""
    _, offsets, data = lines.buffers()
    edges = np.frombuffer(offsets, np.int32)[lines.offset : lines.offset + len(lines) + 1].astype(np.int64)
    if not len(lines) or int(edges[-1] - edges[-2]) <= _WORD:
        return None
    data = data.slice(int(edges[0]), int(edges[-1] - edges[0]))
    text = np.frombuffer(data, np.uint8)
    edges -= edges[0]
    first = lines[0].as_py()
    values = _values_of(first, schema)
    if values is None or not _is_read(first, schema):
        return None
    quotes = _quotes(text, edges, first)
    if quotes is None:
        return None
    starts, ends = _places(values, quotes, edges)
    if not _frames_are_equal(text, edges, starts, ends):
        return None
    texts = dict(zip([value.path for value in values], _cut(lines, data, starts, ends)))
    quoted = {value.path for value in values if value.quoted}
    return _table(schema, texts, quoted, parse_line(first), len(lines))


def _is_read(line: str, schema: pa.Schema) -> bool:
    """Whether Arrow's reader takes the first line: no unknown and no repeated key, every value of its type."""
    text = pa.BufferReader(line.encode())
    alone = pj.ReadOptions(use_threads=False, block_size=len(line.encode()) + 1)
    try:
        read = pj.read_json(text, alone, pj.ParseOptions(explicit_schema=schema, unexpected_field_behavior="error"))
    except pa.ArrowInvalid:
        return False
    return bool(read.num_rows == 1)


def _values_of(line: str, schema: pa.Schema) -> list[_Value] | None:
    """The values of a line in their order; None when it holds what is not cut: lists, escapes, objects in objects."""
    record = parse_line(line)
    if not isinstance(record, dict) or "\\" in line:
        return None
    pieces = line.split('"')
    values: list[_Value] = []
    at = 1
    for path, value in _leaves(record):
        if at >= len(pieces) or pieces[at] != path[-1]:
            return None
        at += 2
        if isinstance(value, dict):
            continue
        if isinstance(value, str):
            if at >= len(pieces) or pieces[at] != value:
                return None
            values.append(_Value(path, True, at - 1, at))
            at += 2
            continue
        found = _LITERAL.fullmatch(pieces[at - 1])
        if found is None or isinstance(value, list):
            return None
        before, after = len(found["before"].encode()), len(found["after"].encode())
        values.append(_Value(path, False, at - 2, at - 1, 1 + before, after))
    return values if values and at == len(pieces) else None


def _leaves(record: Mapping[str, Any], above: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Every key of a record with its value, in the order of the text."""
    for key, value in record.items():
        yield (*above, key), value
        if isinstance(value, dict):
            yield from _leaves(value, (*above, key))


def _quotes(text: Bytes, edges: Positions, first: str) -> Positions | None:
    """The positions of the quotes, a row for each line; None when a line has more or fewer, or an odd character."""
    quotes = np.flatnonzero(text == _QUOTE)
    lines, each = len(edges) - 1, first.count('"')
    if len(quotes) != lines * each or bool((text == _BACKSLASH).any()):
        return None
    # Beside the line ends, which are parts of what is compared: a text holds no control characters.
    if np.count_nonzero(text < _SPACE) != lines * sum(character < " " for character in first):
        return None
    rows = quotes.reshape(lines, each)
    return rows if bool((rows[:, 0] >= edges[:-1]).all() and (rows[:, -1] < edges[1:]).all()) else None


def _places(values: list[_Value], quotes: Positions, edges: Positions) -> tuple[list[Positions], list[Positions]]:
    """Where each value starts and ends, a column for each value."""

    def column(at: int) -> Positions:
        return quotes[:, at] if at < quotes.shape[1] else edges[1:]

    return [column(one.opening) + one.before for one in values], [column(one.closing) - one.after for one in values]


def _frames_are_equal(text: Bytes, edges: Positions, starts: list[Positions], ends: list[Positions]) -> bool:
    """Whether what stands between the values is the same in all lines, byte for byte."""
    if any(bool((end < start).any()) for start, end in zip(starts, ends)):
        return False
    frames = pairwise([edges[:-1], *(place for pair in zip(starts, ends) for place in pair), edges[1:]])
    return all(_is_same(text, start, end) for number, (start, end) in enumerate(frames) if number % 2 == 0)


def _is_same(text: Bytes, starts: Positions, ends: Positions) -> bool:
    length = int(ends[0] - starts[0])
    if bool((ends - starts != length).any()):
        return False
    last, wanted = int(starts[-1]), text[starts[0] : ends[0]]
    # A word that begins in the last line may reach beyond the text.
    if not np.array_equal(text[last : last + length], wanted):
        return False
    words = np.ndarray((len(text) - _WORD + 1,), np.dtype("<u8"), text, 0, (1,))
    for offset in range(0, length, _WORD):
        # The last word of a long frame is moved back to end with it; of a short one only its own bytes count.
        found = words[starts[:-1] + min(offset, max(length - _WORD, 0))]
        if length < _WORD:
            found &= np.uint64((1 << 8 * length) - 1)
        if bool((found != found[:1]).any()):
            return False
    return True


def _cut(lines: pa.Array, data: pa.Buffer, starts: list[Positions], ends: list[Positions]) -> Iterator[pa.Array]:
    """The texts of each value: all values and what is between them are strings that follow each other."""
    each = 2 * len(starts)
    bounds = np.empty(len(lines) * each + 1, np.int32)
    for number, (start, end) in enumerate(zip(starts, ends)):
        bounds[2 * number : -1 : each] = start
        bounds[2 * number + 1 : -1 : each] = end
    bounds[-1] = ends[-1][-1]
    pieces = pa.Array.from_buffers(pa.string(), len(bounds) - 1, [None, pa.py_buffer(bounds), data])
    for number in range(len(starts)):
        yield pieces.take(pa.array(np.arange(2 * number, len(pieces), each, dtype=np.int32)))


def _table(
    schema: pa.Schema, texts: Mapping[Path, pa.Array], quoted: set[Path], record: Mapping[str, Any], rows: int
) -> pa.Table | None:
    """The columns in their types; None when a value is not plainly one of its type."""

    def column(field: pa.Field, path: Path) -> pa.Array | None:
        if path in texts:
            return _typed(texts[path], field.type, quoted=path in quoted)
        if not pa.types.is_struct(field.type) or field.name not in record:
            return pa.nulls(rows, field.type)
        inner = [column(child, (*path, child.name)) for child in field.type]
        if any(one is None for one in inner):
            return None
        return pa.StructArray.from_arrays(inner, fields=list(field.type)) if inner else None

    columns = [column(field, (field.name,)) for field in schema]
    return None if any(one is None for one in columns) else pa.table(columns, schema=schema)


def _typed(texts: pa.Array, type_: pa.DataType, *, quoted: bool) -> pa.Array | None:
    if quoted:
        return texts if pa.types.is_string(type_) else None
    missing = pc.equal(texts, "null")
    if pc.any(missing).as_py():
        texts = pc.if_else(missing, pa.scalar(None, pa.string()), texts)
    if texts.null_count == len(texts):
        return pa.nulls(len(texts), type_)
    if pa.types.is_boolean(type_):
        allowed = pc.is_in(texts, value_set=pa.array(["true", "false", None]))
        return pc.equal(texts, "true") if pc.all(allowed).as_py() else None
    if not (pa.types.is_integer(type_) or pa.types.is_floating(type_)):
        return None
    if not _are_numbers(texts, whole=pa.types.is_integer(type_)):
        return None
    try:
        return texts.cast(type_)
    except pa.ArrowInvalid:
        return None


def _are_numbers(texts: pa.Array, *, whole: bool) -> bool:
    """Whether each text is a number as JSON writes them, without an exponent. Nulls are none."""
    if not texts.null_count and _are_plain_numbers(texts, whole=whole):
        return True
    return bool(pc.all(pc.match_substring_regex(texts, _WHOLE if whole else _DECIMAL)).as_py())


def _are_plain_numbers(texts: pa.Array, *, whole: bool) -> bool:
    """The same for the most usual ones, told without a pattern: digits, and in each the same one point."""
    _, offsets, data = texts.buffers()
    edges = np.frombuffer(offsets, np.int32)[texts.offset : texts.offset + len(texts) + 1]
    digits = np.frombuffer(data, np.uint8)[: edges[-1]]
    starts, lengths = edges[:-1], np.diff(edges)
    if not bool(lengths.all()):
        return False
    points = starts + lengths
    if not whole:
        found = np.flatnonzero(digits[edges[0] :] == ord(".")) + edges[0]
        if len(found) != len(texts) or bool((found <= starts).any() or (found >= points - 1).any()):
            return False
        points = found
    others = 0 if whole else len(texts)
    if np.count_nonzero((digits[edges[0] :] - ord("0")) < 10) != int(edges[-1] - edges[0]) - others:
        return False
    # No number begins with a zero that another digit follows.
    return not bool(((digits[starts] == ord("0")) & (points - starts > 1)).any())
