"""Marks: an open finds the branch whose last commit is not logged, without looking at the others."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from omnigraph.errors import StorageError, StorageKind, TableMoved
from omnigraph.failpoints import FailpointError, active
from omnigraph.ledger.branches.branches import create_branch, delete_branch
from omnigraph.ledger.history.log_rows import ID, LOG
from omnigraph.ledger.manifest.manifest_rows import MANIFEST
from omnigraph.ledger.manifest.publish import Publication, publish
from omnigraph.ledger.recovery.recover import heal
from omnigraph.ledger.recovery.sidecars import SIDECAR_PREFIX
from omnigraph.ledger.store import GraphStore, open_store
from omnigraph.storage.handles.handles import Handles
from tests.faults.writers import put_people
from tests.ledger.graphs import PERSON, draft, moved, publish_move


def unfinished(store: GraphStore) -> list[str]:
    return [entry.path for entry in store.objects.list(SIDECAR_PREFIX)]


def is_logged(store: GraphStore, commit_id: str) -> bool:
    return commit_id in store.tables.scan_table(store.tables.head(LOG), columns=[ID])[ID].to_pylist()


def head_id(store: GraphStore, branch: str) -> str:
    return store.snapshot(branch=branch).head.graph_commit_id


@contextmanager
def broken_log(store: GraphStore) -> Iterator[None]:
    def refuse(name: str, location: str) -> None:
        if (name, location) == ("commit", LOG):
            raise StorageError("the store is in trouble", StorageKind.TRANSIENT)

    store.tables.on_call = refuse
    try:
        yield
    finally:
        store.tables.on_call = None


def test_opening_for_writing_opens_as_many_lines_with_many_branches_as_with_one(
    graph: GraphStore, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    monkeypatch.setattr(Handles, "called", lambda self, name, location: opened.append(f"{name} {location}"))
    counts = []
    for number in range(3):
        opened.clear()
        open_store(path)
        counts.append(opened.count(f"open {MANIFEST}"))
        create_branch(graph, f"b{number}")
    assert counts == [1, 1, 1]


def test_a_write_whose_commit_cannot_be_logged_is_logged_by_the_next_open(store: GraphStore, path: str) -> None:
    create_branch(store, "b")
    with broken_log(store):
        commit = put_people(store, {"bob": 1}, "b")
    assert not is_logged(store, commit.graph_commit_id)
    reopened = open_store(path)
    assert is_logged(reopened, commit.graph_commit_id)
    assert unfinished(reopened) == []


def test_a_commit_that_could_not_be_logged_is_logged_by_a_write_to_another_branch(store: GraphStore) -> None:
    create_branch(store, "b")
    with broken_log(store):
        commit = put_people(store, {"bob": 1}, "b")
    put_people(store, {"carl": 1})
    assert is_logged(store, commit.graph_commit_id)
    assert unfinished(store) == []


def test_the_mark_of_a_publisher_at_work_stays(graph: GraphStore, path: str) -> None:
    create_branch(graph, "b")
    with active("publish.after", "raise"), pytest.raises(FailpointError):
        publish_move(graph, branch="b")
    with graph.windows.enter(graph.branch("b"), ()):
        other = open_store(path)
        assert is_logged(other, head_id(other, "b"))
        assert len(unfinished(other)) == 1
    heal(graph)
    assert unfinished(graph) == []


def test_a_publish_that_landed_or_lost_leaves_no_mark(graph: GraphStore) -> None:
    base = graph.snapshot()
    pin = base.pin(PERSON)
    publish_move(graph)
    assert unfinished(graph) == []
    with pytest.raises(TableMoved):
        publish(graph, base.branch, Publication(draft(base), updates=(moved(pin),)), expected={PERSON: pin})
    assert unfinished(graph) == []


def test_the_mark_of_a_deleted_branch_goes(graph: GraphStore, path: str) -> None:
    create_branch(graph, "b")
    with active("publish.after", "raise"), pytest.raises(FailpointError):
        publish_move(graph, branch="b")
    lost = head_id(graph, "b")
    delete_branch(graph, "b")
    create_branch(graph, "b")
    assert is_logged(graph, lost)
    assert unfinished(open_store(path)) == []


def test_a_damaged_mark_makes_the_next_open_look_at_every_branch(graph: GraphStore, path: str) -> None:
    create_branch(graph, "b")
    with active("publish.after", "raise"), pytest.raises(FailpointError):
        publish_move(graph, branch="b")
    (mark,) = unfinished(graph)
    graph.objects.put(mark, b"{")
    reopened = open_store(path)
    assert is_logged(reopened, head_id(reopened, "b"))
    assert unfinished(reopened) == []


def test_a_mark_that_cannot_be_put_stops_the_publish(graph: GraphStore) -> None:
    before = head_id(graph, "main")
    with active("publish.marked", "raise"), pytest.raises(FailpointError):
        publish_move(graph)
    assert head_id(graph, "main") == before
    heal(graph)
    assert unfinished(graph) == []
