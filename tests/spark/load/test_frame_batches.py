"""Rows of frames that go to Python tasks in counted batches: the same rows, the settings of the session, and what
becomes of rows that are too large for it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import omnigraph as og
from omnigraph.errors import SparkJobFailed
from omnigraph.ledger.store import open_store
from omnigraph.spark.load.frame_batches import (
    LARGEST_ROW,
    ROWS,
    can_be_counted,
    counted_batches,
    read_batches,
    settings_for_tasks,
)
from omnigraph.spark.load.load_input import stored_batches
from omnigraph.write.decode.column_batches import BYTES_PER_BATCH
from tests.spark.failures.graph_files import left_over

pytestmark = pytest.mark.spark

SCHEMA = "node P { slug: String @key  n: I64?  text: String? }"


def batches_of(frame: Any) -> list[pa.RecordBatch]:
    messages, schema = counted_batches(frame)

    def read(found: Iterator[bytes]) -> Iterator[bytes]:
        for batch in read_batches(found, schema):
            yield _as_stream(batch)

    return [pa.ipc.open_stream(data).read_next_batch() for data in messages.mapPartitions(read).collect()]


def _as_stream(batch: pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue())


@pytest.mark.parametrize("zone", ["UTC", "Asia/Kathmandu"])
def test_batches_have_the_rows_of_the_frame(spark: Any, zone: str) -> None:
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        frame = spark.range(0, 2 * ROWS + 5, 1, 2).selectExpr(
            "id",
            "if(id % 3 = 0, null, concat('text ', id)) AS text",
            "id % 2 = 0 AS flag",
            "date_add(date'2020-02-28', cast(id % 400 AS int)) AS day",
            "timestamp_seconds(id * 3601) AS moment",
            "cast('2020-03-04 05:06:07' AS timestamp_ntz) AS local",
            "cast(id AS decimal(20, 0)) AS wide",
            "cast(id AS double) / 3 AS real",
            "if(id % 5 = 0, null, array(id, null, id + 1)) AS numbers",
            "array(cast(id AS float)) AS vector",
        )
        expected = [row.asDict() for row in frame.collect()]
        found = batches_of(frame)
    finally:
        spark.conf.unset("spark.sql.session.timeZone")
    assert max(batch.num_rows for batch in found) == ROWS
    rows = [row for batch in found for row in batch.to_pylist()]
    assert all(row["moment"].utcoffset().total_seconds() == 0 for row in rows)
    # Spark gives moments without a zone, in that of this process.
    as_instants = [row | {"moment": row["moment"].astimezone().timestamp()} for row in expected]
    assert [row | {"moment": row["moment"].timestamp()} for row in rows] == as_instants


def test_a_large_row_is_not_handed_over(spark: Any) -> None:
    half = LARGEST_ROW // 2
    frame = spark.range(9).selectExpr(
        "id",
        f"repeat('x', {half}) AS a",
        f"if(id = 7, repeat('é', {half // 2} + 1), null) AS b",
        "cast(null AS array<int>) AS c",
    )
    with pytest.raises(Exception, match="LargeRow"):
        batches_of(frame)
    found = batches_of(frame.where("id <> 7"))
    assert sum(batch.num_rows for batch in found) == 8
    assert {name for batch in found for name in batch.schema.names} == {"id", "a", "b", "c"}
    numbers = spark.range(1).selectExpr(f"array_repeat(1.5D, {LARGEST_ROW // 8} + 1) AS vector")
    with pytest.raises(Exception, match="LargeRow"):
        batches_of(numbers)


def test_the_texts_of_a_large_row_do_not_leave_java(spark: Any) -> None:
    messages, _ = counted_batches(spark.range(0, 50, 1, 1).selectExpr("id", "repeat('x', 1000000) AS text"))
    [size] = messages.map(len).collect()
    assert size < 10_000


@pytest.mark.parametrize(
    ("columns", "counted"),
    [
        ("id bigint, text string, day date, moment timestamp, amount decimal(10,2), flag boolean", True),
        ("vector array<float>, days array<date>", True),
        ("photo binary", False),
        ("tags array<string>", False),
        ("matrix array<array<float>>", False),
        ("point struct<x: int>", False),
        ("counts map<string, int>", False),
        ("span interval day to second", False),
    ],
)
def test_what_can_be_counted(spark: Any, columns: str, counted: bool) -> None:
    assert can_be_counted(spark.createDataFrame([], columns)) is counted


@pytest.mark.parametrize("name", ["maxBytesPerBatch", "maxRecordsPerBatch"])
def test_what_the_session_says_itself_of_batches_stands(spark: Any, name: str) -> None:
    setting = f"spark.sql.execution.arrow.{name}"
    spark.conf.set(setting, "77")
    try:
        assert not can_be_counted(spark.range(3))
    finally:
        spark.conf.unset(setting)
    assert can_be_counted(spark.range(3))


def test_tasks_hear_of_the_settings_of_the_session_and_the_thread_keeps_its_own(spark: Any) -> None:
    context = spark.sparkContext

    def told(_: Any) -> Iterator[tuple[str | None, str | None]]:
        from pyspark import TaskContext

        task = TaskContext.get()
        yield task.getLocalProperty("spark.sql.session.timeZone"), task.getLocalProperty("of.the.thread")

    def in_a_task() -> Any:
        return context.range(1, numSlices=1).mapPartitions(told).collect()[0]

    spark.conf.set("spark.sql.session.timeZone", "Asia/Kathmandu")
    context.setLocalProperty("of.the.thread", "mine")
    try:
        with settings_for_tasks(spark):
            assert in_a_task() == ("Asia/Kathmandu", "mine")
        assert in_a_task() == (None, "mine")
    finally:
        spark.conf.unset("spark.sql.session.timeZone")
        context.setLocalProperty("of.the.thread", None)


def planned_queries(spark: Any) -> int:
    return int(spark._jsparkSession.sharedState().statusStore().executionsCount())


def test_a_frame_is_loaded_without_a_query(spark: Any, tmp_path: Path) -> None:
    graph = og.init(tmp_path / "graph", schema=SCHEMA)
    frame = spark.range(0, 3 * ROWS, 1, 3).selectExpr("concat('p', id) slug", "id n")
    before = planned_queries(spark)
    result = graph.load(frame, type="P", mode="append", engine="spark")
    assert planned_queries(spark) == before
    assert result.metrics is not None
    assert result.rows_loaded == 3 * ROWS
    assert result.metrics.records == 3 * ROWS
    found = graph.query("query q() { match { $p: P } return { count($p) as many, sum($p.n) as total } }").rows()
    assert found == [{"many": 3 * ROWS, "total": sum(range(3 * ROWS))}]


def test_rows_that_turn_out_large_are_weighed_and_loaded_once(spark: Any, tmp_path: Path) -> None:
    """The large row is in the last partition: others have been written by the time it is met."""
    graph = og.init(tmp_path / "graph", schema=SCHEMA)
    long = f"if(id = 2999, repeat('x', {LARGEST_ROW} + 1), 'short') AS text"
    frame = spark.range(0, 3000, 1, 6).selectExpr("concat('p', id) slug", long)
    result = graph.load(frame, type="P", mode="append", engine="spark")
    assert result.metrics is not None
    assert result.rows_loaded == 3000
    assert result.metrics.records == 3000
    question = 'query q() { match { $p: P { slug: "p2999" } } return { length($p.text) as long } }'
    assert graph.query(question).rows() == [{"long": LARGEST_ROW + 1}]
    with open_store(str(tmp_path / "graph")) as store:
        assert left_over(store) == []


def test_frames_of_any_plan_are_handed_over(spark: Any, tmp_path: Path) -> None:
    """Stages before the last one, what is sent to all tasks, columns made by Python, and partitions without rows."""
    from pyspark.sql import functions as f

    graph = og.init(tmp_path / "graph", schema=SCHEMA)
    numbers = spark.range(0, 500, 1, 4)
    twice = f.udf(lambda number: 2 * number, "bigint")
    names = spark.range(0, 10).select(
        (f.col("id") % 10).alias("last"), f.format_string("ends in %d", "id").alias("text")
    )
    frame = (
        numbers.select("id", twice("id").alias("n"), (f.col("id") % 10).alias("last"))
        .join(f.broadcast(names), "last")
        .repartition(7, "text")
        .select(f.concat(f.lit("p"), "id").alias("slug"), "n", "text")
    )
    graph.load(frame, type="P", mode="append", engine="spark")
    rows = graph.query("query q() { match { $p: P } return { $p.slug, $p.n, $p.text } order { $p.n } }").rows()
    assert [tuple(row.values()) for row in rows] == [(f"p{n}", 2 * n, f"ends in {n % 10}") for n in range(500)]


def test_what_fails_in_a_step_of_the_caller_is_told(spark: Any, tmp_path: Path) -> None:
    from pyspark.sql import functions as f

    graph = og.init(tmp_path / "graph", schema=SCHEMA)
    broken = f.udf(lambda number: 1 // (number - 5), "bigint")
    frame = spark.range(9).select(f.concat(f.lit("p"), "id").alias("slug"), broken("id").alias("n"))
    with pytest.raises(SparkJobFailed, match=r"ZeroDivisionError.*Nothing was published"):
        graph.load(frame, type="P", mode="append", engine="spark")
    assert graph.snapshot().pin("node:P").row_count == 0


def test_batches_are_put_together_up_to_so_many_rows_or_bytes() -> None:
    small = pa.RecordBatch.from_pydict({"n": list(range(10))})
    assert [batch.num_rows for batch in stored_batches([small] * 5, rows=20)] == [20, 20, 10]
    large = pa.RecordBatch.from_pydict({"n": pa.nulls(BYTES_PER_BATCH // 12, pa.int64())})
    assert [batch.num_rows for batch in stored_batches([large] * 3, rows=1 << 40)] == [
        2 * large.num_rows,
        large.num_rows,
    ]
