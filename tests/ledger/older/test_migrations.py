"""The internal schema stamp: forged old graphs are read as they are, and walked forward by an open for writing."""

import pytest

from omnigraph.errors import BadRequest
from omnigraph.failpoints import FailpointError, active
from omnigraph.ledger.branches import branches
from omnigraph.ledger.manifest.manifest_rows import KEY_COLUMN, MANIFEST
from omnigraph.ledger.manifest.stamp import CURRENT, STAMP_KEY, WRITER, WRITER_KEY, read_stamp
from omnigraph.ledger.older import old_log
from omnigraph.ledger.store import open_store
from omnigraph.maintain.cleanup import cleanup
from omnigraph.maintain.verify import verify
from omnigraph.read.entities import entity
from omnigraph.storage.objects.objects import open_objects
from omnigraph.storage.uri import parse_root
from tests.faults.harness import answers_of
from tests.ledger.graphs import KNOWS, PERSON, add_people, people
from tests.ledger.old_graphs import (
    DELETED_COMMIT,
    KNOWS_AT,
    PERSON_AT,
    forge,
    leave_recovery,
    leave_schema_lock,
    leave_write,
    open_manifest,
)
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
        assert [c.created_at for c in store.commits.log(on_review)] == [2_000_000, 1_000_000]
        assert store.commits.get(on_main).merged_parent_commit_id == DELETED_COMMIT


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
    assert [c.actor_id for c in store.commits.log(on_review)] == ["act-dee", "act-ada"]
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


def test_run_names_are_ordinary_since_version_3(path):
    """A branch of that name is somebody's work: it is not taken for a run of version 2."""
    forge(path, 3)
    open_manifest(path).create_branch("__run__mine", (None, 3), storage_options=parse_root(path).storage_options())
    assert people(open_store(path, read_only=True), "__run__mine") == ["ada", "bob", "cyd"]
    assert people(open_store(path), "__run__mine") == ["ada", "bob", "cyd"]


def test_a_branch_that_was_made_from_a_run_keeps_its_state(path):
    forge(path, 2)
    options = parse_root(path).storage_options()
    open_manifest(path).create_branch("kept", ("__run__02", 2), storage_options=options)
    store = open_store(path)
    assert people(store, "kept") == ["ada", "bob"]
    add_people(store, "eve", branch="kept")
    assert people(open_store(path), "kept") == ["ada", "bob", "eve"]


def test_the_lock_of_a_schema_change_is_dropped(path):
    forge(path, 3)
    leave_schema_lock(path)
    assert [ref.name for ref in branches.list_branches(open_store(path, read_only=True))] == ["main", "review/1"]
    store = open_store(path)
    assert [fork.name for fork in store.tables.list_forks(MANIFEST)] == ["review/1"]
    assert_writable(path)


def test_recoveries_are_kept(path):
    forge(path, 3)
    leave_recovery(path)
    told = [record.to_json() for record in open_store(path, read_only=True).audit.list()]
    assert told == [record.to_json() for record in open_store(path).audit.list()]
    assert told == [
        {
            "operation_id": "01H00000000000000000000REC",
            "kind": "RolledBack",
            "graph_commit_id": "01H0000000000000000000000C",
            "writer_kind": "Load",
            "recovery_for_actor": "act-kill",
            "branch": "main",
            "tables": [{"table_key": "node:Person", "from_version": 5, "to_version": 4}],
            "created_at": 4_000_000,
        }
    ]


@pytest.mark.parametrize(
    ("branch", "moved", "kind", "shown"),
    [
        (None, (0, 0), "RolledBack", (["ada", "bob", "cyd"], 0)),
        (None, (1, 0), "RolledBack", (["ada", "bob", "cyd"], 0)),
        (None, (1, 1), "RolledForward", (["ada", "bob", "cyd", "gus"], 1)),
        ("review/1", (0, 1), "RolledBack", (["ada", "bob", "dee"], 0)),
        ("review/1", (1, 1), "RolledForward", (["ada", "bob", "dee", "gus"], 1)),
    ],
)
def test_an_unfinished_write_ends_as_it_would_have(path, branch, moved, kind, shown):
    commit_ids = forge(path, 3)
    operation = leave_write(path, branch=branch, people=moved[0], edges=moved[1])
    before = people(open_store(path, read_only=True), branch or "main")
    assert "gus" not in before, "nothing is published yet"
    store = open_store(path)
    found, edges = shown
    assert people(store, branch or "main") == found
    assert store.snapshot(branch or "main").tables[KNOWS].row_count == edges
    record = store.audit.list()[0]
    assert (record.operation_id, record.kind.value, record.recovery_for_actor) == (operation, kind, "act-kill")
    assert store.sidecars.names() == []
    assert people(store, commit_ids[0]) == ["ada", "bob"]
    add_people(store, "zoe", branch=branch or "main")
    assert verify(store).ok


def test_an_unfinished_write_that_had_published_is_only_noted(path):
    forge(path, 3)
    leave_write(path, people=1, edges=1, published=True)
    store = open_store(path)
    assert people(store) == ["ada", "bob", "cyd", "gus"]
    assert [record.kind.value for record in store.audit.list()] == ["Completed"]
    assert verify(store).ok


def test_cleanup_keeps_the_branches_of_a_migrated_graph(path):
    """Their lines have names with slashes, and lie in directories below that of a name without a reference."""
    forge(path, 3)
    with open_store(path) as store:
        cleanup(store, keep_versions=1, confirm=True, force=True)
        assert people(store, "review/1") == ["ada", "bob", "dee"]
        assert verify(store).ok
    assert_writable(path)


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({STAMP_KEY: "5", WRITER_KEY: WRITER}, "upgrade omnigraph first"),
        ({STAMP_KEY: "4", WRITER_KEY: "omnigraph-rust"}, "export each branch with that program"),
        ({STAMP_KEY: "7"}, "export each branch with that program"),
    ],
)
def test_a_graph_of_a_later_layout_is_refused_with_what_to_do(path, schema, words):
    forge(path, 3)
    open_objects(parse_root(path)).put("__schema_state.json", b"{}")
    open_manifest(path).update_schema_metadata(schema)
    before = everything_at(path)
    for read_only in (True, False):
        with pytest.raises(BadRequest, match=words):
            open_store(path, read_only=read_only)
    assert everything_at(path) == before


@pytest.mark.parametrize(
    ("failpoint", "hit"),
    [
        *(("migrate.line", hit) for hit in range(1, 7)),
        ("migrate.refs", 1),
        ("migrate.log", 1),
        ("migrate.audit", 1),
        ("migrate.sidecars", 1),
    ],
)
def test_killed_in_the_middle_it_reads_on_and_the_next_open_finishes(path, failpoint, hit):
    commit_ids = forge(path, 1)
    leave_recovery(path)
    leave_write(path, people=1)
    run_killed(open_graph, path, at=failpoint, hit=hit)
    half = open_store(path, read_only=True)
    assert people(half) == ["ada", "bob", "cyd"]
    assert people(half, "review/1") == ["ada", "bob", "dee"]
    assert half.snapshot("review/1").head.graph_commit_id == commit_ids[1]
    assert len(half.audit.list()) == 1
    with open_store(path) as store:
        assert [record.kind.value for record in store.audit.list()] == ["RolledBack", "RolledBack"]
        assert people(store) == ["ada", "bob", "cyd"]
        assert verify(store).ok
    assert_writable(path)


def test_processes_that_migrate_at_once_all_succeed(path):
    commit_ids = forge(path, 1)
    answers_of(open_graph, [(path,)] * 3)
    assert_current(path, commit_ids)
    assert_writable(path)


def test_what_another_process_has_migrated_and_removed_meanwhile_is_not_missed(path, monkeypatch):
    commit_ids = forge(path, 3)
    read, others = old_log.rows_with_times, []

    def read_beside_another(tables, table, columns):
        if "kind" in columns and not others:  # the lines of the log are known, and none of them is read
            others.append(path)
            open_store(path).close()
        return read(tables, table, columns)

    monkeypatch.setattr(old_log, "rows_with_times", read_beside_another)
    with open_store(path):
        assert others
    assert_current(path, commit_ids)
    assert_writable(path)


@pytest.mark.parametrize("branch", ["main", "review/1"])
def test_a_commit_that_no_log_has_is_as_old_as_its_version(path, branch):
    forge(path, 3, with_log=False)
    store = open_store(path, read_only=True)
    head = store.snapshot(branch=branch).head
    made = {info.version: info.timestamp for info in store.tables.versions(MANIFEST, head.manifest_branch)}
    assert len(made) > 1
    assert head.created_at == int(made[head.manifest_version].timestamp() * 1_000_000)
