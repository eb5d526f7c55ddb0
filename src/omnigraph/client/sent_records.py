"""What a caller loads, as JSON lines on their way to a server: files, bytes, rows, Arrow, frames.

Rows of a named type are sent as they are: the server takes them as `load` takes rows, so that names of columns, ends of
edges and nulls mean the same. What JSON cannot say is refused, never changed.
"""

from __future__ import annotations

import base64
import datetime
import math
from collections.abc import Iterable, Iterator, Mapping
from os import PathLike
from typing import Any

import orjson

from omnigraph.errors import BadRequest

_PIECE = 1 << 20


def sent(data: Any, *, type: str | None, columns: Mapping[str, str] | None) -> Iterator[bytes]:
    """The lines, a piece at a time."""
    files = _files(data)
    if type is not None and (files is not None or isinstance(data, bytes | bytearray | memoryview)):
        raise BadRequest("files and bytes are sent to a server as JSON lines, which say their type themselves")
    if files is not None:
        return _of_files(files)
    if isinstance(data, bytes | bytearray | memoryview):
        return iter([bytes(data)])
    if hasattr(data, "read") and type is None:
        return iter(lambda: _as_bytes(data.read(_PIECE)), b"")
    return _pieces(_lines(_rows(data), columns or {}))


def encoded(value: Any) -> bytes:
    """JSON of what Python gives: dates and times as text, bytes as base64, numbers of NumPy as numbers."""
    _refuse_endless(value)
    try:
        return orjson.dumps(value, option=orjson.OPT_UTC_Z | orjson.OPT_SERIALIZE_NUMPY, default=_plain)
    except orjson.JSONEncodeError as error:
        if isinstance(error.__cause__, BadRequest):
            raise error.__cause__ from None
        raise BadRequest(f"a value cannot be sent to a server: {error}") from None


def _refuse_endless(value: Any) -> None:
    """JSON has no NaN and no infinity; the encoder would write null."""
    if isinstance(value, float):
        if not math.isfinite(value):
            raise BadRequest(f"{value} cannot be sent to a server: NaN and infinity are not allowed")
    elif isinstance(value, Mapping):
        for each in value.values():
            _refuse_endless(each)
    elif isinstance(value, list | tuple):
        for each in value:
            _refuse_endless(each)
    elif hasattr(value, "tolist"):
        _refuse_endless(value.tolist())


def _plain(value: Any) -> Any:
    if isinstance(value, datetime.date):  # of pandas, perhaps with more digits of a second than Python's have
        return value.isoformat()
    if isinstance(value, bytes | bytearray | memoryview):
        return base64.b64encode(bytes(value)).decode()
    if isinstance(value, Mapping):
        return dict(value)
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, tuple | set | frozenset):
        return list(value)
    raise BadRequest(f"a {type(value).__name__} cannot be sent to a server")


def _files(data: Any) -> list[Any] | None:
    from omnigraph.write.decode.files import named_files

    named = isinstance(data, str | PathLike) or (
        isinstance(data, list | tuple) and bool(data) and all(isinstance(one, str | PathLike) for one in data)
    )
    return named_files(data) if named else None


def _of_files(files: list[Any]) -> Iterator[bytes]:
    for file in files:
        with file.open() as stream:
            last = b"\n"
            while piece := stream.read(_PIECE):
                yield piece
                last = piece[-1:]
            if last != b"\n":
                yield b"\n"


def _as_bytes(piece: bytes | str) -> bytes:
    return piece.encode() if isinstance(piece, str) else piece


def _rows(data: Any) -> Iterable[Mapping[str, Any]]:
    from omnigraph.write.decode.inputs import as_arrow

    table = as_arrow(data)
    if table is not None:
        return (row for batch in table.to_batches() for row in batch.to_pylist())
    if isinstance(data, Iterable) and not isinstance(data, Mapping):
        return data
    raise BadRequest(f"a load does not know how to send a {type(data).__name__}")


def _lines(rows: Iterable[Mapping[str, Any]], columns: Mapping[str, str]) -> Iterator[bytes]:
    for row in rows:
        if not isinstance(row, Mapping):
            raise BadRequest(f"a row to load is a mapping, not a {row.__class__.__name__}")
        yield encoded({columns.get(name, name): value for name, value in row.items()}) + b"\n"


def _pieces(lines: Iterator[bytes]) -> Iterator[bytes]:
    held: list[bytes] = []
    size = 0
    for line in lines:
        held.append(line)
        size += len(line)
        if size >= _PIECE:
            yield b"".join(held)
            held, size = [], 0
    yield b"".join(held)
