"""What a caller loads, as JSON lines on their way to a server: files, bytes, rows, Arrow, frames."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator, Mapping
from os import PathLike
from typing import Any

import orjson

from omnigraph.errors import BadRequest

_PIECE = 1 << 20


def sent(
    data: Any, *, type: str | None, src: str | None, dst: str | None, columns: Mapping[str, str] | None
) -> Iterator[bytes]:
    """The lines, a piece at a time."""
    files = _files(data)
    if files is not None:
        if type is not None:
            raise BadRequest("files are sent to a server as JSON lines, which say their type themselves")
        return _of_files(files)
    if isinstance(data, bytes | bytearray | memoryview):
        return iter([bytes(data)])
    if hasattr(data, "read"):
        return iter(lambda: _as_bytes(data.read(_PIECE)), b"")
    return _pieces(_lines(_rows(data), type, src, dst, columns or {}))


def encoded(value: Any) -> bytes:
    """JSON of what Python gives: dates and times as text, bytes as base64, numbers of NumPy as numbers."""
    return orjson.dumps(value, option=orjson.OPT_UTC_Z | orjson.OPT_SERIALIZE_NUMPY, default=_plain)


def _plain(value: Any) -> Any:
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
    if hasattr(data, "__arrow_c_stream__"):
        import pyarrow as pa

        reader = pa.RecordBatchReader.from_stream(data)
        return (row for batch in reader for row in batch.to_pylist())
    if isinstance(data, Iterable) and not isinstance(data, Mapping):
        return data
    raise BadRequest(f"a load does not know how to send a {type(data).__name__}")


def _lines(
    rows: Iterable[Mapping[str, Any]], type: str | None, src: str | None, dst: str | None, columns: Mapping[str, str]
) -> Iterator[bytes]:
    for row in rows:
        if not isinstance(row, Mapping):
            raise BadRequest(f"a row to load is a mapping, not a {row.__class__.__name__}")
        record: Mapping[str, Any] = row
        if type is not None:
            ends = [name for name in (src, dst) if name is not None]
            values = {
                columns.get(key, key): value for key, value in row.items() if key not in ends and value is not None
            }
            record = {"type": type, "data": values}
            if src is not None and dst is not None:
                record = {"edge": type, "from": row[src], "to": row[dst], "data": values}
        yield encoded(record) + b"\n"


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
