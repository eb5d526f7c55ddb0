"""Differences of many rows are read by scans instead of look-ups, and large ones are not kept: the answer is the same.

What counts as many is made small here.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import omnigraph as og
from omnigraph.ledger.history.dag import CommitGraph
from omnigraph.ledger.values import GraphCommit, WriterKind
from omnigraph.merge.compare import lineage, located, row_differences
from omnigraph.merge.compare.candidates import _may_have_restored
from omnigraph.merge.compare.located import VALUES, Located
from omnigraph.merge.decide import three_way
from omnigraph.merge.stage import stage_located
from omnigraph.storage.tables import TableStore
from omnigraph.storage.values import TableVersion
from tests.merge.graphs import ages, changed, city, drop, person, put

PEOPLE = [
    ("update", "Person", "p1"),
    ("delete", "Person", "p2"),
    ("update", "Person", "p3"),
    ("insert", "Person", "p9"),
]
CITIES = [(op, "City", "c" + id_[1:]) for op, _, id_ in PEOPLE]


@pytest.fixture
def diverged(graph: og.Graph) -> og.Graph:
    """A branch and `main` that differ in people, whose lineage is followed, and in cities, whose blobs forbid it."""
    put(graph, "main", *(make(f"{name}{n}") for make, name in ((person, "p"), (city, "c")) for n in range(5)))
    graph.branch_create("side")
    put(graph, "side", person("p1", age=1), person("p9"), city("c1", tags=["x"]), city("c9", map="AAA="))
    drop(graph, "side", "Person", "p2")
    drop(graph, "side", "City", "c2", by="name")
    put(graph, "main", person("p3", age=3), city("c3", map="AAE="))
    return graph


@pytest.mark.parametrize("many", [False, True])
def test_many_rows_are_read_by_scans(diverged: og.Graph, monkeypatch: pytest.MonkeyPatch, many: bool) -> None:
    looked_up: list[str] = []
    take_ids = TableStore.take_ids

    def noted(self: TableStore, table: TableVersion, *given: Any, **options: Any) -> pa.Table:
        looked_up.append(table.location)
        return take_ids(self, table, *given, **options)

    monkeypatch.setattr(TableStore, "take_ids", noted)
    if many:
        for module in (lineage, row_differences):
            monkeypatch.setattr(module, "SCAN_SHARE", 0)
            monkeypatch.setattr(module, "BATCH_ROWS", 0)
    assert sorted(changed(diverged, "main", "side")) == sorted(PEOPLE + CITIES)
    assert (looked_up == []) is many


@pytest.mark.parametrize(("most", "nulls"), [(0, 3), (1, 3), (2, 1)])
def test_the_rows_of_a_small_merge_are_kept_and_those_of_a_large_one_are_read_again(
    diverged: og.Graph, monkeypatch: pytest.MonkeyPatch, most: int, nulls: int
) -> None:
    """Two people are taken and one is deleted, of which nothing is kept."""
    put(diverged, "side", person("p4", age=4))
    found: list[Located] = []

    def noted(*given: Any) -> Located:
        found.append(located.located_rows(*given))
        return found[-1]

    monkeypatch.setattr(three_way, "located_rows", noted)
    monkeypatch.setattr(located, "KEPT_ROWS", most)
    diverged.merge("side")
    (people,) = [each for each in found if "p4" in each.compared["id"].to_pylist()]
    assert (people.compared.num_rows, people.compared[VALUES].null_count) == (3, nulls)
    assert ages(diverged) == {"p0": None, "p1": 1, "p3": 3, "p4": 4, "p9": None}


def test_rows_that_lie_together_keep_their_row_ids_wherever_they_lie(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stage_located, "ROWS_ANYHOW", 3)
    monkeypatch.setattr(stage_located, "ROWS_PER_UPDATE", 1)
    far = 10**12
    for row_ids, kept in (([far, far + 5], True), ([far, far + 6], False), ([0, 5], True), ([], False)):
        assert stage_located._kept_row_ids(pa.array(row_ids, pa.uint64())) == (row_ids if kept else [])


def test_a_commit_that_may_have_restored_something_is_found_whenever_it_comes() -> None:
    def commit(number: int, kind: WriterKind) -> GraphCommit:
        parent = f"c{number - 1}" if number else None
        return GraphCommit(f"c{number}", None, number, parent, None, None, number, kind, True, "main", "i", "d")

    for kind in (WriterKind.RECOVERY, WriterKind.REPAIR, WriterKind.RESTORE, WriterKind.REVERT):
        graph = CommitGraph([commit(0, WriterKind.INIT), commit(1, WriterKind.LOAD)])
        assert not _may_have_restored(graph)
        graph.add(commit(2, kind))
        assert _may_have_restored(graph)
        graph.add(commit(3, WriterKind.LOAD))
        assert _may_have_restored(graph)
        assert _may_have_restored(CommitGraph([commit(0, WriterKind.INIT), commit(1, kind)]))
