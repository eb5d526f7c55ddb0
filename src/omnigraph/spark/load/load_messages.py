"""What the tasks of a load pass on: small values, and Arrow tables as bytes, addressed to a bucket.

A bucket has everything that a rule needs to look at together: rows are sent by the hash of the value that the rule is
about (an id, a unique tuple, the node at the end of an edge). Spark moves a few large blobs, never single rows.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.ledger.values import Snapshot
from omnigraph.schema.catalog import Catalog
from omnigraph.storage.values import TableVersion
from omnigraph.write.decode.inputs import InputOptions

MESSAGE_SCHEMA = "bucket int, kind string, position bigint, payload binary"
_ARROW = pa.schema([("bucket", pa.int32()), ("kind", pa.string()), ("position", pa.int64()), ("payload", pa.binary())])


class Kind(StrEnum):
    """What a message is. All but reports carry Arrow data of one table."""

    REPORT = "report"
    ROWS = "rows"
    IDS = "ids"
    UNIQUE = "unique"
    END = "end"
    UPDATED = "updated"
    SEEN = "seen"


@dataclass(frozen=True)
class LoadContext:
    """Everything that a task needs to know about the load. It pickles, and holds no credentials."""

    uri: str
    catalog: Catalog
    snapshot: Snapshot
    lines: Mapping[str, TableVersion]
    mode: str
    buckets: int
    options: InputOptions = field(default_factory=InputOptions)


@dataclass(frozen=True, slots=True)
class Message:
    """One message. `subject` is a table key, for UNIQUE and END followed by which rule or end: `edge:Knows/src`."""

    bucket: int
    kind: Kind
    subject: str
    position: int
    payload: bytes


def pack(messages: Iterable[Message]) -> Iterator[pa.RecordBatch]:
    """Messages as the batches that Spark moves."""
    for message in messages:
        yield pa.RecordBatch.from_arrays(
            [
                pa.array([message.bucket], pa.int32()),
                pa.array([f"{message.kind.value} {message.subject}"], pa.string()),
                pa.array([message.position], pa.int64()),
                pa.array([message.payload], pa.binary()),
            ],
            schema=_ARROW,
        )


def unpack(batches: Iterable[pa.RecordBatch]) -> Iterator[Message]:
    """The messages that Spark brought."""
    for batch in batches:
        for row in batch.to_pylist():
            kind, _, subject = row["kind"].partition(" ")
            yield Message(row["bucket"], Kind(kind), subject, row["position"], row["payload"])


def to_bytes(table: pa.Table) -> bytes:
    """An Arrow table as bytes."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def from_bytes(data: bytes) -> pa.Table:
    """The table that `to_bytes` was given."""
    return pa.ipc.open_stream(pa.py_buffer(data)).read_all()


def report(value: Any, position: int = 0) -> Message:
    """A value for the driver."""
    return Message(0, Kind.REPORT, "", position, pickle.dumps(value))


def by_bucket(table: pa.Table, column: str, buckets: int) -> Iterator[tuple[int, pa.Table]]:
    """The rows of a table, by the bucket of the value in a column. Rows without a value have no bucket."""
    if table[column].null_count:
        table = table.filter(pc.is_valid(table[column]))
    if not table.num_rows:
        return
    if buckets == 1:
        yield 0, table
        return
    numbers = bucket_of(table[column], buckets)
    order = np.argsort(numbers, kind="stable")
    ordered = table.take(pa.array(order))
    starts = np.searchsorted(numbers[order], np.arange(buckets + 1))
    for bucket in range(buckets):
        if starts[bucket] < starts[bucket + 1]:
            yield bucket, ordered.slice(starts[bucket], starts[bucket + 1] - starts[bucket])


def bucket_of(column: pa.ChunkedArray, buckets: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    """The bucket of each value, the same in every process."""
    connection = _hashing()
    connection.register("given", pa.table({"value": column}))
    numbers = connection.sql(f"select (hash(value::varchar) % {int(buckets)})::bigint as n from given")
    return np.asarray(numbers.to_arrow_table()["n"].to_numpy())


@cache
def _hashing() -> Any:
    """One connection per process: to open one takes longer than to hash a block of values."""
    import duckdb

    return duckdb.connect(config={"threads": 1})
