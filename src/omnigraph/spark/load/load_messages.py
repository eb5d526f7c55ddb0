"""What the tasks of a load pass on: small values, and Arrow tables as bytes, addressed to a bucket.

A bucket has everything that a rule needs to look at together: rows are sent by the hash of the value that the rule is
about (an id, a unique tuple, the node at the end of an edge). Spark moves a few large blobs, never single rows.
"""

from __future__ import annotations

import pickle
import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.embed.provider_settings import EmbeddingSettings
from omnigraph.ledger.values import Snapshot
from omnigraph.schema.catalog import Catalog
from omnigraph.spark.load.key_shelf import FEW_BYTES, KeyFile, brought
from omnigraph.storage.values import TableVersion
from omnigraph.write.decode.inputs import InputOptions
from omnigraph.write.validate.key_changes import RECORD, SOURCE
from omnigraph.write.validate.zeros import one_zero

MESSAGE_SCHEMA = "bucket int, kind string, position bigint, payload binary"
_ONE_SOURCE = b"one source"
_INT32_MAX = 2**31 - 1
_ARROW = pa.schema([("bucket", pa.int32()), ("kind", pa.string()), ("position", pa.int64()), ("payload", pa.binary())])


class Kind(StrEnum):
    """What a message is. All but reports carry Arrow data of one table."""

    REPORT = "report"
    ROWS = "rows"
    IDS = "ids"
    UNIQUE = "unique"
    END = "end"
    UPDATED = "updated"
    GIVEN = "given"
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
    embedding: EmbeddingSettings | None = None
    """What makes vectors in tasks; None when nothing does."""
    shelf: str | None = None
    """The folder in which tasks put keys aside for others; None where they send them through Spark."""

    def sends_little(self, of_small_input: bool) -> bool:
        """Whether all messages of a task together are small: keys lie aside, and a merge sends rows on."""
        return self.shelf is not None and (of_small_input or self.mode != "merge")


def plain_snapshot(snapshot: Snapshot) -> Snapshot:
    """The snapshot in a form that pickles."""
    return Snapshot(
        snapshot.branch, snapshot.manifest_version, snapshot.head, snapshot.schema_digest, dict(snapshot.tables)
    )


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


def from_bytes(data: bytes | pa.Buffer) -> pa.Table:
    """The table that `to_bytes` was given."""
    return pa.ipc.open_stream(data if isinstance(data, pa.Buffer) else pa.py_buffer(data)).read_all()


def keys_to_bytes(keys: pa.Table, file: KeyFile | None = None) -> bytes:
    """Keys with their places, for a message. Many are put into the file, if there is one."""
    lean = _without_the_obvious(keys)
    return to_bytes(lean) if file is None or lean.nbytes <= FEW_BYTES else file.put(lean)


def _without_the_obvious(keys: pa.Table) -> pa.Table:
    """Ids that are all missing go, one source for all rows becomes a note, and small record numbers take half the room.

    Keys are most of what a load sends from task to task.
    """
    if keys.num_rows and "id" in keys.column_names and keys["id"].null_count == keys.num_rows:
        keys = keys.drop_columns(["id"])
    sources = keys[SOURCE].unique() if keys.num_rows else pa.array([], pa.string())
    if len(sources) == 1:
        keys = keys.drop_columns([SOURCE]).replace_schema_metadata({_ONE_SOURCE: pickle.dumps(sources[0].as_py())})
    last = pc.max(keys[RECORD]).as_py()
    if last is not None and last <= _INT32_MAX:
        at = keys.column_names.index(RECORD)
        keys = keys.set_column(at, RECORD, keys[RECORD].cast(pa.int32()))
    return keys


def keys_from_bytes(data: bytes, schema: pa.Schema) -> pa.Table:
    """The keys that `keys_to_bytes` was given, with the columns of `schema`."""
    found = from_bytes(brought(data))
    note = (found.schema.metadata or {}).get(_ONE_SOURCE)
    arrays = []
    for wanted in schema:
        if wanted.name in found.column_names:
            column = found[wanted.name]
            arrays.append(column if column.type == wanted.type else column.cast(wanted.type))
        elif wanted.name == SOURCE and note is not None:
            nothing = pa.repeat(pa.scalar(0, pa.int32()), found.num_rows)
            arrays.append(pa.DictionaryArray.from_arrays(nothing, pa.array([pickle.loads(note)], pa.string())))
        else:
            arrays.append(pa.nulls(found.num_rows, wanted.type))
    return pa.table(arrays, schema=schema)


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
    # Small numbers are sorted by counting, which takes a tenth of the time.
    numbers = bucket_of(table[column], buckets).astype(np.uint16)
    order = np.argsort(numbers, kind="stable")
    ordered = table.take(pa.array(order))
    starts = np.searchsorted(numbers[order], np.arange(buckets + 1))
    for bucket in range(buckets):
        if starts[bucket] < starts[bucket + 1]:
            yield bucket, ordered.slice(starts[bucket], starts[bucket + 1] - starts[bucket])


def bucket_of(column: pa.ChunkedArray, buckets: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    """The bucket of each value, the same in every process."""
    connection = duckdb_connection()
    connection.register("given", pa.table({"value": one_zero(column)}))
    numbers = connection.sql(f"select (hash(value::varchar) % {int(buckets)})::bigint as n from given")
    return np.asarray(numbers.to_arrow_table()["n"].to_numpy())


_own = threading.local()


def duckdb_connection() -> Any:
    """One connection per thread: to open one takes longer than to hash a block of values."""
    if not hasattr(_own, "connection"):
        import duckdb

        _own.connection = duckdb.connect(config={"threads": 1})
        # Moments are hashed by their text, which is that of a zone: the same on every machine.
        _own.connection.execute("set TimeZone = 'UTC'")
    return _own.connection
