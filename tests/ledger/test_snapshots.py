"""Snapshots and time travel: every kind of target, each with its own schema, whatever happened since."""

import pytest

from omnigraph.errors import BadRequest, HistoryGap, NotFound
from omnigraph.ledger.branches import branches
from omnigraph.ledger.branches.refs import TagRef
from omnigraph.ledger.manifest.manifest_rows import MANIFEST
from omnigraph.ledger.manifest.publish import Publication, publish
from omnigraph.ledger.snapshots import table_of
from omnigraph.ledger.store import open_store
from omnigraph.read.entities import entity
from omnigraph.schema.compiler.compile import compile_schema
from tests.ledger.graphs import PERSON, SCHEMA, add_people, counted, draft, people, publish_move


def test_every_kind_of_target(graph):
    first = add_people(graph, "ada")
    second = add_people(graph, "bob")
    branches.create_branch(graph, "review/1")
    third = add_people(graph, "cyd", branch="review/1")
    graph.refs.create_tag(TagRef("v1", first.graph_commit_id))
    assert people(graph) == people(graph, "main") == people(graph, second.graph_commit_id) == ["ada", "bob"]
    assert people(graph, "review/1") == people(graph, third.graph_commit_id) == ["ada", "bob", "cyd"]
    assert (
        people(graph, "v1") == people(graph, 2) == people(graph, "2") == people(graph, first.graph_commit_id) == ["ada"]
    )
    assert people(graph, 1) == []
    assert people(graph, third.manifest_version, branch="review/1") == ["ada", "bob", "cyd"]
    assert people(graph, first.graph_commit_id.lower()) == ["ada"]
    assert graph.snapshot("review/1").head == third


def test_a_manifest_version_from_before_the_branch_is_that_of_its_source(graph):
    add_people(graph, "ada")
    add_people(graph, "bob")
    branches.create_branch(graph, "b")
    add_people(graph, "cyd", branch="b")
    add_people(graph, "dee")
    assert people(graph, 2, branch="b") == ["ada"]
    assert people(graph, 3, branch="b") == ["ada", "bob"]
    assert people(graph, 4, branch="b") == ["ada", "bob", "cyd"]
    assert people(graph, 4, branch="main") == ["ada", "bob", "dee"]


def test_unknown_targets_are_not_found_with_a_suggestion(graph):
    branches.create_branch(graph, "review")
    with pytest.raises(NotFound, match="did you mean `review`"):
        graph.snapshot("reveiw")
    with pytest.raises(NotFound, match=r"no branch `reviews`.*did you mean `review`"):
        graph.snapshot(branch="reviews")
    with pytest.raises(NotFound, match="no manifest version 99: its newest is 1"):
        graph.snapshot(99)
    with pytest.raises(BadRequest, match="from 1 on"):
        graph.snapshot(0)
    with pytest.raises(BadRequest, match="snapshot: `__schema_apply_lock__`"):
        graph.snapshot("__schema_apply_lock__")
    with pytest.raises(BadRequest, match="__schema_apply_lock__"):
        graph.branch("__schema_apply_lock__")


def test_a_read_at_a_target_uses_the_schema_of_that_snapshot(graph):
    base = graph.snapshot()
    source = SCHEMA.replace("age: I32?", "age: I32?\n    email: String?")
    catalog = compile_schema(source, graph.catalog(base.schema_digest))
    digest = graph.schemas.put(source, catalog)
    publish(graph, base.branch, Publication(draft(base), schema_digest=digest))
    old, new = graph.snapshot(base.head.graph_commit_id), graph.snapshot()
    assert "email" not in graph.catalog(old.schema_digest).node("Person").by_name
    assert "email" in graph.catalog(new.schema_digest).node("Person").by_name
    assert graph.snapshot(base.manifest_version).schema_digest == base.schema_digest


def test_after_cleanup_of_the_manifest_the_pins_in_the_log_stand_in(graph, path):
    first = add_people(graph, "ada")
    for name in ("bob", "cyd", "dee"):
        add_people(graph, name)
    graph.tables.remove_versions(MANIFEST, None, [1, 2, 3])
    fresh = open_store(path, read_only=True)
    assert people(fresh, first.graph_commit_id) == ["ada"]
    assert people(fresh, 2) == ["ada"]
    assert people(fresh, 3) == ["ada", "bob"]
    assert fresh.snapshot(first.graph_commit_id).head == first


def test_branching_from_a_manifest_version_that_is_gone_says_so(graph):
    first = add_people(graph, "ada")
    add_people(graph, "bob")
    graph.tables.remove_versions(MANIFEST, None, [2])
    graph.manifest.forget()
    with pytest.raises(HistoryGap, match=first.graph_commit_id):
        branches.create_branch(graph, "b", first.graph_commit_id)
    assert graph.refs.get("b") is None


def test_a_reader_pinned_to_a_snapshot_sees_the_same_rows_whatever_others_do(graph, path):
    add_people(graph, "ada", "bob")
    pinned = open_store(path, read_only=True).snapshot()
    for number in range(4):
        add_people(graph, f"p{number}")
    reader = open_store(path, read_only=True)
    rows = reader.tables.scan_table(table_of(pinned.pin(PERSON)), columns=["id"])["id"].to_pylist()
    assert sorted(rows) == ["ada", "bob"]


def test_the_commits_of_a_deleted_branch_stay_readable_while_its_rows_are_there(graph):
    branches.create_branch(graph, "b")
    commit = publish_move(graph, branch="b")
    branches.delete_branch(graph, "b")
    found = graph.snapshot(commit.graph_commit_id)
    assert (found.head, found.branch.name) == (commit, "b")
    with pytest.raises(NotFound):
        graph.snapshot("b")


def test_entity_reads_one_row_of_one_table_at_any_target(graph):
    commit = add_people(graph, "ada")
    branches.create_branch(graph, "b")
    add_people(graph, "bob", branch="b")
    assert entity(graph, "Person", "ada") == {"@id": "ada", "name": "ada", "age": None}
    assert entity(graph, "Person", "bob") is None
    assert entity(graph, "node:Person", "bob", "b")["name"] == "bob"
    assert entity(graph, "Person", "ada", 1) is None
    assert entity(graph, "Knows", "nothing", commit.graph_commit_id) is None
    with pytest.raises(NotFound, match="did you mean `Person`"):
        entity(graph, "Persom", "ada")


def test_entity_opens_the_manifest_and_one_table(graph, path):
    reader = open_store(path, read_only=True)
    add_people(graph, "ada")
    location = graph.snapshot().pin(PERSON).location
    with counted(reader) as calls:
        entity(reader, "Person", "ada")
    assert (calls["open"], calls["open __manifest"], calls[f"open {location}"]) == (2, 1, 1)


def test_entity_of_rows_that_cleanup_removed_is_a_gap(graph):
    first = add_people(graph, "ada")
    add_people(graph, "bob")
    location = graph.snapshot().pin(PERSON).location
    graph.tables.remove_versions(location, None, [first.manifest_version])
    with pytest.raises(HistoryGap, match="removed by cleanup"):
        entity(graph, "Person", "ada", first.graph_commit_id)
