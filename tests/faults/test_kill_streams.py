"""The commit of a micro-batch is killed at every step and repeated, as Spark does: nothing is lost or doubled."""

from __future__ import annotations

import json
import os
import shutil
import time
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.ledger.values import StreamBatch
from omnigraph.spark.stream.batch_commit import publish_batch
from omnigraph.spark.stream.sink_options import SinkOptions
from omnigraph.spark.stream.staged_records import Piece, as_line, place_of, place_of_run
from omnigraph.storage.objects.objects import open_objects
from omnigraph.storage.uri import parse_root
from tests.faults.harness import failpoints_met, run_killed
from tests.faults.test_kill_every_writer import EVERYWHERE

SCHEMA = "node Person { slug: String @key  age: I32? }\nedge Knows: Person -> Person"
QUERY = "5e0c"
LETTERS = "letters"


def records(batch: int) -> list[str]:
    """Three people, two edges without ids of their own, so that loading them twice would show, and a bad record."""
    people = [{"type": "Person", "data": {"slug": f"p{batch}{n}", "age": n}} for n in range(3)]
    edges = [{"edge": "Knows", "from": f"p{batch}0", "to": f"p{batch}{n}"} for n in (1, 2)]
    return [json.dumps(record) for record in (*people, *edges)] + ["{no json"]


def run_empty_batch(directory: str, batch: int, branch: str) -> None:
    """A batch whose tasks had no records."""
    publish_batch(f"{directory}/g.omni", SinkOptions(branch=branch), StreamBatch(QUERY, batch), "run", [])


def run_batch(directory: str, batch: int, branch: str) -> None:
    """What Spark does with a batch: its task puts the records, then the batch is committed."""
    uri = f"{directory}/g.omni"
    # Each run of a batch has a name of its own, as it has with Spark.
    run = f"run-{os.getpid()}-{time.monotonic_ns()}"
    path = f"{place_of_run(StreamBatch(QUERY, batch), run)}/000000-0000.jsonl"
    lines = [as_line(record) for record in records(batch)]
    open_objects(parse_root(uri)).put(path, b"".join(lines))
    options = SinkOptions(branch=branch, bad_records=f"{directory}/{LETTERS}")
    publish_batch(uri, options, StreamBatch(QUERY, batch), run, [Piece(path, len(lines))])


def content(directory: Path, branch: str) -> tuple[list[str], list[tuple[str, str]], int]:
    with og.open(directory / "g.omni", read_only=True, branch=branch) as graph:
        lines = [json.loads(line) for line in b"".join(graph.export_lines()).splitlines()]
        people = sorted(line["data"]["slug"] for line in lines if "type" in line)
        edges = sorted((line["from"], line["to"]) for line in lines if "edge" in line)
        return people, edges, sum(commit.about is not None for commit in graph.log())


def expected(batches: int) -> tuple[list[str], list[tuple[str, str]], int]:
    people = [f"p{batch}{n}" for batch in range(batches) for n in range(3)]
    return people, [(f"p{batch}0", f"p{batch}{n}") for batch in range(batches) for n in (1, 2)], batches


@pytest.fixture(scope="module", params=["main", "live"])
def begun(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A graph that has the first batch, on main or on a branch that has made no line of its own but for that."""
    directory = tmp_path_factory.mktemp("streams")
    with og.init(directory / "g.omni", schema=SCHEMA) as graph:
        if request.param != "main":
            graph.branch_create(request.param)
    run_batch(str(directory), 0, request.param)
    return directory, request.param


def test_a_batch_is_there_once_wherever_its_commit_was_killed(begun: tuple[Path, str], tmp_path: Path) -> None:
    origin, branch = begun
    trial = shutil.copytree(origin, tmp_path / "trial")
    met = failpoints_met(run_batch, str(trial), 1, branch)
    assert {"stream.received", "batch.letters_written", "write.published", "stream.committed", "stream.cleared"} <= set(
        met
    )
    assert content(trial, branch) == expected(2)
    for name, hits in met.items():
        # The first time on main and the last time on a branch: what lies between is the same for both.
        hit = 1 if branch == "main" else hits
        directory = shutil.copytree(origin, tmp_path / name)
        run_killed(run_batch, str(directory), 1, branch, at=name, hit=hit)
        for batch in (1, 2):
            run_batch(str(directory), batch, branch)
        assert content(directory, branch) == expected(3), name
        letters = sorted(file.read_text() for file in (directory / LETTERS / QUERY).iterdir())
        assert [json.loads(text)["record"] for text in letters] == ["{no json"] * 3, name
        assert list(open_objects(parse_root(directory / "g.omni")).list(place_of(QUERY))) == []
        shutil.rmtree(directory)


def test_a_batch_without_records_is_there_once_too(begun: tuple[Path, str], tmp_path: Path) -> None:
    """Its commit moves no table, so there is no sidecar: it is published or it is not."""
    origin, branch = begun
    trial = shutil.copytree(origin, tmp_path / "trial")
    met = failpoints_met(run_empty_batch, str(trial), 1, branch)
    chosen = ("publish.before", "publish.after", "log.append.before")
    assert set(chosen) <= set(met)
    for name in met if EVERYWHERE else chosen:
        directory = shutil.copytree(origin, tmp_path / name)
        run_killed(run_empty_batch, str(directory), 1, branch, at=name, hit=1)
        run_empty_batch(str(directory), 1, branch)
        run_batch(str(directory), 2, branch)
        people, edges, batches = content(directory, branch)
        assert (len(people), len(edges), batches) == (6, 4, 3), name
        with og.open(directory / "g.omni") as graph:
            assert graph.verify().ok, name
