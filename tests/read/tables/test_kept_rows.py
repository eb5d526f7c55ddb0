"""A row that was looked up is kept for as long as its files stay what they are, and is never another than is stored."""

from __future__ import annotations

from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.read.tables.caches import caches_of
from omnigraph.storage.tables import TableStore

SCHEMA = "node Person { name: String @key age: I32? }\nedge Knows: Person -> Person\n"
INSERT = "query q($who: String, $age: I32) { insert Person { name: $who, age: $age } }"
SET = "query q($who: String, $age: I32) { update Person set { age: $age } where name = $who }"
GONE = "query q($who: String) { delete Person where name = $who }"
READ = "query q($who: String) { match { $p: Person { name: $who } } return { $p.age } }"


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    graph = og.init(tmp_path / "graph", schema=SCHEMA)
    graph.mutate(INSERT, who="ada", age=36)
    return graph


def age(graph: og.Graph, who: str = "ada", branch: str = "main") -> list[int | None]:
    return [row["p.age"] for row in graph.query(READ, who=who, branch=branch).rows()]


def test_writes_of_other_rows_do_not_have_it_read_again(graph: og.Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    assert age(graph) == [36]
    for number in range(4):
        graph.mutate(INSERT, who=f"p{number}", age=number)

    def read(self: TableStore, *given: object, **options: object) -> None:
        raise AssertionError("the table was read")

    monkeypatch.setattr(TableStore, "scan_table", read)
    monkeypatch.setattr(TableStore, "scan", read)
    monkeypatch.setattr(TableStore, "row_of_id", read)
    monkeypatch.setattr(TableStore, "rows_of_ids", read)
    assert age(graph) == [36]


def test_a_change_of_the_row_is_seen(graph: og.Graph) -> None:
    assert age(graph) == [36]
    graph.mutate(SET, who="ada", age=37)
    assert age(graph) == [37]
    graph.branch_create("review", "main")
    graph.mutate(SET, who="ada", age=99, branch="review")
    assert (age(graph), age(graph, branch="review")) == ([37], [99])
    graph.mutate(GONE, who="ada")
    assert (age(graph), age(graph, branch="review")) == ([], [99])
    graph.mutate(INSERT, who="ada", age=1)
    assert (age(graph), age(graph, branch="review")) == ([1], [99])


def test_a_deletion_beside_it_in_the_same_file_is_seen(graph: og.Graph) -> None:
    rows = (
        b'{"type": "Person", "data": {"name": "bob", "age": 1}}\n{"type": "Person", "data": {"name": "eve", "age": 2}}'
    )
    graph.load(rows, mode="append")
    assert (age(graph, "bob"), age(graph, "eve")) == ([1], [2])
    graph.mutate(GONE, who="bob")
    assert (age(graph, "bob"), age(graph, "eve")) == ([], [2])


def test_a_column_that_takes_the_name_of_another_is_not_mistaken_for_it(graph: og.Graph) -> None:
    assert age(graph) == [36]
    renamed = 'node Person { name: String @key years: I32? @rename_from("age") }'
    graph.apply_schema(f"{renamed}\nedge Knows: Person -> Person\n")
    graph.apply_schema("node Person { name: String @key years: I32? age: I32? }\nedge Knows: Person -> Person\n")
    assert age(graph) == [None]


def test_few_are_kept(graph: og.Graph) -> None:
    for number in range(300):
        age(graph, f"nobody-{number}")
    assert caches_of(graph._store).rows.report().entries <= 256
