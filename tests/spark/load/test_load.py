"""Loads on Spark: what has no twin in process. DataFrames, retries, speculation, failures, stable row ids, progress."""

from __future__ import annotations

import json
import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from omnigraph.errors import BadRequest, SparkJobFailed, ValidationFailed
from omnigraph.ledger.snapshots import table_of
from omnigraph.ledger.store import GraphStore, create_store
from omnigraph.spark.session.job_end import KILL_MARGIN, end_job
from omnigraph.spark.session.progress import run_job
from omnigraph.write.progress import Progress

pytestmark = pytest.mark.spark

SCHEMA = """
node Person { slug: String @key  age: I32?  big: U64?  score: F64? }
edge Knows: Person -> Person { since: Date? }
"""


@pytest.fixture
def store(tmp_path: Path) -> GraphStore:
    return create_store(str(tmp_path / "graph.omni"), SCHEMA)


@pytest.fixture
def small_splits(monkeypatch: pytest.MonkeyPatch) -> None:
    from omnigraph.spark.load import load_splits

    monkeypatch.setattr(load_splits, "SMALLEST_SPLIT", 12_000)


@pytest.fixture
def small_buckets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys of the smallest input are checked in several tasks."""
    from omnigraph.spark.load import load_input

    monkeypatch.setattr(load_input, "BUCKET_BYTES", 8)


def write_people(path: Path, count: int = 300, start: int = 0) -> str:
    rows = [{"type": "Person", "data": {"slug": f"p{n}", "age": n % 90}} for n in range(start, start + count)]
    edges = [{"edge": "Knows", "from": f"p{start}", "to": f"p{n}"} for n in range(start, start + count, 7)]
    path.write_text("".join(json.dumps(row) + "\n" for row in [*rows, *edges]))
    return str(path)


def load(spark: Any, store: GraphStore, data: Any, **options: Any) -> Any:
    from omnigraph.spark.load.load import load as load_on_spark

    return load_on_spark(spark, store, data, **options)


def table(store: GraphStore, table_key: str, *columns: str, branch: str = "main") -> list[dict[str, Any]]:
    pin = store.snapshot(branch=branch).pin(table_key)
    return store.tables.scan_table(table_of(pin), columns=list(columns), order_by=["id"]).to_pylist()


def data_files(store: GraphStore) -> set[str]:
    root = Path(store.root.path)
    return {str(path.relative_to(root)) for kind in ("nodes", "edges") for path in (root / kind).rglob("*.lance")}


def referenced_files(store: GraphStore) -> set[str]:
    found = set()
    for pin in store.snapshot().tables.values():
        for fragment in store.tables.handles.at(table_of(pin)).get_fragments():
            found |= {f"{pin.location}/data/{file.path}" for file in fragment.metadata.files}
    return found


@contextmanager
def worker_environment(spark: Any, **variables: str) -> Iterator[None]:
    environment = spark.sparkContext.environment
    environment.update(variables)
    try:
        yield
    finally:
        for name in variables:
            environment.pop(name)


def test_a_frame_is_loaded_with_its_columns_named(spark: Any, store: GraphStore) -> None:
    people = spark.createDataFrame(
        [(f"p{n}", n, Decimal(2**64 - 1 - n)) for n in range(20)], "slug string, years int, big decimal(20,0)"
    )
    result = load(spark, store, people, mode="append", type="Person", columns={"years": "age"})
    assert result.engine == "spark"
    assert [(t.table_key, t.rows_loaded) for t in result.tables] == [("node:Person", 20)]
    edges = spark.createDataFrame([("p1", "p2"), ("p2", "p3")], "a string, b string")
    load(spark, store, edges, mode="append", type="Knows", src="a", dst="b")
    assert table(store, "node:Person", "id", "age", "big")[3] == {"id": "p11", "age": 11, "big": 2**64 - 12}
    assert sorted((r["src"], r["dst"]) for r in table(store, "edge:Knows", "id", "src", "dst")) == [
        ("p1", "p2"),
        ("p2", "p3"),
    ]


def test_a_graph_made_anew_at_the_same_place_is_not_taken_for_the_old_one(spark: Any, tmp_path: Path) -> None:
    from omnigraph.spark.source.datasource import to_spark

    for turn in range(3):
        shutil.rmtree(tmp_path / "again", ignore_errors=True)
        store = create_store(str(tmp_path / "again"), f"node Person {{ slug: String @key  extra{turn}: I32? }}")
        frame = spark.createDataFrame([(f"p{turn}", turn)], f"slug string, extra{turn} int")
        load(spark, store, frame, mode="merge", type="Person")
        load(spark, store, frame, mode="merge", type="Person")
        rows = to_spark(spark, store, "Person").collect()
        assert [(row.slug, row[f"extra{turn}"]) for row in rows] == [(f"p{turn}", turn)]


def test_ends_are_looked_up_among_the_nodes_of_today(spark: Any, store: GraphStore) -> None:
    """Workers keep the ids of nodes from load to load: those of the version that is asked about, not of another."""
    edges = [
        spark.createDataFrame([(f"p{n}", f"p{n + shift}") for n in range(20)], "a string, b string").coalesce(1)
        for shift in (0, 1)
    ]
    for people in (20, 21):
        rows = [(f"p{n}",) for n in range(people - 1 if people == 21 else 0, people)]
        load(spark, store, spark.createDataFrame(rows, "slug string"), mode="append", type="Person")
        load(spark, store, edges[0], mode="append", type="Knows", src="a", dst="b")
        if people == 20:
            with pytest.raises(ValidationFailed, match="p20"):
                load(spark, store, edges[1], mode="append", type="Knows", src="a", dst="b")
    load(spark, store, edges[1], mode="append", type="Knows", src="a", dst="b")
    assert len(table(store, "edge:Knows", "id")) == 60


def test_a_frame_needs_a_type_and_columns_that_mean_something(spark: Any, store: GraphStore) -> None:
    frame = spark.createDataFrame([("x",)], "slg string")
    with pytest.raises(BadRequest, match="name it with type="):
        load(spark, store, frame, mode="append")
    with pytest.raises(BadRequest, match=r"`slg` is no property of Person; did you mean `slug`\?"):
        load(spark, store, frame, mode="append", type="Person")


def test_rows_without_any_column_are_refused(spark: Any, store: GraphStore) -> None:
    """Spark has such frames, and of their rows nothing arrives."""
    rows = spark.range(3).select()
    with pytest.raises(BadRequest, match="frame has no columns"):
        load(spark, store, rows, mode="append", type="Person")
    with pytest.raises(Exception, match="frame has no columns"):
        rows.write.format("omnigraph").option("type", "Person").mode("append").save(store.uri)


def test_a_decimal_is_refused_with_what_to_do(spark: Any, store: GraphStore) -> None:
    frame = spark.range(1).selectExpr("'p1' AS slug", "cast(1.25 AS decimal(10, 2)) AS score")
    with pytest.raises(ValidationFailed, match=r"`score` must be F64.*of type decimal128\(10, 2\); cast it before"):
        load(spark, store, frame, mode="append", type="Person")
    load(spark, store, frame.selectExpr("slug", "double(score) AS score"), mode="append", type="Person")


@pytest.mark.parametrize("name", ["a.b", "a`b", "AGE"])
def test_columns_whose_names_mean_something_to_spark_are_columns_like_others(
    spark: Any, store: GraphStore, name: str
) -> None:
    frame = spark.createDataFrame([("p1", 4, 0.5)], "slug string, age int, other double").toDF("slug", "age", name)
    load(spark, store, frame, mode="append", type="Person", columns={name: "score"})
    assert table(store, "node:Person", "id", "age", "score") == [{"id": "p1", "age": 4, "score": 0.5}]


def test_what_is_refused_before_anything_ran_is_refused_at_once(spark: Any, store: GraphStore) -> None:
    frame = spark.createDataFrame([("x",)], "slg string")
    started = time.monotonic()
    with run_job(spark, "nothing yet") as job:
        end_job(job, were_running=True)
    assert time.monotonic() - started < KILL_MARGIN, "it waited for workers that there are not"
    stream = spark.readStream.format("rate").load().selectExpr("cast(value AS string) AS slug")
    with pytest.raises(BadRequest, match="load_stream takes a streaming one"):
        load(spark, store, stream, mode="append", type="Person")
    with pytest.raises(SparkJobFailed, match=r"planning the frame.*CAST_INVALID_INPUT"):
        load(spark, store, frame.selectExpr("cast('x' AS int) AS age"), mode="append", type="Person")


def test_an_upsert_keeps_the_row_ids_of_updated_rows(
    spark: Any, store: GraphStore, tmp_path: Path, small_buckets: None
) -> None:
    load(spark, store, write_people(tmp_path / "a.jsonl", 50), mode="append")
    columns = ("id", "age", "_rowid", "_row_created_at_version")
    before = {row["id"]: row for row in table(store, "node:Person", *columns)}
    version = store.snapshot().pin("node:Person").version
    frame = spark.createDataFrame([("p7", 1000), ("new", 1), ("p9", 9)], "slug string, age int")
    result = load(spark, store, frame, mode="merge", type="Person")
    after = {row["id"]: row for row in table(store, "node:Person", *columns)}
    assert result.rows_loaded == 3
    assert after["p7"] == {**before["p7"], "age": 1000}
    assert after["new"]["_row_created_at_version"] == version + 1
    assert {key: row for key, row in after.items() if key not in ("p7", "new")} == {
        key: row for key, row in before.items() if key != "p7"
    }


def test_a_task_that_fails_after_writing_doubles_no_row(
    spark: Any, store: GraphStore, tmp_path: Path, small_splits: None
) -> None:
    data = write_people(tmp_path / "a.jsonl")
    with worker_environment(spark, OMNIGRAPH_FAILPOINTS="spark.load.written.first=raise"):
        result = load(spark, store, data, mode="append")
    assert result.rows_loaded == 343
    assert len(table(store, "node:Person", "id")) == 300
    assert data_files(store) == referenced_files(store)


def test_a_killed_worker_doubles_no_row_and_leaves_no_file(
    spark: Any, store: GraphStore, tmp_path: Path, small_splits: None
) -> None:
    data = write_people(tmp_path / "a.jsonl")
    with worker_environment(spark, OMNIGRAPH_FAILPOINTS="spark.load.written.first=kill"):
        load(spark, store, data, mode="append")
    assert len(table(store, "node:Person", "id")) == 300
    assert len(table(store, "edge:Knows", "id")) == 43
    assert data_files(store) == referenced_files(store)


def test_a_merge_with_failing_tasks_doubles_no_row(
    spark: Any, store: GraphStore, tmp_path: Path, small_splits: None
) -> None:
    load(spark, store, write_people(tmp_path / "a.jsonl", 100), mode="append")
    with worker_environment(spark, OMNIGRAPH_FAILPOINTS="spark.load.written.first=raise"):
        load(spark, store, write_people(tmp_path / "b.jsonl", 120, start=50), mode="merge")
    assert len(table(store, "node:Person", "id")) == 170
    assert data_files(store) >= referenced_files(store)


def test_a_load_whose_tasks_always_fail_leaves_nothing(spark: Any, store: GraphStore, tmp_path: Path) -> None:
    head = store.snapshot().head
    with (
        worker_environment(spark, OMNIGRAPH_FAILPOINTS="spark.load.written=raise"),
        pytest.raises(SparkJobFailed, match=r"while decoding, checking and writing: .*a\.jsonl: FailpointError: "),
    ):
        load(spark, store, write_people(tmp_path / "a.jsonl"), mode="append")
    assert store.snapshot().head == head
    assert data_files(store) == set()
    assert load(spark, store, write_people(tmp_path / "a.jsonl"), mode="append").rows_loaded == 343


def test_a_cancelled_load_leaves_nothing_even_of_tasks_that_write_on(
    spark: Any, store: GraphStore, tmp_path: Path
) -> None:
    data = write_people(tmp_path / "a.jsonl")
    failures: list[BaseException] = []

    def work() -> None:
        try:
            load(spark, store, data, mode="append")
        except BaseException as failure:
            failures.append(failure)

    with worker_environment(spark, OMNIGRAPH_FAILPOINTS="spark.load.before_write=sleep:1;spark.load.written=sleep:9"):
        thread = threading.Thread(target=work)
        thread.start()
        while not spark.sparkContext.statusTracker().getActiveJobsIds():
            time.sleep(0.02)
        time.sleep(0.5)
        spark.sparkContext.cancelAllJobs()
        thread.join()
    assert [type(failure) for failure in failures] == [SparkJobFailed]
    time.sleep(1.5)
    assert data_files(store) == set()


def test_a_refused_load_leaves_no_fragment(spark: Any, store: GraphStore, tmp_path: Path, small_splits: None) -> None:
    data = Path(write_people(tmp_path / "a.jsonl"))
    data.write_text(data.read_text() + '{"edge": "Knows", "from": "p1", "to": "nobody"}\n')
    with pytest.raises(ValidationFailed) as caught:
        load(spark, store, str(data), mode="append", branch="try", from_="main")
    (violation,) = caught.value.violations
    assert (violation.source, violation.record, violation.kind) == (str(data), 344, "missing_endpoint")
    assert data_files(store) == set()
    assert store.refs.get("try") is None


def test_the_callback_hears_of_records_and_bytes(spark: Any, store: GraphStore, tmp_path: Path) -> None:
    seen: list[Progress] = []
    data = write_people(tmp_path / "a.jsonl")
    load(spark, store, data, mode="append", progress=seen.append)
    assert seen[-1].finished
    assert seen[-1].records == 343
    assert seen[-1].bytes == Path(data).stat().st_size


def test_a_load_does_not_hold_the_files_of_other_writers_for_leftovers(
    spark: Any, store: GraphStore, tmp_path: Path, small_splits: None
) -> None:
    with store.leases.acquire("writer-somebody", "another writer"):
        other = Path(store.root.path) / "nodes" / "n1" / "data" / "of-another-writer.lance"
        other.parent.mkdir(parents=True, exist_ok=True)
        other.write_bytes(b"not published yet")
        with worker_environment(spark, OMNIGRAPH_FAILPOINTS="spark.load.written.first=raise"):
            load(spark, store, write_people(tmp_path / "a.jsonl"), mode="append")
        assert other.exists()
