"""Opening a graph: what is there, what is not, and a read-only open that writes not one byte."""

from pathlib import Path

import pytest

from omnigraph.errors import BadRequest, NotFound
from omnigraph.ledger.branches import branches
from omnigraph.ledger.manifest.manifest import Manifest
from omnigraph.ledger.store import open_store
from omnigraph.read.entities import entity
from tests.ledger.graphs import add_people, people, publish_move
from tests.ledger.places import everything_at


def test_a_graph_comes_back_from_every_kind_of_store(graph, path):
    add_people(graph, "ada")
    with open_store(path) as store:
        assert store.graph_id == graph.graph_id
        assert people(store) == ["ada"]
        assert store.catalog(store.snapshot().schema_digest).node("Person") is not None


def test_there_is_no_graph_where_none_was_made(path):
    for read_only in (True, False):
        with pytest.raises(NotFound, match="omnigraph init"):
            open_store(path, read_only=read_only)


def test_looking_for_a_graph_makes_nothing(path):
    with pytest.raises(NotFound):
        open_store(path, read_only=True)
    assert not everything_at(path)


def test_looking_for_a_graph_makes_no_directory(local_path):
    with pytest.raises(NotFound):
        open_store(local_path, read_only=True)
    assert not Path(local_path).exists()


def test_a_read_only_open_and_every_read_change_not_one_byte(graph, path):
    first = add_people(graph, "ada")
    branches.create_branch(graph, "b")
    add_people(graph, "bob", branch="b")
    before = everything_at(path)
    store = open_store(path, read_only=True)
    people(store, "b")
    people(store, first.graph_commit_id)
    entity(store, "Person", "ada")
    store.commits.log(store.snapshot("b").head.graph_commit_id)
    branches.list_branches(store)
    store.close()
    assert everything_at(path) == before


def test_a_read_only_handle_refuses_to_write(graph, path):
    store = open_store(path, read_only=True)
    with pytest.raises(BadRequest, match="branch create: the graph was opened read-only"):
        branches.create_branch(store, "b")
    with pytest.raises(BadRequest, match="branch delete: the graph was opened read-only"):
        branches.delete_branch(store, "b")
    with pytest.raises(BadRequest, match="publish: the graph was opened read-only"):
        publish_move(store)


def test_two_handles_see_each_others_writes(graph, path):
    other = open_store(path)
    add_people(graph, "ada")
    assert people(other) == ["ada"]
    add_people(other, "bob")
    assert people(graph) == ["ada", "bob"]
    assert graph.branch("main") == other.branch("main")


def test_the_schema_of_a_branch_is_looked_up_once(graph, monkeypatch):
    branches.create_branch(graph, "b")
    expected = graph.snapshot("b").schema_digest
    read, reads = Manifest.read, []
    monkeypatch.setattr(Manifest, "read", lambda self, branch: reads.append(branch.name) or read(self, branch))
    assert [graph.last_schema("b"), graph.last_schema("b")] == [expected, expected]
    assert reads == ["b"]
