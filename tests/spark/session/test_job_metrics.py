"""What a load on Spark tells about itself: figures in its result, its jobs as Spark lists them, the way to the UI."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.config import override
from omnigraph.spark.session.job_metrics import metrics_of
from omnigraph.spark.session.progress import Job, log_lines, run_job
from omnigraph.write.progress import Progress

pytestmark = pytest.mark.spark


def test_a_load_tells_what_it_took(spark: Any, tmp_path: Path) -> None:
    file = tmp_path / "people.jsonl"
    file.write_text("".join(json.dumps({"type": "P", "data": {"k": f"k{n}"}}) + "\n" for n in range(500)))
    graph = og.init(tmp_path / "g.omni", schema="node P { k: String @key }")
    result = graph.load(file, mode="append", engine="spark", batch=("files", 0))
    told = result.metrics
    assert told is not None
    assert (told.records, told.bytes) == (500, file.stat().st_size)
    assert told.tasks >= 2
    assert told.shuffle_bytes is not None
    assert told.shuffle_bytes > 500, "the keys of all rows go to the tasks that check them"
    names = [name for name, _ in told.steps]
    assert names == ["decoding, checking and writing", "staging", "committing"]
    assert 0 < sum(seconds for _, seconds in told.steps) <= told.seconds
    assert result.to_json()["metrics"]["records"] == 500
    again = graph.load(file, mode="append", engine="spark", batch=("files", 0))
    assert again.skipped
    assert again.metrics is not None
    assert (again.metrics.records, again.metrics.tasks) == (0, 0)
    assert og.open(graph.uri).load([], mode="append", type="P").metrics is None


def test_jobs_are_described_step_by_step_and_the_callers_group_comes_back(spark: Any) -> None:
    context = spark.sparkContext
    context.setJobGroup("mine", "my own work")
    try:
        with run_job(spark, "load", place="main of g.omni") as job:
            assert context.getLocalProperty("spark.job.description") == "omnigraph load into main of g.omni"
            job.step("checking")
            assert context.getLocalProperty("spark.job.description") == "omnigraph load into main of g.omni: checking"
            assert spark.range(10).count() == 10
        assert context.getLocalProperty("spark.job.description") == "my own work"
        assert context.getLocalProperty("spark.jobGroup.id") == "mine"
        assert metrics_of(job).tasks >= 1
    finally:
        context.setLocalProperty("spark.jobGroup.id", None)
        context.setLocalProperty("spark.job.description", None)


def new_jobs(spark: Any, known: set[int]) -> set[tuple[bool, str]]:
    """Jobs that Spark lists and that were not there before: whether they are in a group of ours, and what for."""
    jobs = spark.sparkContext._jsc.sc().statusStore().jobsList(None).iterator()
    found = set()
    while jobs.hasNext():
        job = jobs.next()
        if job.jobId() not in known:
            known.add(job.jobId())
            group, description = job.jobGroup(), job.description()
            found.add((str(group).startswith("Some(omnigraph-"), description.get() if description.isDefined() else ""))
    return found


def test_jobs_of_reads_merges_and_exports_say_what_they_are_for(spark: Any, tmp_path: Path) -> None:
    graph = og.init(tmp_path / "g.omni", schema="node P { k: String @key  name: String?  n: I32? }")
    graph.load([{"k": f"k{n}"} for n in range(9)], mode="append", type="P")
    graph.branch_create("side")
    graph.load([{"k": f"k{n}", "name": "new"} for n in range(6)], mode="merge", type="P", branch="side")
    graph.load([{"k": f"k{n}", "n": 1} for n in range(4, 9)], mode="merge", type="P")
    out = tmp_path / "out"
    known: set[int] = set()
    new_jobs(spark, known)
    with override(merge_stage_batch_rows=1):
        assert len(list(graph.diff("main", "side", engine="spark"))) == 9
        assert new_jobs(spark, known) == {(True, f"omnigraph diff of {graph.uri}: comparing rows")}
        graph.merge("side", granularity="property", engine="spark")
        merging = f"omnigraph merge of side into main of {graph.uri}"
        assert new_jobs(spark, known) == {(True, f"{merging}: comparing rows"), (True, f"{merging}: writing rows")}
        graph.revert(graph.head().graph_commit_id, engine="spark", dry_run=True)
        reverting = f"omnigraph revert into main of {graph.uri}: comparing rows"
        assert new_jobs(spark, known) in (set(), {(True, reverting)})
    graph.query("query all() { match { $p: P } return { count($p) as n } }", engine="spark")
    assert new_jobs(spark, known) == {(True, f"omnigraph query all of {graph.uri}: running")}
    graph.export(out, engine="spark")
    assert new_jobs(spark, known) == {(True, f"omnigraph export of {graph.uri} into {out}: writing files")}


def test_the_way_to_the_ui_is_told_once_where_there_is_one(spark: Any, caplog: pytest.LogCaptureFixture) -> None:
    assert Job(spark, "load").look().ui is None, "the session of the tests has none"
    report = log_lines()
    with caplog.at_level("INFO"):
        for _ in range(2):
            report(Progress("load", "decode", 1, 1, 1, 1, 1.0, ui="http://driver:4040"))
    assert caplog.messages == ["load: watch it at http://driver:4040"]
