"""The internal schema stamp: forged old graphs are read as they are, and walked forward by an open for writing."""

import pytest

from omnigraph.failpoints import FailpointError, active
from omnigraph.ledger.branches import branches
from omnigraph.ledger.manifest.manifest_rows import KEY_COLUMN, MANIFEST
from omnigraph.ledger.manifest.stamp import CURRENT, read_stamp
from omnigraph.ledger.store import open_store
from omnigraph.read.entities import entity
from omnigraph.storage.objects.objects import open_objects
from omnigraph.storage.uri import parse_root
from tests.faults.harness import answers_of
from tests.ledger.graphs import KNOWS, PERSON, add_people, people
from tests.ledger.old_graphs import KNOWS_AT, PERSON_AT, forge, open_manifest
from tests.ledger.places import everything_at
from tests.ledger.processes import open_graph, run_killed


def assert_current(path, commit_ids):
    """The whole of a migrated graph."""
    store = open_store(path, read_only=True)
    assert people(store) == ["ada", "bob", "cyd"]
    assert people(store, "review/1") == ["ada", "bob", "dee"]
    assert [ref.name for ref in branches.list_branches(store)] == ["main", "review/1"]
    for line in (None, "review/1"):
        head = store.tables.head(MANIFEST, line)
        schema = store.tables.schema(head)
        assert read_stamp(schema) == CURRENT
        assert schema.field(KEY_COLUMN).metadata[b"lance-schema:unenforced-primary-key"] == b"true"
        kinds = sorted(row["object_type"] for row in store.tables.scan_table(head).to_pylist())
        assert kinds == ["graph_head", "table_version", "table_version"], "history is collapsed to current rows"
    assert [fork.name for fork in store.tables.list_forks(MANIFEST)] == ["review/1"]
    assert {key: pin.location for key, pin in store.snapshot().tables.items()} == {PERSON: PERSON_AT, KNOWS: KNOWS_AT}
    assert not store.objects.exists("_graph_runs.lance")
    assert not store.objects.exists("_graph_run_actors.lance")
    review = store.branch("review/1")
    assert (review.source_branch, review.source_incarnation) == ("main", store.branch("main").incarnation)
    if commit_ids:
        first, on_review, on_main = commit_ids
        assert store.snapshot().head.graph_commit_id == on_main
        assert store.snapshot("review/1").head.graph_commit_id == on_review
        assert [c.graph_commit_id for c in store.commits.log(on_review)] == [on_review, first]
        assert people(store, first) == ["ada", "bob"], "time travel to before the migration"
        assert people(store, 2) == ["ada", "bob"]
        assert [c.actor_id for c in store.commits.log(on_main)] == ["act-cyd", "act-ada"]


def assert_writable(path):
    store = open_store(path)
    first = add_people(store, "eve")
    add_people(store, "fay", branch="review/1")
    assert first.parent_commit_id in store.commits.graph()
    assert people(store) == ["ada", "bob", "cyd", "eve"]
    assert people(store, "review/1") == ["ada", "bob", "dee", "fay"]
    branches.create_branch(store, "new", "review/1")
    add_people(store, "gus", branch="new")
    assert people(store, "new") == ["ada", "bob", "dee", "fay", "gus"]


@pytest.mark.parametrize("stamp", [1, 2, 3])
def test_a_read_only_open_reads_an_old_graph_as_it_is(path, stamp):
    first, on_review, on_main = forge(path, stamp)
    before = everything_at(path)
    store = open_store(path, read_only=True)
    assert people(store) == ["ada", "bob", "cyd"]
    assert people(store, "review/1") == ["ada", "bob", "dee"]
    assert people(store, first) == people(store, 2) == ["ada", "bob"]
    assert [ref.name for ref in branches.list_branches(store)] == ["main", "review/1"]
    assert sorted(store.snapshot().tables) == [KNOWS, PERSON], "a tombstone counts"
    assert store.snapshot("review/1").head.graph_commit_id == on_review
    assert [c.graph_commit_id for c in store.commits.log(on_main)] == [on_main, first]
    assert entity(store, "Person", "dee", "review/1")["name"] == "dee"
    store.complete_log()
    assert everything_at(path) == before


@pytest.mark.parametrize("stamp", [1, 2, 3])
@pytest.mark.parametrize("with_log", [True, False], ids=["log", "no-log"])
def test_an_open_for_writing_walks_it_forward(path, stamp, with_log):
    commit_ids = forge(path, stamp, with_log=with_log)
    open_store(path)
    assert_current(path, commit_ids if with_log else [])
    before = everything_at(path)
    open_store(path)
    assert everything_at(path) == before, "a second open changes nothing"
    assert_writable(path)


def test_each_step_does_its_own_part_only(path):
    """v1 to v2 marks the key, v2 to v3 drops the runs, v3 to v4 does the rest."""
    forge(path, 1)
    with active("migrate.line", "raise:2"), pytest.raises(FailpointError):
        open_store(path)
    manifest = open_manifest(path)
    assert read_stamp(manifest.schema) == 2
    assert manifest.schema.field(KEY_COLUMN).metadata == {b"lance-schema:unenforced-primary-key": b"true"}
    assert "__run__01" in manifest.branches.list()
    with active("migrate.line", "raise:2"), pytest.raises(FailpointError):
        open_store(path)
    manifest = open_manifest(path)
    assert read_stamp(manifest.schema) == 3
    assert list(manifest.branches.list()) == ["review/1"]
    assert not open_objects(parse_root(path)).exists("_refs")
    open_store(path)
    assert read_stamp(open_manifest(path).schema) == 4


def test_run_names_are_ordinary_after_the_migration(path):
    forge(path, 2)
    store = open_store(path)
    branches.create_branch(store, "__run__01")
    add_people(store, "eve", branch="__run__01")
    assert people(open_store(path), "__run__01") == ["ada", "bob", "cyd", "eve"]


@pytest.mark.parametrize(
    ("failpoint", "hit"), [("migrate.line", 1), ("migrate.line", 5), ("migrate.refs", 1), ("migrate.log", 1)]
)
def test_killed_in_the_middle_it_reads_on_and_the_next_open_finishes(path, failpoint, hit):
    commit_ids = forge(path, 1)
    run_killed(open_graph, path, at=failpoint, hit=hit)
    half = open_store(path, read_only=True)
    assert people(half) == ["ada", "bob", "cyd"]
    assert people(half, "review/1") == ["ada", "bob", "dee"]
    assert half.snapshot("review/1").head.graph_commit_id == commit_ids[1]
    open_store(path)
    assert_current(path, commit_ids)
    assert_writable(path)


def test_processes_that_migrate_at_once_all_succeed(path):
    commit_ids = forge(path, 1)
    answers_of(open_graph, [(path,)] * 3)
    assert_current(path, commit_ids)
    assert_writable(path)
