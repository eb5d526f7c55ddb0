"""A result as bytes: one JSON document, or an Arrow stream whose schema carries what JSON says beside the rows."""

from __future__ import annotations

import io
from collections.abc import Iterator

import pyarrow as pa

from omnigraph.read.result.result import BATCH_ROWS, Result
from omnigraph.server.error_bodies import encoded

ARROW = "application/vnd.apache.arrow.stream"
HEAD = b"omnigraph"
"""The key of the schema's metadata under which a result's name, state and columns stand, as JSON."""


def json_pieces(result: Result) -> Iterator[bytes]:
    """The document, in one piece where the result is small."""
    head = encoded(result.head_json())[:-1] + b',"rows":'
    if len(result) <= BATCH_ROWS:
        yield head + result.to_json().encode() + b"}"
        return
    yield head + b"["
    for start in range(0, len(result), BATCH_ROWS):
        rows = result.part(start, min(start + BATCH_ROWS, len(result))).to_json().encode().strip()[1:-1]
        yield (b"," if start else b"") + rows
    yield b"]}"


def arrow_pieces(result: Result) -> Iterator[bytes]:
    """The stream, a piece for each batch."""
    sink = io.BytesIO()
    schema = result.schema.with_metadata({**(result.schema.metadata or {}), HEAD: encoded(result.head_json())})
    with pa.ipc.new_stream(sink, schema) as writer:
        for batch in result.batches():
            writer.write_batch(batch.replace_schema_metadata(schema.metadata))
            yield _taken(sink)
    yield _taken(sink)


def _taken(sink: io.BytesIO) -> bytes:
    found = sink.getvalue()
    sink.seek(0)
    sink.truncate()
    return found
