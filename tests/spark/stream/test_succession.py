"""A checkpoint that does not belong to a branch is noticed by the numbers of its batches."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.errors import BadRequest, StaleCheckpoint
from omnigraph.ledger.values import StreamBatch
from omnigraph.spark.stream.batch_commit import publish_batch
from omnigraph.spark.stream.sink_options import SinkOptions, checked
from omnigraph.spark.stream.staged_records import Piece, place_of_run

SCHEMA = "node Person { slug: String @key  age: I32? }"


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    return og.init(tmp_path / "g.omni", schema=SCHEMA)


def send(graph: og.Graph, number: int, *slugs: str, **options: Any) -> None:
    """What Spark does with a batch of the stream `s`."""
    batch = StreamBatch("s", number)
    pieces = []
    if slugs:
        path = f"{place_of_run(batch, 'run')}/000000-0000.jsonl"
        lines = [json.dumps({"type": "Person", "data": {"slug": slug}}) + "\n" for slug in slugs]
        graph._store.objects.put(path, "".join(lines).encode())
        pieces = [Piece(path, len(lines))]
    publish_batch(graph.uri, SinkOptions(**options), batch, "run", pieces)


def people(graph: og.Graph, branch: str = "main") -> set[str]:
    lines = b"".join(graph.export_lines(branch=branch)).splitlines()
    return {json.loads(line)["data"]["slug"] for line in lines}


def test_a_checkpoint_of_another_graph_is_refused(graph: og.Graph, tmp_path: Path) -> None:
    for number in range(3):
        send(graph, number, f"p{number}")
    other = og.init(tmp_path / "other.omni", schema=SCHEMA)
    before = other.head()
    told = r"batch 3 of stream s cannot be loaded into main of \S+other.omni: batches 0 to 2 of that stream are not"
    with pytest.raises(StaleCheckpoint, match=rf"(?s){told}.*another graph or branch.*new checkpoint.*missingBatches"):
        send(other, 3, "p3")
    assert (other.head(), people(other)) == (before, set())
    send(graph, 3, "p3")
    assert people(graph) == {"p0", "p1", "p2", "p3"}


def test_a_graph_made_anew_or_put_back_at_the_same_place_is_noticed(graph: og.Graph, tmp_path: Path) -> None:
    send(graph, 0, "p0")
    shutil.copytree(tmp_path / "g.omni", tmp_path / "backup")
    send(graph, 1, "p1")
    graph.close()
    shutil.rmtree(tmp_path / "g.omni")
    shutil.copytree(tmp_path / "backup", tmp_path / "g.omni")
    with og.open(tmp_path / "g.omni") as back, pytest.raises(StaleCheckpoint, match="batch 1 of that stream is not th"):
        send(back, 2, "p2")
    shutil.rmtree(tmp_path / "g.omni")
    with og.init(tmp_path / "g.omni", schema=SCHEMA) as anew:
        with pytest.raises(StaleCheckpoint, match="batches 0 to 1 of that stream are not there"):
            send(anew, 2, "p2")
        send(anew, 2, "p2", missing_batches="accept")
        send(anew, 3, "p3")
        assert people(anew) == {"p2", "p3"}


def test_a_graph_that_was_moved_or_copied_goes_on(graph: og.Graph, tmp_path: Path) -> None:
    send(graph, 0, "p0")
    og.copy(graph.uri, tmp_path / "copy.omni")
    graph.close()
    (tmp_path / "g.omni").rename(tmp_path / "moved.omni")
    for place in ("copy.omni", "moved.omni"):
        with og.open(tmp_path / place) as there:
            send(there, 1, "p1")
            assert people(there) == {"p0", "p1"}


def test_a_branch_that_lacks_batches_names_the_one_that_has_them(graph: og.Graph) -> None:
    send(graph, 0, "p0")
    graph.branch_create("live")
    send(graph, 1, "p1", branch="live")
    with pytest.raises(StaleCheckpoint, match=r"into main of .*The branch live has them: merge it into main"):
        send(graph, 2, "p2")
    graph.merge("live")
    send(graph, 2, "p2")
    assert people(graph) == {"p0", "p1", "p2"}


def test_an_older_copy_of_a_checkpoint_is_refused_and_not_skipped(graph: og.Graph) -> None:
    for number in range(3):
        send(graph, number, f"p{number}")
    with pytest.raises(StaleCheckpoint, match=r"up to batch 2, and Spark repeats none but the last one.*older copy"):
        send(graph, 1, "p1", "new")
    send(graph, 2, "p2")
    assert people(graph) == {"p0", "p1", "p2"}


def test_a_batch_without_records_or_change_counts_and_is_no_change(graph: og.Graph) -> None:
    send(graph, 0)
    send(graph, 1, "p1")
    send(graph, 2, "p1", mode="merge")
    send(graph, 3)
    send(graph, 3)
    send(graph, 4, "p4")
    told = [commit.about for commit in graph.log() if commit.about]
    assert told == [f"batch {number} of stream s" for number in (4, 3, 2, 1, 0)]
    assert [change.changes_data for change in graph.log(limit=5)] == [True, False, False, True, False]
    assert people(graph) == {"p1", "p4"}
    assert graph.verify().ok


def test_what_to_do_about_missing_batches_is_one_of_two() -> None:
    with pytest.raises(BadRequest, match="missingBatches is error or accept, not `skip`"):
        checked(SinkOptions(missing_batches="skip"))
