"""A schema apply and the making of a branch at the same time: never a branch whose rows are gone."""

from __future__ import annotations

import pytest

import omnigraph as og
from omnigraph.errors import Busy, Conflict, HistoryGap, NotFound
from omnigraph.failpoints import active
from omnigraph.ledger.branches import branches
from omnigraph.ledger.branches.schema_lock import hold_schema_lock
from omnigraph.ledger.manifest.manifest_rows import MANIFEST
from omnigraph.merge import merge as merging
from tests.merge.graphs import PERSON, SCHEMA, person, put, rows, store_of

NEXT = SCHEMA.replace("age: I32?", "age: I32?\n    mood: String?")


@pytest.fixture
def before_the_ref(monkeypatch: pytest.MonkeyPatch):
    """Something that happens after a branch was prepared and before its ref object is made."""

    def happens(work) -> None:
        meet = branches.failpoint

        def failpoint(name: str) -> None:
            if name == "branch_create.before_ref":
                work()
            meet(name)

        monkeypatch.setattr(branches, "failpoint", failpoint)

    return happens


def manifest_branches(graph: og.Graph) -> list[str]:
    return [fork.name for fork in store_of(graph).tables.list_forks(MANIFEST)]


def test_a_branch_keeps_the_schema_of_its_source_when_that_changes_while_it_is_made(
    graph: og.Graph, before_the_ref
) -> None:
    put(graph, "main", person("a"))
    before_the_ref(lambda: graph.apply_schema(NEXT))
    graph.branch_create("side")
    assert "mood" in graph.catalog().nodes[1].by_name
    assert "mood" not in graph.catalog("side").nodes[1].by_name


def test_a_branch_is_taken_back_when_a_hard_drop_took_its_rows_while_it_was_made(
    graph: og.Graph, before_the_ref
) -> None:
    put(graph, "main", person("a"))
    before_the_ref(lambda: graph.apply_schema(SCHEMA.replace("weight: F64?", ""), allow_data_loss=True))
    with pytest.raises(HistoryGap, match="reclaimed"):
        graph.branch_create("side")
    assert graph.branch_list() == ["main"]
    assert manifest_branches(graph) == []


def test_a_branch_is_taken_back_while_a_schema_apply_is_under_way(graph: og.Graph, before_the_ref) -> None:
    put(graph, "main", person("a"))
    held = hold_schema_lock(store_of(graph), "op-1")
    before_the_ref(held.__enter__)
    with pytest.raises(Busy, match="op-1"):
        graph.branch_create("side")
    held.__exit__(None, None, None)
    assert graph.branch_list() == ["main"]
    assert manifest_branches(graph) == []


def test_a_hard_drop_that_comes_after_the_ref_refuses(graph: og.Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    put(graph, "main", person("a"))
    met = branches.failpoint

    def failpoint(name: str) -> None:
        if name == "branch_create.after_ref":
            with pytest.raises(Conflict, match="branch `side` has node:Person too"):
                graph.apply_schema(SCHEMA.replace("weight: F64?", ""), allow_data_loss=True)
        met(name)

    monkeypatch.setattr(branches, "failpoint", failpoint)
    graph.branch_create("side")
    assert graph.branch_list() == ["main", "side"]


def test_a_branch_from_a_commit_with_an_older_schema_reads_and_writes_with_it(graph: og.Graph) -> None:
    put(graph, "main", person("a", weight=1.5))
    old = graph.head().graph_commit_id
    graph.apply_schema(SCHEMA.replace("weight: F64?", "mood: String?"))
    graph.branch_create("side", old)
    put(graph, "side", person("b", weight=2.5))
    assert {key: row["weight"] for key, row in rows(graph, PERSON, "side").items()} == {"a": 1.5, "b": 2.5}
    assert "weight" not in rows(graph, PERSON)["a"]


def test_a_crash_right_after_the_ref_leaves_a_branch_that_can_be_deleted(graph: og.Graph) -> None:
    put(graph, "main", person("a"))
    with active("branch_create.after_ref", "raise"), pytest.raises(Exception, match=r"branch_create\.after_ref"):
        graph.branch_create("side")
    assert graph.branch_list() == ["main", "side"]
    graph.branch_delete("side")


def test_a_source_that_is_deleted_while_it_is_merged_is_said_so(
    graph: og.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(graph, "main", person("a"))
    graph.branch_create("side")
    put(graph, "side", person("b"))
    run_write = merging.run_write

    def after_the_deletion(*args, **options):
        graph.branch_delete("side")
        return run_write(*args, **options)

    monkeypatch.setattr(merging, "run_write", after_the_deletion)
    before = graph.head()
    with og.open(store_of(graph).uri) as other, pytest.raises(NotFound, match="`side` was deleted while"):
        other.merge("side")
    assert graph.head() == before
