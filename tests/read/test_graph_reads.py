"""Reads of a real graph: one snapshot for a whole query, and no stale answer after a write."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.config import override
from omnigraph.read.tables.caches import caches_of

SCHEMA = """
node Person { name: String @key  age: I32? }
edge Knows: Person -> Person
"""
ADD = """query add($a: String, $b: String) {
    insert Person { name: $b, age: 1 }
    insert Knows { from: $a, to: $b }
}"""
REACHED = 'query reached() { match { $p: Person { name: "root" }  $p knows $q } return { count($q) as n } }'
ALL = "query all() { match { $p: Person  $p.age = 1 } return { count($p) as n } }"


@pytest.fixture
def graph(tmp_path: Path):
    with og.init(tmp_path / "g", schema=SCHEMA) as made:
        made.mutate('query root() { insert Person { name: "root" } }')
        yield made


@pytest.mark.parametrize("mode", ["csr", "indexed", None])
def test_a_read_after_a_write_sees_the_write(graph, mode):
    with override(traversal_mode=mode):
        for number in range(4):
            graph.mutate(ADD, params={"a": "root", "b": f"p{number}"})
            assert graph.query(REACHED).scalar() == number + 1
            assert graph.query(ALL).scalar() == number + 1


def test_an_older_snapshot_is_read_as_it_was(graph):
    with override(traversal_mode="csr"):
        before = graph.mutate(ADD, params={"a": "root", "b": "one"}).commit.graph_commit_id
        graph.mutate(ADD, params={"a": "root", "b": "two"})
        assert graph.query(REACHED).scalar() == 2
        assert graph.query(REACHED, at=before).scalar() == 1
        assert graph.query(REACHED).scalar() == 2


def test_branches_that_share_tables_share_their_topology(graph):
    graph.mutate(ADD, params={"a": "root", "b": "one"})
    graph.branch_create("review")
    with override(traversal_mode="csr"):
        graph.query(REACHED)
        graph.query(REACHED, branch="review")
        report = caches_of(graph._store).report()["topologies"]
    assert (report.misses, report.hits) == (1, 1)


@pytest.mark.parametrize("mode", ["csr", "indexed"])
def test_no_stale_reads_beside_concurrent_writers(graph, mode):
    """A reader that starts after a write was acknowledged sees it, and nodes and edges of one snapshot agree."""
    acknowledged = 0
    failures: list[str] = []
    done = threading.Event()

    def read() -> None:
        while not done.is_set():
            floor = acknowledged
            snapshot = graph.snapshot().head.graph_commit_id
            reached = graph.query(REACHED, at=snapshot).scalar()
            people = graph.query(ALL, at=snapshot).scalar()
            if reached < floor or reached != people:
                failures.append(f"{floor} acknowledged, {reached} reached, {people} people")

    with override(traversal_mode=mode):
        readers = [threading.Thread(target=read) for _ in range(2)]
        for reader in readers:
            reader.start()
        try:
            for number in range(8):
                graph.mutate(ADD, params={"a": "root", "b": f"p{number}"})
                acknowledged = number + 1
        finally:
            done.set()
            for reader in readers:
                reader.join()
    assert failures == []


def test_explain_does_not_run_the_query_unless_asked(graph):
    assert graph.explain(REACHED).to_json()["run"] is None
    assert graph.explain(REACHED, analyze=True).to_json()["run"]["rows"] == 1
