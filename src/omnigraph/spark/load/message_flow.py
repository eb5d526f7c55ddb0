"""How messages of a load get from the tasks that send them to those that check them, and reports to the driver.

Where keys are put aside (on a local master) and no rows travel, messages are few and small: they go as an RDD of plain
tuples. Otherwise they go as a frame of Arrow batches, which moves much at a time and holds little of it. To plan and
compile even the smallest query takes a fresh Java five seconds of processor time, three more than an RDD does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from omnigraph.spark.load.load_messages import MESSAGE_SCHEMA, Kind, Message, pack, unpack
from omnigraph.spark.spread import one_partition_each

if TYPE_CHECKING:
    from pyspark import RDD
    from pyspark.sql import DataFrame, SparkSession

Item = TypeVar("Item")
Batches = Iterator[pa.RecordBatch]
Plain = tuple[int, tuple[str, str, int, bytes]]
"""A message as every serializer of Spark takes it: its bucket, and the rest."""

Flow = Any
"""A frame of messages, or an RDD of plain ones: PySpark has no types here."""


def from_numbers(session: SparkSession, count: int, send: Callable[[int], Iterator[Message]], *, few: bool) -> Flow:
    """What is sent by as many tasks, each told its number. `few`: no messages that are many or large."""
    if few:
        numbers = session.sparkContext.range(0, count, 1, count)
        return numbers.mapPartitions(lambda found: chain.from_iterable(_plain(send(number)) for number in found))

    def task(batches: Batches) -> Batches:
        for batch in batches:
            for number in batch.column("id").to_pylist():
                yield from pack(send(number))

    return session.range(0, count, 1, count).mapInArrow(task, MESSAGE_SCHEMA)


def from_payloads(
    session: SparkSession, payloads: Sequence[bytes], send: Callable[[int, bytes], Iterator[Message]], *, few: bool
) -> Flow:
    """What is sent by tasks that each have one of the payloads, with its position."""
    if few:
        numbered = session.sparkContext.parallelize(list(enumerate(payloads)), len(payloads))
        return numbered.mapPartitions(lambda found: chain.from_iterable(_plain(send(*given)) for given in found))

    def task(batches: Batches) -> Batches:
        for batch in batches:
            for row in batch.to_pylist():
                yield from pack(send(row["position"], row["payload"]))

    return one_partition_each(session, payloads).mapInArrow(task, MESSAGE_SCHEMA)


def from_items(items: RDD[Item], send: Callable[[Iterator[Item]], Iterator[Message]]) -> Flow:
    """What the tasks of an RDD make of its items, where messages are few."""
    return items.mapPartitions(lambda found: _plain(send(iter(found))))


def from_frame(frame: DataFrame, send: Callable[[Batches], Iterator[Message]]) -> Flow:
    """What the tasks of a frame make of its rows."""

    def task(batches: Batches) -> Batches:
        yield from pack(send(batches))

    return frame.mapInArrow(task, MESSAGE_SCHEMA)


def per_bucket(flow: Flow, buckets: int, work: Callable[[Iterator[Message]], Iterator[Message]]) -> Flow:
    """What the tasks make of the messages of their buckets."""
    if _is_plain(flow):
        moved = flow.partitionBy(buckets, _own_bucket)
        return moved.mapPartitions(lambda found: _plain(work(_messages(found))))

    def task(batches: Batches) -> Batches:
        yield from pack(work(unpack(batches)))

    return flow.repartitionById(buckets, "bucket").mapInArrow(task, MESSAGE_SCHEMA)


def payloads_of(flow: Flow) -> list[bytes]:
    """What the messages that are left carry, on the driver."""
    if _is_plain(flow):
        return list(flow.map(lambda one: one[1][3]).collect())
    return [bytes(row.payload) for row in flow.select("payload").collect()]


def _is_plain(flow: Flow) -> bool:
    return hasattr(flow, "partitionBy")


def _own_bucket(bucket: int) -> int:
    return bucket


def _plain(messages: Iterable[Message]) -> Iterator[Plain]:
    for one in messages:
        yield one.bucket, (one.kind.value, one.subject, one.position, one.payload)


def _messages(found: Iterable[Plain]) -> Iterator[Message]:
    for bucket, (kind, subject, position, payload) in found:
        yield Message(bucket, Kind(kind), subject, position, payload)
