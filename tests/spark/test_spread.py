"""Work over executors: results in order, retries give one answer, failures in our words; compaction and indexes."""

from __future__ import annotations

import os
import traceback
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import omnigraph as og
from omnigraph.errors import BadRequest, SparkJobFailed
from omnigraph.spark.session.progress import run_job
from omnigraph.spark.spread import placed, reason_of, spread, told_in_our_words
from omnigraph.spark.stream.load_stream import told
from omnigraph.storage.layout.compaction import CompactionOptions, commit_compaction, plan_compaction, staged_compaction
from omnigraph.storage.layout.indexes import IndexKind, index_state, plan_index, stage_index_segments
from omnigraph.storage.reading.filters import eq
from omnigraph.storage.tables import TableStore
from omnigraph.storage.uri import parse_root
from omnigraph.storage.values import TableVersion

pytestmark = pytest.mark.spark


def test_answers_come_in_the_order_of_the_items(spark: Any) -> None:
    assert spread(spark, lambda n: n * n, list(range(7))) == [0, 1, 4, 9, 16, 25, 36]
    assert spread(spark, lambda n: n, []) == []


def test_a_task_that_failed_once_is_run_again(spark: Any, tmp_path: Path) -> None:
    def flaky(number: int) -> str:
        marker = tmp_path / f"{number}"
        if number == 1 and not marker.exists():
            marker.write_text("failed once")
            raise RuntimeError("first time")
        return f"ok {number}"

    assert spread(spark, flaky, [0, 1, 2]) == ["ok 0", "ok 1", "ok 2"]


def test_a_failure_is_told_in_our_words(spark: Any) -> None:
    def fails(number: int) -> int:
        raise ValueError("the disk is made of cheese")

    with pytest.raises(SparkJobFailed, match="ValueError: the disk is made of cheese"):
        spread(spark, fails, [1])


def test_a_failure_says_for_what_its_job_was(spark: Any) -> None:
    def fails(number: int) -> int:
        raise ValueError("the disk is made of cheese")

    said = r"failed while running `omnigraph sums of here: adding`: .*cheese\. Nothing was published"
    with run_job(spark, "sums", source="here") as job:
        job.step("adding")
        with pytest.raises(SparkJobFailed, match=said):
            spread(spark, fails, [1])


def test_a_query_that_fails_says_which_and_nothing_of_what_it_never_wrote(spark: Any, tmp_path: Path) -> None:
    graph = og.init(tmp_path / "graph", schema="node P { slug: String @key }")
    graph.load([{"slug": f"p{n}"} for n in range(9)], type="P", mode="append")
    [file] = (tmp_path / "graph").glob("nodes/*/data/*.lance")
    file.unlink()
    with pytest.raises(SparkJobFailed, match=r"while running `omnigraph query q of .*graph`: ") as failed:
        graph.query("query q() { match { $p: P } return { $p.slug } }", engine="spark")
    assert "published" not in failed.value.message


def test_the_reason_is_no_line_of_the_code_that_failed() -> None:
    try:
        raise OSError(28, "No space left on device")
    except OSError:
        trace = traceback.format_exc()
    # As it comes where the error passed through a handler of ours.
    trace = f'{trace}\n  File "a.py", line 1, in a\n    except OmniGraphError as error:\n           ^^^^^\n'
    query = RuntimeError(f"Query [id = 1] terminated with exception: {trace}Suppressed: java.io.IOException: also so")
    assert reason_of(query) == "OSError: [Errno 28] No space left on device"
    assert "No space left on device. Mend that" in str(told(query))
    assert "spark.local.dir" in str(told(query))


def test_a_failure_says_which_step_and_which_part_of_the_input(spark: Any) -> None:
    def fails(number: int) -> None:
        with placed(f"people.jsonl, part {number}"):
            raise OSError(28, "No space left\non device")

    said = r"failed while writing: people\.jsonl, part 3: OSError: \[Errno 28\] No space left on device\. Nothing was"
    with pytest.raises(SparkJobFailed, match=said), told_in_our_words("writing"):
        spark.sparkContext.parallelize([3], 1).map(fails).collect()
    with pytest.raises(BadRequest, match="as it was"), placed("somewhere"):
        raise BadRequest("as it was")


def test_an_error_of_the_storage_is_the_reason_though_its_name_says_nothing_of_errors(spark: Any) -> None:
    from omnigraph.errors import StorageKind
    from omnigraph.storage.objects.object_errors import ObjectNotFound

    def fails(number: int) -> int:
        raise ObjectNotFound("bad/7 does not exist", StorageKind.NOT_FOUND)

    with pytest.raises(SparkJobFailed, match="ObjectNotFound: bad/7 does not exist"):
        spread(spark, fails, [1])


@pytest.fixture
def scattered(tmp_path: Path) -> tuple[TableStore, TableVersion]:
    tables = TableStore(parse_root(str(tmp_path)))
    schema = pa.schema([pa.field("id", pa.string(), nullable=False), ("n", pa.int64())])
    version = tables.create("nodes/n1", schema)
    for part in range(12):
        rows = pa.table({"id": [f"k{part}-{i}" for i in range(5)], "n": list(range(5))}, schema=schema)
        version = tables.commit_staged(tables.stage_append(version, rows), "test")
    return tables, version


def test_compaction_tasks_run_on_executors(spark: Any, scattered: tuple[TableStore, TableVersion]) -> None:
    from omnigraph.spark.jobs.compact import run_compaction_tasks

    tables, version = scattered
    before = tables.scan_table(version, columns=["id", "n"], with_row_id=True, order_by=["id"])
    work = plan_compaction(tables.handles, version, CompactionOptions(target_rows=30))
    assert len(work) > 1
    landed = commit_compaction(tables.handles, staged_compaction(version, run_compaction_tasks(spark, work)))
    assert len(tables.fragments(landed)) == len(work)
    assert tables.scan_table(landed, columns=["id", "n"], with_row_id=True, order_by=["id"]).equals(before)


def test_index_segments_are_built_on_executors(spark: Any, scattered: tuple[TableStore, TableVersion]) -> None:
    from omnigraph.spark.jobs.compact import run_index_tasks

    tables, version = scattered
    work = plan_index(tables.handles, version, "id", IndexKind.BTREE, parts=2)
    assert len(work) == 2
    segments = run_index_tasks(spark, work)
    staged = stage_index_segments(tables.handles, version, "id", IndexKind.BTREE, segments)
    landed = tables.commit_staged(staged, "index")
    assert index_state(tables.handles, landed, "id", IndexKind.BTREE).is_complete
    assert tables.count(landed, eq("id", "k3-2")) == 1


def test_tasks_run_in_other_processes(spark: Any) -> None:
    assert os.getpid() not in spread(spark, lambda _: os.getpid(), [0, 1])


def test_a_full_scratch_directory_of_the_driver_is_told_too() -> None:
    said = r"failed while writing: .*No space left on device\. Nothing was published.*spark\.local\.dir"
    with pytest.raises(SparkJobFailed, match=said), told_in_our_words("writing"):
        raise OSError(28, "No space left on device")
    with pytest.raises(FileNotFoundError), told_in_our_words("writing"):
        raise FileNotFoundError("people.jsonl")
