"""Messages between the tasks of a load: the same whichever way they go, and without a query where they are few."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import omnigraph as og
from omnigraph.spark.load.load_messages import Kind, Message
from omnigraph.spark.load.message_flow import from_frame, from_numbers, from_payloads, payloads_of, per_bucket

pytestmark = pytest.mark.spark
BUCKETS = 3


def sent(number: int, payload: bytes = b"") -> Iterator[Message]:
    for bucket in range(BUCKETS):
        yield Message(bucket, Kind.IDS, f"node:P{number}/own", number, payload + bytes([number, bucket]))


def together(messages: Iterator[Message]) -> Iterator[Message]:
    found = sorted((one.bucket, one.kind, one.subject, one.position, one.payload) for one in messages)
    if found:
        yield Message(0, Kind.REPORT, "", 0, repr(found).encode())


def expected(payload: bytes = b"") -> list[bytes]:
    everything = [message for number in range(4) for message in sent(number, payload)]
    parts = [together(iter([one for one in everything if one.bucket == bucket])) for bucket in range(BUCKETS)]
    return sorted(message.payload for part in parts for message in part)


@pytest.mark.parametrize("few", [True, False])
def test_a_bucket_gets_what_all_tasks_sent_to_it(spark: Any, few: bool) -> None:
    numbered = from_numbers(spark, 4, sent, few=few)
    assert sorted(payloads_of(per_bucket(numbered, BUCKETS, together))) == expected()
    given = from_payloads(spark, [b"x"] * 4, sent, few=few)
    assert sorted(payloads_of(per_bucket(given, BUCKETS, together))) == expected(b"x")


def test_a_frame_sends_the_same(spark: Any) -> None:
    def send(batches: Iterator[pa.RecordBatch]) -> Iterator[Message]:
        for batch in batches:
            for number in batch.column("id").to_pylist():
                yield from sent(number)

    flow = from_frame(spark.range(0, 4, 1, 2), send)
    assert sorted(payloads_of(per_bucket(flow, BUCKETS, together))) == expected()


@pytest.mark.parametrize("mode", ["append", "merge"])
def test_a_small_load_on_one_machine_plans_no_query(spark: Any, tmp_path: Path, mode: str) -> None:
    source = tmp_path / "in.jsonl"
    source.write_text("".join(json.dumps({"type": "P", "data": {"k": f"{n}"}}) + "\n" for n in range(9)))
    graph = og.init(tmp_path / "graph", schema="node P { k: String @key }")
    queries = spark._jsparkSession.sharedState().statusStore()
    before = queries.executionsCount()
    graph.load(source, mode=mode, engine="spark")
    graph.load([{"type": "P", "data": {"k": "ten"}}], mode="append", engine="spark")
    assert queries.executionsCount() == before
    assert len(graph.query("query q() { match { $p: P } return { $p.k } }")) == 10
