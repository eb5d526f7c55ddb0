"""What tasks of a load pass on: keys come back as they were sent, and equal values go to one bucket."""

from __future__ import annotations

import os
import subprocess
import sys

import pyarrow as pa
import pytest

from omnigraph.spark.load.load_input import stored_batches
from omnigraph.spark.load.load_messages import bucket_of, by_bucket, keys_from_bytes, keys_to_bytes
from omnigraph.write.validate.key_changes import RECORD, SOURCE

SCHEMA = pa.schema(
    [("id", pa.string()), ("src", pa.string()), (SOURCE, pa.dictionary(pa.int32(), pa.string())), (RECORD, pa.int64())]
)


def keys(ids: list[str | None], sources: list[str | None], first: int) -> pa.Table:
    ends = [f"end {n}" for n in range(len(ids))]
    columns = [
        pa.array(ids, pa.string()),
        pa.array(ends, pa.string()),
        pa.array(sources, pa.string()).dictionary_encode(),
        pa.array(range(first, first + len(ids)), pa.int64()),
    ]
    return pa.table(columns, schema=SCHEMA)


@pytest.mark.parametrize(
    "given",
    [
        keys(["a", None, "c"], ["x", "x", "x"], 1),
        keys([None, None, None], ["x", "x", "x"], 1),
        keys([None, None], ["x", "y"], 1),
        keys([None, None], [None, None], 2**40),
        keys([], [], 1),
    ],
    ids=["some ids", "no ids", "two sources", "no source and large numbers", "nothing"],
)
def test_keys_come_back_as_they_were_sent(given: pa.Table) -> None:
    back = keys_from_bytes(keys_to_bytes(given), SCHEMA)
    assert back.schema == SCHEMA
    assert back.to_pylist() == given.to_pylist()


def test_what_says_nothing_is_not_sent() -> None:
    many = keys([None] * 10_000, ["x"] * 10_000, 1)
    assert len(keys_to_bytes(many)) < many.nbytes * 0.75


MOMENTS = pa.chunked_array([pa.array([86_400_000_000 * day for day in range(20)], pa.timestamp("us", "UTC"))])


def test_a_moment_goes_to_the_same_bucket_on_machines_of_all_zones() -> None:
    code = (
        "from tests.spark.load.test_messages import MOMENTS\n"
        "from omnigraph.spark.load.load_messages import bucket_of\n"
        "print(bucket_of(MOMENTS, 30_000).tolist())"
    )
    elsewhere = {**os.environ, "TZ": "Asia/Tokyo"}
    told = subprocess.run([sys.executable, "-c", code], env=elsewhere, capture_output=True, text=True, check=True)
    assert told.stdout.strip() == str(bucket_of(MOMENTS, 30_000).tolist())


def test_equal_values_go_to_one_bucket_in_their_order() -> None:
    table = pa.table({"value": [f"v{n % 50}" for n in range(1000)] + [None], "row": range(1001)})
    parts = dict(by_bucket(table, "value", 7))
    where: dict[str, set[int]] = {}
    for bucket, part in parts.items():
        assert part["row"].to_pylist() == sorted(part["row"].to_pylist())
        for value in part["value"].to_pylist():
            where.setdefault(value, set()).add(bucket)
    assert sum(part.num_rows for part in parts.values()) == 1000
    assert {len(buckets) for buckets in where.values()} == {1}
    assert len(parts) == 7


def test_small_batches_of_spark_are_put_together() -> None:
    batches = [pa.record_batch({"n": pa.array([number] * 3)}) for number in range(5)]
    assert [batch["n"].to_pylist() for batch in stored_batches(batches, 6)] == [
        [0, 0, 0, 1, 1, 1],
        [2, 2, 2, 3, 3, 3],
        [4, 4, 4],
    ]
    assert list(stored_batches([], 6)) == []
