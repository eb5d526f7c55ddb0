"""Batches of rows that Spark hands to Python: how large they are, and whose word on that counts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import omnigraph as og
from omnigraph.spark import unweighed_batches as module
from omnigraph.spark.unweighed_batches import ROWS, has_small_rows, unweighed_batches

pytestmark = pytest.mark.spark

BYTES = "spark.sql.execution.arrow.maxBytesPerBatch"
RECORDS = "spark.sql.execution.arrow.maxRecordsPerBatch"


def largest_batch(frame: Any) -> int:
    def sizes(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield pa.RecordBatch.from_pydict({"rows": [batch.num_rows]})

    return max(row["rows"] for row in frame.mapInArrow(sizes, "rows bigint").collect())


def test_batches_are_counted_only_inside_the_block(spark: Any) -> None:
    frame = spark.range(0, 20_000, 1, 1)
    before = largest_batch(frame)
    with unweighed_batches(spark):
        assert largest_batch(frame) == ROWS
    assert largest_batch(frame) == before != ROWS
    assert spark.sparkContext.getLocalProperty(BYTES) is None


def test_bytes_are_not_looked_at_inside_the_block(spark: Any) -> None:
    """By what Spark does with them otherwise: it closes a batch that has too many."""
    frame = spark.range(0, 3000, 1, 1).selectExpr("repeat(cast(id as string), 20000) as text")
    weighed = largest_batch(frame)
    assert weighed < 3000  # rows of 80 kB, in batches of 64 MB
    with unweighed_batches(spark):
        assert largest_batch(frame) == 3000


@pytest.mark.parametrize(("name", "value"), [(BYTES, "1k"), (RECORDS, "77")])
def test_what_the_session_says_itself_stands(spark: Any, name: str, value: str) -> None:
    frame = spark.range(0, 20_000, 1, 1)
    spark.conf.set(name, value)
    try:
        with unweighed_batches(spark):
            assert largest_batch(frame) < 200
    finally:
        spark.conf.unset(name)


def test_what_the_thread_had_set_comes_back(spark: Any) -> None:
    context = spark.sparkContext
    context.setLocalProperty(RECORDS, "5")
    try:
        with pytest.raises(ZeroDivisionError), unweighed_batches(spark):
            raise ZeroDivisionError
        assert context.getLocalProperty(RECORDS) == "5"
    finally:
        context.setLocalProperty(RECORDS, None)


@pytest.mark.parametrize(
    ("columns", "small"),
    [
        ("id bigint, text string, day date, moment timestamp, amount decimal(10,2), flag boolean", True),
        ("vector array<float>", True),
        ("photo binary", False),
        ("tags array<string>", False),
        ("matrix array<array<float>>", False),
        ("point struct<x: int>", False),
        ("counts map<string, int>", False),
    ],
)
def test_rows_are_small_by_their_types(spark: Any, columns: str, small: bool) -> None:
    assert has_small_rows(spark.createDataFrame([], columns)) is small


def test_python_steps_of_the_caller_get_the_batches_that_they_always_got(spark: Any) -> None:
    from pyspark.sql import functions as f

    frame = spark.range(3)
    assert has_small_rows(frame.select(f.upper(f.col("id").cast("string"))))
    assert not has_small_rows(frame.mapInArrow(lambda batches: batches, "id bigint"))
    assert not has_small_rows(frame.mapInPandas(lambda frames: frames, "id bigint"))
    assert not has_small_rows(frame.select(f.udf(lambda number: number, "bigint")("id")))
    assert not has_small_rows(frame.select(f.pandas_udf(lambda column: column, "bigint")("id")))
    grouped = frame.groupBy("id").applyInPandas(lambda rows: rows, "id bigint")
    assert not has_small_rows(grouped)


def test_a_load_of_a_frame_that_computes_is_not_weighed(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Appended rows of small types are; a merge sends rows on in large messages, and a blob may be anything."""
    entered: list[Any] = []
    real = module.unweighed_batches

    def noted(session: Any) -> Any:
        entered.append(session)
        return real(session)

    monkeypatch.setattr("omnigraph.spark.load.load_input.unweighed_batches", noted)
    schema = "node P { slug: String @key  n: I64? }\nnode F { slug: String @key  b: Blob? }"
    graph = og.init(str(tmp_path / "g"), schema=schema)
    people = spark.range(3 * ROWS).selectExpr("concat('p', id) slug", "id n")
    graph.load(people, type="P", mode="append", engine="spark")
    assert len(entered) == 1
    graph.load(people.selectExpr("slug", "n + 1 n"), type="P", mode="merge", engine="spark")
    files = spark.range(3).selectExpr("concat('f', id) slug", "cast('x' as binary) b")
    graph.load(files, type="F", mode="append", engine="spark")
    assert len(entered) == 1
    found = graph.query("query q() { match { $p: P } return { count($p) as many, sum($p.n) as total } }").rows()
    assert found == [{"many": 3 * ROWS, "total": sum(range(3 * ROWS)) + 3 * ROWS}]
