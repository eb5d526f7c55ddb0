"""The reader behind `readStream`, driven as Spark drives it but without a JVM: a copy follows a graph all its life."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable

import omnigraph as og
from omnigraph.config import override
from omnigraph.errors import HistoryGap, StaleCursor
from omnigraph.spark.stream.feed_reader import FeedReader, feed_columns

SCHEMA = """
node Person { slug: String @key  age: I32?  vec: Vector(2)?  old: String?  photo: Blob? }
node Thing { name: String }
edge Knows: Person -> Person { weight: F64?  note: String? }
"""
LATER = """
node Human @rename_from("Person") {
  slug: String @key  years: I32? @rename_from("age")  vec: Vector(2)?  city: String? @default("Rome")  photo: Blob?
}
edge Met: Human -> Human @rename_from("Knows") { weight: F64? }
node Place { name: String @key }
"""

Copy = dict[tuple[str, str], dict[str, Any]]


class Follower:
    """A copy that is brought up to date by a reader of its own each time, from the offset that was kept as JSON."""

    def __init__(self, graph: og.Graph, **options: str) -> None:
        self.graph = graph
        self.options = {"startingFrom": "beginning", **options}
        self.offset: str | None = None
        self.copy: Copy = {}
        self.ops: list[str] = []

    def drain(self, **options: str) -> int:
        """How many micro-batches there were."""
        given = {**self.options, **options}
        reader = FeedReader(self.graph.uri, given, *feed_columns(self.graph.uri, given))
        reader.prepareForTriggerAvailableNow()
        if self.offset is None:
            self.offset = json.dumps(reader.initialOffset())
        batches = 0
        while True:
            start = json.loads(self.offset)
            end = json.loads(json.dumps(reader.latestOffset(start, reader.getDefaultReadLimit())))
            if end == start:
                break
            rows = [row for part in reader.partitions(start, end) for row in self.read(reader, part)]
            self.apply(rows)
            self.offset = json.dumps(end)
            batches += 1
        reader.stop()
        return batches

    @staticmethod
    def read(reader: FeedReader, partition: Any) -> list[dict[str, Any]]:
        task: FeedReader = pickle.loads(pickle.dumps(reader))
        return [row for batch in task.read(pickle.loads(pickle.dumps(partition))) for row in batch.to_pylist()]

    def apply(self, rows: list[dict[str, Any]]) -> None:
        order = {"baseline": 0, "schema": 1, "delete": 2}
        for row in sorted(rows, key=lambda row: (row["version"], order.get(row["op"], 3))):
            key = (row["type"], row["id"])
            self.ops.append(row["op"])
            match row["op"]:
                case "baseline":
                    self.copy.clear()
                case "schema":
                    for step in json.loads(row["after"])["steps"]:
                        self.change_schema(step)
                case "insert":
                    assert key not in self.copy
                    self.copy[key] = json.loads(row["after"])
                case "update":
                    assert key in self.copy
                    self.copy[key] = json.loads(row["after"])
                case "delete":
                    del self.copy[key]

    def change_schema(self, step: dict[str, Any]) -> None:
        for type_, row_id in [key for key in self.copy if key[0] == step["type"]]:
            row = self.copy[type_, row_id]
            match step["step"]:
                case "rename_type":
                    self.copy[step["to"], row_id] = self.copy.pop((type_, row_id))
                case "rename_property":
                    row[step["to"]] = row.pop(step["property"])
                case "drop_property":
                    del row[step["property"]]
                case "add_property":
                    row[step["property"]] = step["default"]

    def is_equal(self) -> bool:
        mine = {
            key: {name: value for name, value in row.items() if value is not None} for key, row in self.copy.items()
        }
        assert mine == exported(self.graph)
        return True


def exported(graph: og.Graph) -> Copy:
    """The state of the graph, from its export. The feed has no blobs."""
    found: Copy = {}
    for line in b"".join(graph.export_lines()).splitlines():
        record = json.loads(line)
        data = record["data"]
        data.pop("photo", None)
        name = record.get("type") or record["edge"]
        own = data.pop("id", None) or data.get("slug") or data["name"]
        ends = {"@src": record["from"], "@dst": record["to"]} if "edge" in record else {}
        found[name, own] = {"@id": own, **ends, **data}
    return found


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    made = og.init(tmp_path / "g.omni", schema=SCHEMA)
    people = [
        {"type": "Person", "data": {"slug": f"p{n}", "age": n, "vec": [n, 0.5], "photo": {"base64": "AAAA"}}}
        for n in range(6)
    ]
    edge = {"edge": "Knows", "from": "p0", "to": "p1", "data": {"weight": 0.25, "note": "x"}}
    made.load([*people, edge, {"type": "Thing", "data": {"name": "cup"}}], mode="append")
    return made


def test_a_copy_stays_equal_through_the_life_of_a_graph(graph: og.Graph) -> None:
    follower = Follower(graph, maxCommitsPerTrigger="2")
    graph.mutate('query q() { update Person set { age: 77 } where slug = "p1" }')
    graph.mutate('query q() { delete Person where slug = "p2" }')
    assert follower.drain() == 2
    assert follower.is_equal()
    assert follower.drain() == 0
    graph.branch_create("side")
    graph.mutate('query q() { update Person set { age: 5 } where slug = "p3" }', branch="side")
    graph.load([{"edge": "Knows", "from": "p3", "to": "p4"}], mode="append", branch="side")
    graph.mutate('query q() { insert Person { slug: "m" } }')
    graph.merge("side")
    graph.optimize()
    follower.drain()
    assert follower.is_equal()
    graph.branch_create("later")
    graph.apply_schema(LATER, branch="later")
    graph.mutate('query q() { update Human set { years: 6, city: "Oslo" } where slug = "p4" }', branch="later")
    graph.mutate('query q() { update Person set { vec: [9.0, 9.0] } where slug = "p5" }')
    graph.load([{"name": "Rome"}], mode="append", type="Place", branch="later")
    graph.mutate('query q() { update Person set { age: 11 } where slug = "p0" }')
    graph.merge("later")
    follower.drain()
    assert follower.is_equal()
    assert "schema" in follower.ops
    graph.restore(graph.log()[3].graph_commit_id)
    graph.optimize()
    follower.drain()
    assert follower.is_equal()


def test_what_an_undo_brings_back_comes_to_whoever_asked_for_its_type(graph: og.Graph) -> None:
    follower = {name: Follower(graph, **{name: of}) for name, of in [("kinds", "edge"), ("types", "Knows")]}
    for one in follower.values():
        one.drain()
    dropped = graph.apply_schema(SCHEMA.replace("old: String?", "").replace("note: String?", "")).commit
    graph.revert(dropped.graph_commit_id)
    for one in follower.values():
        one.drain()
        assert [(name, row["note"]) for (name, _), row in one.copy.items()] == [("Knows", "x")]
        assert one.ops[-1] == "update"
    inserts = Follower(graph, ops="insert")
    inserts.drain()
    assert set(inserts.ops) == {"insert"}


def test_numbers_of_32_bits_are_told_as_they_are_exported_and_stay_so_when_they_get_wider(tmp_path: Path) -> None:
    narrow = "node Part { name: String @key  size: F32?  sizes: [F32]?  vec: Vector(2)? }"
    with og.init(tmp_path / "parts.omni", schema=narrow) as parts:
        data = {"name": "nut", "size": 0.1, "sizes": [0.2], "vec": [0.3, 1e-7]}
        parts.load([{"type": "Part", "data": data}, {"type": "Part", "data": {"name": "none"}}], mode="append")
        follower = Follower(parts)
        follower.drain()
        assert follower.is_equal()
        parts.apply_schema(narrow.replace("size: F32?", "size: F64?"))
        follower.drain()
        assert follower.is_equal()


def test_rows_of_much_text_come_in_small_batches(graph: og.Graph) -> None:
    options = {"startingFrom": "now"}
    reader = FeedReader(graph.uri, options, *feed_columns(graph.uri, options))
    start = reader.initialOffset()
    graph.load([{"name": f"{n}" * (9 << 20)} for n in range(4)], mode="append", type="Thing")
    parts = reader.partitions(start, reader.latestOffset(start, ReadAllAvailable()))
    assert [batch.num_rows for part in parts for batch in reader.read(part)] == [2, 2]
    reader.stop()


def test_a_gap_is_told_or_bridged_by_a_baseline(graph: og.Graph) -> None:
    follower, late = Follower(graph), Follower(graph, startingFrom="baseline")
    follower.drain()
    assert late.drain() == 1
    assert late.is_equal()
    assert late.ops[0] == "baseline"
    for n in range(6):
        graph.mutate(f'query q() {{ insert Person {{ slug: "late{n}" }} }}')
    graph.mutate('query q() { delete Person where slug = "p0" }')
    with override(cleanup_grace=0.0):
        graph.cleanup(keep_versions=3, confirm=True)
    with pytest.raises(HistoryGap, match="has been removed by cleanup") as gap:
        follower.drain()
    assert gap.value.details["graph_commit_id"] in {commit.graph_commit_id for commit in graph.log()}
    assert follower.drain(onGap="baseline") == 1
    assert follower.is_equal()
    graph.mutate('query q() { delete Person where slug = "late0" }')
    assert follower.drain() == 1
    assert follower.ops[-1] == "delete"
    assert follower.is_equal()


def test_a_gap_behind_what_tags_keep_is_bridged_too(graph: og.Graph) -> None:
    for tag in ("first", "second"):
        graph.mutate(f'query q() {{ insert Thing {{ name: "{tag}" }} }}')
        graph.tags.create(tag)
    for n in range(5):
        graph.mutate(f'query q() {{ update Person set {{ age: {n} }} where slug = "p1" }}')
    with override(cleanup_grace=0.0):
        graph.cleanup(keep_versions=3, confirm=True)
    follower = Follower(graph, startingFrom="first")
    with pytest.raises(HistoryGap, match=r'removed by cleanup.* Start again with option\("onGap", "baseline"\)'):
        follower.drain()
    follower.drain(onGap="baseline")
    assert follower.is_equal()
    assert "baseline" in follower.ops


def test_a_batch_that_was_planned_before_the_cleanup_is_read_as_a_baseline(graph: og.Graph) -> None:
    """Spark has written the end of the batch down, so a stream that starts again must read it in some way."""
    follower = Follower(graph)
    follower.drain()
    start = json.loads(follower.offset or "")
    graph.mutate('query q() { insert Person { slug: "planned" } }')
    options = {"startingFrom": "now", "onGap": "baseline"}
    reader = FeedReader(graph.uri, options, *feed_columns(graph.uri, options))
    end = reader.latestOffset(start, ReadAllAvailable())
    for n in range(4):
        graph.mutate(f'query q() {{ insert Person {{ slug: "late{n}" }} }}')
    with override(cleanup_grace=0.0):
        graph.cleanup(keep_versions=3, confirm=True)
    again = FeedReader(graph.uri, options, *feed_columns(graph.uri, options))
    rows = [row for part in again.partitions(start, end) for row in Follower.read(again, part)]
    assert rows == [], "the state of that moment is gone as well, and the next batch tells a later one"
    follower.offset = json.dumps(end)
    assert follower.drain(onGap="baseline") == 1
    assert follower.is_equal()


def test_a_baseline_that_was_planned_before_the_cleanup_is_followed_by_another(graph: og.Graph) -> None:
    """The driver dies with the batch planned, and what it planned to read is gone when the next one starts."""
    given = {"startingFrom": "baseline"}
    reader = FeedReader(graph.uri, given, *feed_columns(graph.uri, given))
    start = reader.initialOffset()
    end = json.loads(json.dumps(reader.latestOffset(start, ReadAllAvailable())))
    planned = reader.partitions(start, end)
    for n in range(6):
        graph.mutate(f'query q() {{ insert Person {{ slug: "late{n}" }} }}')
    with override(cleanup_grace=0.0):
        graph.cleanup(keep_versions=3, confirm=True)
    with pytest.raises(HistoryGap, match="has been removed by cleanup"):
        [row for part in planned for row in Follower.read(reader, part)]
    later = FeedReader(graph.uri, given, *feed_columns(graph.uri, given))
    with pytest.raises(HistoryGap, match=r'removed by cleanup\. Start again with option\("onGap"'):
        later.partitions(start, end)
    follower = Follower(graph, **given, onGap="baseline")
    bridging = FeedReader(graph.uri, follower.options, *feed_columns(graph.uri, follower.options))
    assert bridging.partitions(start, end) == []
    follower.offset = json.dumps(end)
    follower.drain()
    assert follower.is_equal()
    for one in (reader, later, bridging):
        one.stop()


def test_a_cursor_of_another_branch_or_filter_is_refused(graph: og.Graph) -> None:
    follower = Follower(graph, branch="b")
    graph.branch_create("b")
    follower.drain()
    graph.branch_delete("b")
    graph.branch_create("b")
    with pytest.raises(StaleCursor, match="another branch than `b`, or to one of that name that was deleted"):
        follower.drain()
    other = Follower(graph)
    other.drain()
    graph.mutate('query q() { insert Person { slug: "z" } }')
    with pytest.raises(StaleCursor, match="another filter"):
        other.drain(types="Thing")
