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


EVERY_KIND = """
node Thing {
    name: String @key  n: I64?  u: U64?  f: F64?  f32: F32?  yes: Bool?  day: Date?  at: DateTime?  tags: [String]?
    spot: Vector(2)?
}
"""


@pytest.mark.parametrize("form", ["to_pandas", "to_polars", "to_arrow", "itself"])
def test_a_result_loads_back_without_losing_a_bit(tmp_path: Path, form: str):
    row = {
        "name": "a", "n": 2**53 + 1, "u": 2**64 - 1, "f": 0.1, "f32": 0.5, "yes": False, "day": "2026-01-02",
        "at": "2026-01-02T03:04:05.000001Z", "tags": ["x"], "spot": [1.0, 0.5],
    }  # fmt: skip
    names = list(row)
    query = "match { $t: Thing } return { " + ", ".join(f"$t.{name} as {name}" for name in names) + " }"
    with og.init(tmp_path / "one", schema=EVERY_KIND) as one, og.init(tmp_path / "two", schema=EVERY_KIND) as two:
        one.load([{"type": "Thing", "data": row}, {"type": "Thing", "data": {"name": "b"}}], mode="append")
        found = one.query(f"query all() {{ {query} }}")
        two.load(found if form == "itself" else getattr(found, form)(), type="Thing", mode="append")
        assert two.query(f"query all() {{ {query} }}").rows() == found.rows()
