"""The records of a micro-batch on their way from its tasks to the process that commits it.

They go through the store of the graph and not through the driver: a task puts what it got below `__staging/`, piece by
piece, and tells only where that is. What an attempt left that was not the one that counted is removed with the batch,
or by `cleanup`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import orjson
import pyarrow as pa
import pyarrow.ipc

from omnigraph.ledger.commit.staging_marks import MARKS
from omnigraph.ledger.values import StreamBatch
from omnigraph.storage.objects.objects import ObjectStore

PIECE_BYTES = 32 << 20
"""What a task holds before it puts a piece."""

LINES = ".jsonl"
COLUMNS = ".arrow"


@dataclass(frozen=True, slots=True)
class Piece:
    """One object with records of a batch."""

    path: str
    records: int


def place_of(stream: str) -> str:
    """Where the tasks of a stream put their records."""
    return f"{MARKS}/streams/{quote(stream, safe='')}"


def place_of_run(batch: StreamBatch, run: str) -> str:
    """Where the tasks of one run of a batch put theirs: a driver that is thought to be dead may still be at its own."""
    return f"{place_of(batch.stream)}/{batch.batch:09d}/{quote(run, safe='')}"


def clear(objects: ObjectStore, batch: StreamBatch, run: str) -> None:
    """Remove what a run of a batch has put, and what is left of earlier batches, which nobody can need any more."""
    own, place = f"{place_of_run(batch, run)}/", place_of(batch.stream)
    for entry in objects.list(place):
        number = entry.path.removeprefix(f"{place}/").partition("/")[0]
        if entry.path.startswith(own) or (number.isdigit() and int(number) < batch.batch):
            objects.delete(entry.path)
    objects.remove_empty_folders(place)


def put_lines(objects: ObjectStore, prefix: str, values: Iterable[pa.Array]) -> Iterator[Piece]:
    """Put JSON records, given as text or bytes, as one line each. Blank lines of a file are none, as in a load."""
    lines: list[bytes] = []
    size = number = 0
    for array in values:
        for value in array.to_pylist():
            if value is not None and not value.strip():
                continue
            lines.append(as_line(value))
            size += len(lines[-1])
            if size >= PIECE_BYTES:
                yield _put(objects, f"{prefix}-{number:04d}{LINES}", b"".join(lines), len(lines))
                lines, size, number = [], 0, number + 1
    if lines:
        yield _put(objects, f"{prefix}-{number:04d}{LINES}", b"".join(lines), len(lines))


def as_line(value: str | bytes | None) -> bytes:
    """A record as a line of its own. What is no JSON becomes a string of JSON, so that it stays one record."""
    text = b"null" if value is None else value.encode(errors="replace") if isinstance(value, str) else value
    try:
        orjson.loads(text)
    except ValueError:
        return orjson.dumps(text.decode(errors="replace")) + b"\n"
    # A line end can stand between the parts of a value only, where a blank means the same.
    return text.replace(b"\n", b" ").replace(b"\r", b" ") + b"\n"


def put_columns(objects: ObjectStore, prefix: str, batches: Iterable[pa.RecordBatch]) -> Iterator[Piece]:
    """Put rows of columns, as streams of Arrow."""
    held: list[pa.RecordBatch] = []
    size = number = 0
    for batch in batches:
        if batch.num_rows == 0:
            continue
        held.append(batch)
        size += batch.nbytes
        if size >= PIECE_BYTES:
            yield _put_batches(objects, f"{prefix}-{number:04d}{COLUMNS}", held)
            held, size, number = [], 0, number + 1
    if held:
        yield _put_batches(objects, f"{prefix}-{number:04d}{COLUMNS}", held)


def _put_batches(objects: ObjectStore, path: str, batches: Sequence[pa.RecordBatch]) -> Piece:
    sink = pa.BufferOutputStream()
    with pyarrow.ipc.new_stream(sink, batches[0].schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
    return _put(objects, path, sink.getvalue().to_pybytes(), sum(batch.num_rows for batch in batches))


def _put(objects: ObjectStore, path: str, data: bytes, records: int) -> Piece:
    objects.put(path, data)
    return Piece(path, records)


def fetch(objects: ObjectStore, pieces: Sequence[Piece], directory: Path) -> Path:
    """All records of a batch as one file in a directory, in the order of the pieces."""
    suffix = COLUMNS if pieces[0].path.endswith(COLUMNS) else LINES
    target = directory / f"batch{suffix}"
    if suffix == LINES:
        with target.open("wb") as file:
            for piece in pieces:
                file.write(objects.get(piece.path)[0])
        return target
    with pa.OSFile(str(target), "wb") as file:
        writer: pyarrow.ipc.RecordBatchFileWriter | None = None
        for piece in pieces:
            with pyarrow.ipc.open_stream(objects.get(piece.path)[0]) as reader:
                writer = writer or pyarrow.ipc.new_file(file, reader.schema)
                for batch in reader:
                    writer.write_batch(batch)
        assert writer is not None
        writer.close()
    return target
