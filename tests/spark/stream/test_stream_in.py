"""Streams into a graph: each micro-batch once, whatever dies in between; modes, types, branches, bad records."""

from __future__ import annotations

import json
import os
import shutil
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.errors import BadRequest, NotFound, SparkJobFailed, StaleCheckpoint, ValidationFailed
from omnigraph.failpoints import ENVIRONMENT_VARIABLE
from omnigraph.ledger.commit.staging_marks import MARKS
from omnigraph.spark.source.datasource import register

pytestmark = [pytest.mark.spark, pytest.mark.slow]

SCHEMA = "node Person { slug: String @key  age: I32? }\nedge Knows: Person -> Person"
NOW = {"availableNow": True}


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    (tmp_path / "in").mkdir()
    return og.init(tmp_path / "g.omni", schema=SCHEMA)


@contextmanager
def killed_at(spark: Any, failpoint: str) -> Iterator[None]:
    """The processes that Spark starts for the format kill themselves there, each of them."""
    spark.sparkContext.environment[ENVIRONMENT_VARIABLE] = f"{failpoint}=kill"
    register(spark)
    try:
        yield
    finally:
        del spark.sparkContext.environment[ENVIRONMENT_VARIABLE]
        register(spark)


def person(slug: str, **data: Any) -> str:
    return json.dumps({"type": "Person", "data": {"slug": slug, **data}})


def knows(a: str, b: str) -> str:
    return json.dumps({"edge": "Knows", "from": a, "to": b})


def records(number: int) -> list[str]:
    people = [f"p{number}-{n}" for n in range(20)]
    return [*(person(slug, age=number) for slug in people), *(knows(people[0], slug) for slug in people)]


def content(graph: og.Graph, branch: str = "main") -> tuple[Counter[tuple[str, int]], Counter[tuple[str, str]]]:
    lines = [json.loads(line) for line in b"".join(graph.export_lines(branch=branch)).splitlines()]
    people = Counter((line["data"]["slug"], line["data"].get("age")) for line in lines if "type" in line)
    return people, Counter((line["from"], line["to"]) for line in lines if "edge" in line)


def test_a_stream_whose_processes_die_gives_what_one_load_gives(spark: Any, graph: og.Graph, tmp_path: Path) -> None:
    source, everything = tmp_path / "in", []
    incoming = spark.readStream.option("maxFilesPerTrigger", 1).text(str(source))

    def run() -> None:
        graph.load_stream(incoming, checkpoint=tmp_path / "checkpoint", trigger=NOW).wait()

    # First a batch that is published, and Spark does not know; then the same again, by tasks that die with their
    # records put, and a second one after it.
    for number, point in enumerate(("stream.committed", "stream.staged")):
        everything += records(number)
        (source / f"{number}.txt").write_text("\n".join(records(number)))
        with killed_at(spark, point), pytest.raises(SparkJobFailed, match="nothing is lost or doubled"):
            run()
        assert "batch 0" in (graph.head().about or "")
    run()
    whole = og.init(tmp_path / "whole.omni", schema=SCHEMA)
    whole.load("\n".join(everything).encode(), mode="append")
    assert content(graph) == content(whole)
    batches = [commit.about for commit in graph.log() if commit.about]
    assert [about.split(" of ")[0] for about in batches] == ["batch 1", "batch 0"]
    assert list(graph._store.objects.list(MARKS)) == []
    assert list(Path(graph.uri, MARKS, "streams").glob("*")) == [], "each batch would list all folders before it"
    assert graph.verify().ok


def test_rows_of_a_type_are_merged_on_a_branch_without_the_bad_ones(
    spark: Any, graph: og.Graph, tmp_path: Path
) -> None:
    graph.load([{"slug": "a", "age": 1}, {"slug": "b", "age": 2}], mode="append", type="Person")
    graph.branch_create("live")
    (tmp_path / "in" / "1.json").write_text('{"who": "a", "age": 10}\n{"who": null, "age": 3}\n{"who": "c", "age": 4}')
    rows = spark.readStream.schema("who string, age int").json(str(tmp_path / "in"))
    writer = rows.writeStream.format("omnigraph").option("type", "Person").option("map", "who=slug")
    writer = writer.options(mode="merge", branch="live", actor="act-stream", badRecords=str(tmp_path / "bad"))
    query = writer.option("checkpointLocation", str(tmp_path / "ck")).trigger(availableNow=True).start(graph.uri)
    query.awaitTermination()
    assert content(graph, "live")[0] == Counter({("a", 10): 1, ("b", 2): 1, ("c", 4): 1})
    assert content(graph)[0] == Counter({("a", 1): 1, ("b", 2): 1})
    head = graph.head("live")
    assert (head.about, head.actor_id) == (f"batch 0 of stream {query.id}", "act-stream")
    [letters] = (tmp_path / "bad").rglob("*.jsonl")
    assert letters == tmp_path / "bad" / query.id / "batch-000000000.jsonl"
    [letter] = map(json.loads, letters.read_text().splitlines())
    assert (letter["record"], letter["reasons"][0]["kind"]) == ({"who": None, "age": 3}, "missing_key")


def test_a_batch_that_breaks_a_rule_ends_the_stream_and_comes_again(
    spark: Any, graph: og.Graph, tmp_path: Path
) -> None:
    source = tmp_path / "in"
    (source / "1.txt").write_text("\n".join(["", person("a"), "  ", knows("a", "ghost"), "no json", ""]))
    options: dict[str, Any] = {"checkpoint": tmp_path / "ck", "trigger": NOW}
    with pytest.raises(ValidationFailed, match=r"(?s)batch 0 of stream.*2 violations.*record 3.*record 2.*ghost"):
        graph.load_stream(spark.readStream.text(str(source)), **options).wait()
    assert content(graph) == (Counter(), Counter())
    assert list(graph._store.objects.list(MARKS)) == []
    another = spark.newSession().readStream.text(str(source))
    stream = graph.load_stream(another, bad_records=tmp_path / "bad", **options)
    assert stream.wait(60)
    assert not stream.is_active
    [letters] = (tmp_path / "bad").rglob("*.jsonl")
    assert {json.loads(line)["record"] for line in letters.read_text().splitlines()} == {knows("a", "ghost"), "no json"}
    assert content(graph)[0] == Counter({("a", None): 1})
    assert "ended" in repr(stream)
    assert [progress["batchId"] for progress in stream.progress] == [0]


def test_a_checkpoint_used_with_a_graph_made_anew_is_refused(spark: Any, graph: og.Graph, tmp_path: Path) -> None:
    source = tmp_path / "in"
    incoming = spark.readStream.text(str(source))
    options: dict[str, Any] = {"checkpoint": tmp_path / "ck", "trigger": NOW}
    # A batch whose records are all filtered away is a batch: Spark counts it.
    (source / "0.txt").write_text("")
    graph.load_stream(incoming.where("value LIKE '%Person%'"), **options).wait()
    (source / "1.txt").write_text(person("b"))
    graph.load_stream(incoming, **options).wait()
    assert content(graph)[0] == Counter({("b", None): 1})
    graph.close()
    shutil.rmtree(tmp_path / "g.omni")
    anew = og.init(tmp_path / "g.omni", schema=SCHEMA)
    (source / "2.txt").write_text(person("c"))
    with pytest.raises(StaleCheckpoint, match=r"g\.omni: batch.* not there.*for one run\.$"):
        anew.load_stream(incoming, **options).wait()
    assert content(anew) == (Counter(), Counter())
    assert list(anew._store.objects.list(MARKS)) == []
    anew.load_stream(incoming, missing_batches="accept", **options).wait()
    assert content(anew)[0] == Counter({("c", None): 1})


def test_what_fails_behind_a_commit_is_told(spark: Any, graph: og.Graph, tmp_path: Path) -> None:
    """Not only errors of the graph: here the place of bad records is a file."""
    (tmp_path / "in" / "1.txt").write_text("no json")
    (tmp_path / "taken").write_text("")
    stream = graph.load_stream(
        spark.readStream.text(str(tmp_path / "in")),
        checkpoint=tmp_path / "ck",
        bad_records=tmp_path / "taken" / "below",
        trigger=NOW,
    )
    with pytest.raises(og.OmniGraphError, match=r"ended: .*taken/below/.*batch-000000000.jsonl does not exist"):
        stream.wait()


def test_what_makes_no_sense_is_refused_before_the_stream_starts(spark: Any, graph: og.Graph, tmp_path: Path) -> None:
    at_rest, lines = spark.range(3), spark.readStream.text(str(tmp_path / "in"))
    rate = spark.readStream.format("rate").load()
    for frame, more, kind, message in [
        (at_rest, {}, BadRequest, "load takes one that is at rest"),
        (lines, {"mode": "overwrite"}, BadRequest, "a stream cannot overwrite.*Use append or merge"),
        (lines, {"mode": "upsert"}, BadRequest, "is not a mode of a stream"),
        (lines, {"src": "a"}, BadRequest, "JSON records name their ends"),
        (lines, {"branch": "nowhere"}, NotFound, "nowhere"),
        (lines, {"trigger": {"continuous": "1 second"}}, BadRequest, "no continuous processing.*processingTime"),
        (lines, {"trigger": {"every": "1 second"}}, BadRequest, "no trigger `every`; there are availableNow"),
        (lines, {"trigger": {"once": True, **NOW}}, BadRequest, "one trigger, not two"),
        (lines, {"type": "Persn"}, BadRequest, "did you mean `Person`"),
        (lines, {"type": "Person"}, BadRequest, "the column `value` is no property of Person"),
        (rate, {"value_column": "text"}, BadRequest, "no column `text` with JSON records, only timestamp, value"),
    ]:
        with pytest.raises(kind, match=message):
            graph.load_stream(frame, checkpoint=tmp_path / "ck", **more)
    assert not (tmp_path / "ck").exists()
    counted = lines.groupBy("value").count()
    for frame, trigger, message in [(lines, {"processingTime": "often"}, "often"), (counted, NOW, "output mode")]:
        with pytest.raises(BadRequest, match=f"Spark does not start the stream: .*{message}"):
            graph.load_stream(frame, checkpoint=tmp_path / "spark", trigger=trigger)
    with og.open(graph.uri, read_only=True) as reader, pytest.raises(og.OmniGraphError, match="read-only"):
        reader.load_stream(lines, checkpoint=tmp_path / "ck")


def test_spark_itself_tells_the_same_refusals(spark: Any, graph: og.Graph, tmp_path: Path) -> None:
    (tmp_path / "in" / "1.txt").write_text(person("a"))
    lines = spark.readStream.text(str(tmp_path / "in"))
    counted = lines.groupBy("value").count()
    for number, (frame, output, options, message) in enumerate(
        [
            (lines, "append", {"mode": "overwrite"}, "a stream cannot overwrite"),
            (lines, "append", {"brnch": "b"}, "no option `brnch`; did you mean `branch`"),
            (counted, "complete", {}, 'no stream in output mode "complete"'),
        ]
    ):
        writer = frame.writeStream.format("omnigraph").options(**options).outputMode(output)
        writer = writer.option("checkpointLocation", str(tmp_path / f"ck{number}")).trigger(availableNow=True)
        with pytest.raises(Exception, match=message):
            writer.start(graph.uri).awaitTermination()
    assert content(graph) == (Counter(), Counter())


def test_continuous_processing_commits_nothing(spark: Any, graph: og.Graph, tmp_path: Path) -> None:
    """Spark gives a Python sink no rows in it, and would write down that they are dealt with."""
    from omnigraph.spark.stream.sink import StreamWriter

    sink = StreamWriter(graph.uri, {"type": "Person"}, ["slug"], False)
    with pytest.raises(BadRequest, match=r"as in continuous processing.*start it with trigger\(processingTime="):
        sink.commit([None, None], 0)

    rows = spark.readStream.format("rate").load().selectExpr("concat('r', value) AS slug")
    writer = rows.writeStream.format("omnigraph").option("type", "Person").trigger(continuous="100 milliseconds")
    query = writer.option("checkpointLocation", str(tmp_path / "ck")).start(graph.uri)
    try:
        until = time.monotonic() + 60
        while not (tmp_path / "ck" / "offsets" / "20").exists() and time.monotonic() < until:
            time.sleep(0.1)
        time.sleep(2)
    finally:
        query.stop()
    assert (tmp_path / "ck" / "offsets" / "20").exists()
    assert not list((tmp_path / "ck" / "commits").iterdir())
    assert content(graph) == (Counter(), Counter())


def test_an_interrupt_while_waiting_stops_the_stream_and_is_told_by_nobody_else(
    spark: Any, graph: og.Graph, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "in" / "1.jsonl").write_text(person("ada"))
    stream = graph.load_stream(spark.readStream.text(str(tmp_path / "in")), checkpoint=tmp_path / "checkpoint")

    def press() -> None:
        while not stream.progress:
            time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=press)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        thread.start()
        with pytest.raises(KeyboardInterrupt):
            stream.wait(120)
    finally:
        signal.signal(signal.SIGINT, before)
        thread.join()
    assert not stream.is_active
    assert graph.entity("Person", "ada") is not None
    assert [record for record in caplog.records if "py4j" in record.pathname] == []
    assert spark.range(3).count() == 3
