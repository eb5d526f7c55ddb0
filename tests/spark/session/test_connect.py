"""Spark Connect, as far as it goes: what works over it gives what one process gives, and the rest is refused before
anything is done, with what to do instead. A real server on loopback, and a client in a process of its own."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from tests.spark.session import connect_steps as steps
from tests.spark.session.connect_server import connect_client, connect_server

pytestmark = [pytest.mark.spark, pytest.mark.slow]

SCHEMA = "node Person { slug: String @key  age: I32? }\nedge Knows: Person -> Person"
PEOPLE = [{"type": "Person", "data": {"slug": f"p{n}", "age": n}} for n in range(5)]
EDGES = [{"edge": "Knows", "from": f"p{n}", "to": f"p{n + 1}"} for n in range(3)]
AGED = "slug string, age int"

Client = Callable[..., Any]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with connect_server(tmp_path_factory.mktemp("server")) as address:
        yield address


@pytest.fixture(scope="module")
def client(server: str) -> Iterator[Client]:
    with connect_client(server) as call:
        yield call


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Iterator[og.Graph]:
    """`main` stays as it is; each test that writes has a branch of its own."""
    with og.init(tmp_path_factory.mktemp("connect") / "graph.omni", schema=SCHEMA) as made:
        made.load([*PEOPLE, *EDGES], mode="append", engine="local")
        made.branch_create("side")
        made.load([{"type": "Person", "data": {"slug": "q", "age": 50}}], mode="append", branch="side", engine="local")
        yield made


def people(graph: og.Graph, branch: str = "main", at: Any = None) -> list[tuple[Any, ...]]:
    """What one process reads."""
    found = graph.query(steps.ALL, branch=None if at else branch, at=at, engine="local").to_arrow()
    return [tuple(row.values()) for row in found.to_pylist()]


def test_reads_and_their_options(client: Client, graph: og.Graph) -> None:
    first = graph.head().graph_commit_id
    graph.branch_create("later")
    graph.load([{"type": "Person", "data": {"slug": "new"}}], mode="append", branch="later", engine="local")
    named = {"type": "Person", "columns": "slug,age"}
    assert client(steps.rows, graph.uri, named) == people(graph)
    assert client(steps.rows, graph.uri, {**named, "branch": "side"}) == people(graph, "side")
    later = {**named, "branch": "later"}
    assert client(steps.rows, graph.uri, {**later, "columns": "slug"}) == [
        (slug,) for slug, _ in people(graph, "later")
    ]
    assert client(steps.rows, graph.uri, {**later, "snapshot": first}) == people(graph, at=first)
    assert client(steps.rows, graph.uri, {"type": "Person"}) == [(slug, slug, age) for slug, age in people(graph)]
    assert client(steps.registered, graph.uri) == [row for row in people(graph) if row[1] >= 3]


def test_views_of_nodes_and_edges_are_joined(client: Client, graph: og.Graph) -> None:
    walked = """
        query walked() {
            match { $a: Person  $b: Person  $a knows $b  $b.age > 1 }
            return { $a.slug, $b.slug, $b.age } order { $a.slug }
        }
    """
    sql = """
        SELECT a.slug, b.slug, ages.age FROM people a JOIN knows k ON k.src = a.id JOIN people b ON b.id = k.dst
        JOIN ages ON ages.id = b.id WHERE b.age > 1
    """
    expected = [tuple(row.values()) for row in graph.query(walked, engine="local").to_arrow().to_pylist()]
    assert len(expected) == 2
    assert client(steps.joined, graph.uri, sql) == expected


def test_writes_and_what_they_refuse(client: Client, graph: og.Graph) -> None:
    graph.branch_create("written")
    graph.branch_create("loaded")
    person, knows = ({"type": name, "branch": "written"} for name in ("Person", "Knows"))
    client(steps.write, graph.uri, [("w1", 1), ("w2", None)], AGED, "append", person)
    client(steps.insert, graph.uri, "written")
    local = [{"slug": "w1", "age": 1}, {"slug": "w2"}, {"slug": "p8", "age": 8}]
    graph.load(local, mode="append", type="Person", branch="loaded", engine="local")
    assert people(graph, "written") == people(graph, "loaded")
    head = graph.head("written").graph_commit_id
    client(steps.short_errors)
    ends, ghost = "src string, dst string", [("w1", "p1"), ("w1", "ghost")]
    for given, schema, mode, options, reason in (
        (ghost, ends, "append", knows, "1 missing_endpoint)\n  <frame, partition "),
        ([("w1", 7)], AGED, "append", person, "existing_id"),
        ([("w1", 7)], AGED, "overwrite", person, "dangling_edge"),
        ([("w1", 7)], "slug string, aeg int", "append", person, "did you mean `age`?"),
    ):
        refused = client(steps.failed_write, graph.uri, given, schema, mode, options)
        assert refused.startswith("pyspark.errors.exceptions.connect.AnalysisException: [PYTHON_DATA_SOURCE_ERROR]")
        assert reason in refused.split("SQLSTATE")[0], refused
        assert not any(noise in refused for noise in ("Traceback", "JVM", "\tat "))
    assert graph.head("written").graph_commit_id == head
    client(steps.write, graph.uri, [], ends, "overwrite", knows)
    client(steps.write, graph.uri, [("w9", 9)], AGED, "overwrite", person)
    assert people(graph, "written") == [("w9", 9)]


def test_streams_into_a_graph(client: Client, graph: og.Graph, tmp_path: Path) -> None:
    """By the format and by `load_stream`; a start with the same checkpoint loads what is new, and nothing twice."""
    lines = tmp_path / "lines"
    lines.mkdir()
    records = [{"type": "Person", "data": {"slug": f"s{n}", "age": n}} for n in range(3)]
    (lines / "1.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records[:2]))
    for branch in ("by-format", "by-graph", "expected"):
        graph.branch_create(branch)
    first = client(steps.stream_in, graph.uri, str(lines), str(tmp_path / "format"), "by-format")
    (lines / "2.jsonl").write_text(json.dumps({"edge": "Knows", "from": "s0", "to": "p0"}) + "\n")
    (lines / "3.jsonl").write_text(json.dumps(records[2]) + "\n")
    assert client(steps.stream_in, graph.uri, str(lines), str(tmp_path / "format"), "by-format") == first
    begun = client(steps.load_stream, graph.uri, str(lines), str(tmp_path / "graph"), "by-graph")
    assert begun == {"id": begun["id"], "ended": True, "active": False, "batches": [(0, 4)], "ui": None}
    again = client(steps.load_stream, graph.uri, str(lines), str(tmp_path / "graph"), "by-graph")
    assert again["id"] == begun["id"]
    assert not any(count for _, count in again["batches"])
    graph.load(records, mode="append", branch="expected", engine="local")
    for branch, commits in (("by-format", 2), ("by-graph", 1)):
        assert people(graph, branch) == people(graph, "expected")
        assert graph.snapshot(branch=branch).pin("edge:Knows").row_count == len(EDGES) + 1
        assert len(graph.log(branch)) == len(graph.log("main")) + commits


def test_a_stream_that_breaks_a_rule_says_so(client: Client, graph: og.Graph, tmp_path: Path) -> None:
    (tmp_path / "lines").mkdir()
    (tmp_path / "lines" / "1.jsonl").write_text('{"type": "Person", "data": {"slug": "p0"}}\n')
    graph.branch_create("broken")
    head = graph.head("broken").graph_commit_id
    given = (graph.uri, str(tmp_path / "lines"), str(tmp_path / "checkpoint"), "broken")
    no_column = client(steps.failed_stream, *given, "record")
    refused = client(steps.failed_stream, *given, "value")
    assert refused.startswith("omnigraph.errors.KeyConflict: batch 0 of stream ")
    assert "existing_id" in refused
    assert not any(noise in refused for noise in ("Traceback", "JVM", "SQLSTATE", "\tat "))
    assert no_column.startswith(
        "omnigraph.errors.BadRequest: there is no column `record` with JSON records, only value"
    )
    assert graph.head("broken").graph_commit_id == head


def test_the_change_feed_as_a_stream(client: Client, graph: og.Graph, tmp_path: Path) -> None:
    graph.branch_create("fed")
    graph.load([{"slug": "p0", "age": 70}], mode="merge", type="Person", branch="fed", engine="local")
    expected = [("insert", slug, age) for slug, age in people(graph)] + [("update", "p0", 70)]
    assert client(steps.stream_out, graph.uri, tmp_path) == expected
    graph.load([{"slug": "z", "age": 1}], mode="append", type="Person", branch="fed", engine="local")
    assert client(steps.stream_out, graph.uri, tmp_path) == sorted([*expected, ("insert", "z", 1)])


def test_frames_that_the_graph_makes(client: Client, graph: og.Graph) -> None:
    found = client(steps.frames_of_ours, graph.uri)
    expected = people(graph)
    assert found.pop("side") == [(slug,) for slug, _ in people(graph, "side")]
    assert found == {"to_spark": expected, "in a thread": expected, "result": expected}


def test_measures_over_frames(client: Client, graph: og.Graph) -> None:
    assert client(steps.measures, graph.uri) == {
        "degrees": [("p0", 0, 1, 1), ("p1", 1, 1, 2), ("p2", 1, 1, 2), ("p3", 1, 0, 1)],
        "components": [(f"p{n}", "p0") for n in range(4)],
        # 0.15 for all, and 0.85 of what flows: a quarter from each node to the next one, the last node's to everybody.
        "ranks": [("p0", 0.0906), ("p1", 0.3031), ("p2", 0.3031), ("p3", 0.3031)],
        "lengths": [("p1", "p1", 0), ("p1", "p2", 1), ("p1", "p3", 2)],
    }


def test_jobs_are_refused_before_anything_is_done(client: Client, graph: og.Graph, tmp_path: Path) -> None:
    before = files(graph)
    refused = client(steps.jobs, graph.uri, tmp_path)
    for name, message in refused.items():
        who = "the session given" if name.startswith("session given") else "the active session"
        assert message.startswith(f"omnigraph.errors.SparkUnavailable: {who} speaks Spark Connect"), (name, message)
        for needed in ("SparkContext", "job groups", "engine='local'", 'df.writeStream with .format("omnigraph")'):
            assert needed in message, (name, message)
    assert list(tmp_path.iterdir()) == []
    assert files(graph) == before


def test_frames_are_refused_with_what_to_do_instead(client: Client, graph: og.Graph, tmp_path: Path) -> None:
    (tmp_path / "lines").mkdir()
    before = files(graph)
    refused = client(steps.frames, graph.uri, str(tmp_path / "lines"), ["auto", "spark", "local"])
    streaming = refused.pop("streaming")
    assert streaming.startswith(
        "omnigraph.errors.BadRequest: load takes a DataFrame that is at rest; graph.load_stream"
    )
    for message in refused.values():
        assert message.startswith("omnigraph.errors.SparkUnavailable: graph.load takes no DataFrame of Spark Connect")
        assert 'df.write.format("omnigraph")' in message
        assert "graph.load(df.toArrow(), …)" in message
    assert files(graph) == before
    graph.branch_create("arrow")
    assert client(steps.by_arrow, graph.uri) == len(PEOPLE)
    assert people(graph, "arrow") == [(slug, age + 100) for slug, age in people(graph)]


def test_work_of_any_size_runs_in_process_if_nothing_else_is_asked_for(client: Client, graph: og.Graph) -> None:
    graph.branch_create("auto")
    first = len(PEOPLE) + 1
    assert client(steps.in_process, graph.uri) == {
        "small": ["local", first],
        "large": ["local", first + 1],
        "in a thread": ["local", first + 2],
    }


def test_a_process_whose_session_has_ended_still_has_no_jobs(server: str) -> None:
    """PySpark makes no classic session in it any more, and would say so of the session that a job tries to start."""
    with connect_client(server) as client:
        found = client(steps.without_its_session)
    assert found["auto"] == "local"
    for name in ("spark", "session"):
        assert found[name].startswith(
            "omnigraph.errors.SparkUnavailable: this process has had a session that speaks Spark Connect"
        ), found[name]


def files(graph: og.Graph) -> set[str]:
    return {str(path) for path in Path(graph.uri).rglob("*")}
