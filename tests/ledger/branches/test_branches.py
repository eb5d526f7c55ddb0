"""Branches: made in an instant, whole or not at all; every refusal; leftovers that never matter."""

import threading
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from omnigraph.errors import BadRequest, Busy, Conflict, HistoryGap, NotFound
from omnigraph.failpoints import FailpointError, active
from omnigraph.ledger.branches import branches
from omnigraph.ledger.branches.refs import Refs, TagRef
from omnigraph.ledger.branches.schema_lock import (
    LOCK_PATH,
    current_schema_lock,
    drop_dead_schema_lock,
    hold_schema_lock,
)
from omnigraph.ledger.manifest.manifest_rows import MANIFEST
from omnigraph.ledger.snapshots import table_of
from omnigraph.ledger.store import create_store, open_store
from omnigraph.maintain.cleanup import cleanup
from tests.faults import harness
from tests.faults.harness import answers_of, wait_for
from tests.ledger.graphs import PERSON, SCHEMA, add_people, counted, people, publish_move
from tests.ledger.places import is_on_s3, let_leases_run_out
from tests.ledger.processes import (
    create_branch,
    create_branches,
    delete_branch,
    killed_with_the_schema_lock,
    run_killed,
)


def forks(store, table_key=PERSON):
    return [fork.name for fork in store.tables.list_forks(store.snapshot().pin(table_key).location)]


def test_a_branch_starts_at_its_source_and_goes_its_own_way(graph):
    add_people(graph, "ada")
    ref = branches.create_branch(graph, "review/1", actor="act-ada")
    assert ref.manifest_branch == f"b-{ref.incarnation}"
    assert (ref.source_branch, ref.source_commit) == ("main", graph.snapshot().head.graph_commit_id)
    assert ref.created_by == "act-ada"
    assert graph.snapshot("review/1").head == graph.snapshot().head
    add_people(graph, "bob", branch="review/1")
    add_people(graph, "cyd")
    assert people(graph, "review/1") == ["ada", "bob"]
    assert people(graph) == ["ada", "cyd"]
    assert graph.branch("review/1") == ref


def test_review_and_review_1_live_side_by_side(graph):
    for name in ("review/1", "review", "review/1/2"):
        branches.create_branch(graph, name)
        add_people(graph, f"on-{name.replace('/', '-')}", branch=name)
    assert [ref.name for ref in branches.list_branches(graph)] == ["main", "review", "review/1", "review/1/2"]
    branches.delete_branch(graph, "review")
    assert people(graph, "review/1") == ["on-review-1"]


def test_creating_a_branch_touches_no_table(graph, path):
    for name in ("ada", "bob"):
        add_people(graph, name)
    store = open_store(path)
    with counted(store) as calls:
        branches.create_branch(store, "b")
    assert [call for call in calls if "nodes/" in call or "edges/" in call] == []
    assert calls["fork"] == calls["fork __manifest"] == 1
    assert calls["commit"] == 0
    leases = 1 if is_on_s3(path) else 0
    assert calls["object put_if_absent"] == 1 + leases


def test_a_branch_can_start_at_any_target(graph):
    first = add_people(graph, "ada")
    add_people(graph, "bob")
    branches.create_branch(graph, "b", first.graph_commit_id)
    assert people(graph, "b") == ["ada"]
    branches.create_branch(graph, "c", "b")
    assert graph.branch("c").source_branch == "b"
    add_people(graph, "cyd", branch="c")
    assert people(graph, "c") == ["ada", "cyd"]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("main", "branch create: `main`"),
        ("__schema_apply_lock__", "branch create: `__schema_apply_lock__`"),
        ("a b", "branch create: `a b` is not a valid branch name"),
    ],
)
def test_create_refuses_main_system_and_invalid_names(graph, name, message):
    with pytest.raises(BadRequest, match=message):
        branches.create_branch(graph, name)


def test_create_refuses_an_existing_name_and_a_missing_source(graph):
    branches.create_branch(graph, "b")
    with pytest.raises(Conflict, match="branch create: there is a branch `b` already"):
        branches.create_branch(graph, "b")
    with pytest.raises(NotFound, match="`nowhere`"):
        branches.create_branch(graph, "c", "nowhere")
    with pytest.raises(BadRequest, match="__schema_apply_lock__"):
        branches.create_branch(graph, "c", "__schema_apply_lock__")


def test_create_needs_the_schema_apply_lock_idle(graph, path):
    other = open_store(path)
    with hold_schema_lock(other, "op-1"):
        with pytest.raises(Busy, match=r"branch create: a schema apply \(op-1\) is under way"):
            branches.create_branch(graph, "b")
        with pytest.raises(Busy), hold_schema_lock(graph, "op-2"):
            pass
        assert [ref.name for ref in branches.list_branches(graph)] == ["main"], "system refs are left out"
    assert not graph.objects.exists(LOCK_PATH)
    branches.create_branch(graph, "b")


def test_the_schema_apply_lock_of_a_dead_owner_blocks_nobody(graph, path):
    killed_with_the_schema_lock(path)
    assert graph.objects.exists(LOCK_PATH)
    assert current_schema_lock(graph) is None
    branches.create_branch(graph, "b")
    with hold_schema_lock(graph, "op-next") as held:
        assert current_schema_lock(graph) == held
    killed_with_the_schema_lock(path)
    assert drop_dead_schema_lock(graph)
    assert not graph.objects.exists(LOCK_PATH)
    assert not drop_dead_schema_lock(graph)


def test_delete_refuses_main_system_bound_missing_and_parents(graph):
    branches.create_branch(graph, "b")
    branches.create_branch(graph, "c", "b")
    with pytest.raises(BadRequest, match="branch delete: `main`"):
        branches.delete_branch(graph, "main")
    with pytest.raises(BadRequest, match="branch delete: `__schema_apply_lock__`"):
        branches.delete_branch(graph, "__schema_apply_lock__")
    with pytest.raises(BadRequest, match=r"branch delete: branches were made from `b` \(c\)"):
        branches.delete_branch(graph, "b")
    with pytest.raises(BadRequest, match="branch delete: this handle is bound to `c`"):
        branches.delete_branch(graph, "c", bound_to="c")
    with pytest.raises(NotFound, match="`d`"):
        branches.delete_branch(graph, "d")
    branches.delete_branch(graph, "c")
    branches.delete_branch(graph, "b")
    assert graph.refs.names() == ["main"]


def test_a_branch_made_again_is_another_incarnation_and_starts_from_its_source(graph):
    old = branches.create_branch(graph, "b")
    add_people(graph, "old", branch="b")
    branches.delete_branch(graph, "b")
    add_people(graph, "new")
    again = branches.create_branch(graph, "b")
    assert again.incarnation != old.incarnation
    assert people(graph, "b") == ["new"]
    add_people(graph, "more", branch="b")
    assert people(graph, "b") == ["more", "new"]


def test_a_branch_that_was_made_again_has_no_descendants_of_its_former_self(graph):
    branches.create_branch(graph, "b")
    branches.create_branch(graph, "c", "b")
    graph.refs.delete(graph.branch("b"))
    branches.create_branch(graph, "b")
    branches.delete_branch(graph, "b")
    assert graph.refs.names() == ["c", "main"]


def test_deleting_a_branch_reclaims_its_forks(graph):
    branches.create_branch(graph, "b")
    add_people(graph, "bob", branch="b")
    assert len(forks(graph)) == 1
    branches.delete_branch(graph, "b")
    assert forks(graph) == []
    assert people(graph) == []


def written_on_b_and_merged_into_main(graph):
    """A commit on `b` that main has merged, and the forks there are; `d` is there to merge it too."""
    branches.create_branch(graph, "b")
    branches.create_branch(graph, "d")
    shared = add_people(graph, "shared", branch="b")
    publish_move(graph, merged_parent_commit_id=shared.graph_commit_id)
    return shared, forks(graph)


def test_what_a_merge_base_of_live_branches_needs_is_kept(graph):
    shared, kept = written_on_b_and_merged_into_main(graph)
    publish_move(graph, branch="d", merged_parent_commit_id=shared.graph_commit_id)
    branches.delete_branch(graph, "b")
    assert forks(graph) == kept, "the merge base of main and d lies on b"
    assert people(graph, shared.graph_commit_id) == ["shared"]
    branches.create_branch(graph, "again", shared.graph_commit_id)
    assert people(graph, "again") == ["shared"]


def test_what_a_merge_base_on_a_deleted_child_needs_of_its_parent_is_kept(graph):
    branches.create_branch(graph, "b")
    add_people(graph, "shared", branch="b")
    kept = forks(graph)
    branches.create_branch(graph, "child", "b")
    branches.create_branch(graph, "d")
    base = publish_move(graph, branch="child")
    publish_move(graph, merged_parent_commit_id=base.graph_commit_id)
    publish_move(graph, branch="d", merged_parent_commit_id=base.graph_commit_id)
    branches.delete_branch(graph, "child")
    branches.delete_branch(graph, "b")
    assert forks(graph) == kept, "the merge base of main and d reads what b wrote"


def test_what_an_unlogged_merge_base_of_live_branches_needs_is_kept(graph):
    shared, kept = written_on_b_and_merged_into_main(graph)
    with active("publish.after", "raise"), pytest.raises(FailpointError):
        publish_move(graph, branch="d", merged_parent_commit_id=shared.graph_commit_id)
    branches.delete_branch(graph, "b")
    assert forks(graph) == kept


def test_deleting_a_merged_branch_reads_no_manifest_of_the_others(graph, path):
    branches.create_branch(graph, "b")
    commit = add_people(graph, "bob", branch="b")
    publish_move(graph, merged_parent_commit_id=commit.graph_commit_id)
    for number in range(3):
        branches.create_branch(graph, f"other/{number}")
        publish_move(graph, branch=f"other/{number}")
    fresh = open_store(path)
    with counted(fresh) as calls:
        branches.delete_branch(fresh, "b")
    assert calls[f"open {MANIFEST}"] == 1
    assert forks(graph) == []


def test_what_a_tag_names_is_kept(graph):
    branches.create_branch(graph, "b")
    commit = add_people(graph, "bob", branch="b")
    graph.refs.create_tag(TagRef("v1", commit.graph_commit_id))
    branches.delete_branch(graph, "b")
    assert people(graph, "v1") == ["bob"]


def test_starting_from_a_commit_whose_rows_are_reclaimed_is_a_gap(graph):
    branches.create_branch(graph, "b")
    commit = add_people(graph, "bob", branch="b")
    branches.delete_branch(graph, "b")
    with pytest.raises(HistoryGap, match="reclaimed"):
        branches.create_branch(graph, "c", commit.graph_commit_id)


def test_trouble_while_reclaiming_is_logged_and_never_raised(graph, caplog):
    branches.create_branch(graph, "b")
    add_people(graph, "bob", branch="b")
    location = graph.snapshot().pin(PERSON).location
    fork = graph.snapshot("b").pin(PERSON)
    graph.tables.create_fork(table_of(fork), "f-child")
    branches.delete_branch(graph, "b")
    assert graph.refs.names() == ["main"]
    assert "left for cleanup" in caplog.text
    assert len(graph.tables.list_forks(location)) == 2


def test_a_source_is_not_deleted_while_a_branch_is_being_made_from_it(graph, path, tmp_path):
    branches.create_branch(graph, "b")
    add_people(graph, "bob", branch="b")
    gate, outcome = tmp_path / "gate", []

    def delete():
        try:
            branches.delete_branch(open_store(path), "b")
        except BadRequest as error:
            outcome.append(error.message)

    with active("branch_create.before_ref", f"pause:{gate}"):
        making = threading.Thread(target=branches.create_branch, args=(graph, "c", "b"))
        making.start()
        wait_for(Path(f"{gate}.reached"))
        # It waits for the window, and looks at the descendants in there.
        deleting = threading.Thread(target=delete)
        deleting.start()
        time.sleep(0.3)
        assert deleting.is_alive()
        gate.touch()
        making.join()
        deleting.join()
    assert outcome == [
        "branch delete: branches were made from `b` (c); delete those first, or force it: they stay as they are"
    ]
    assert people(graph, "c") == ["bob"]


@pytest.mark.s3
def test_a_deleter_paused_past_its_lease_spares_the_branch_that_was_made_since(s3_uri, tmp_path):
    """On S3 only: on local disk a lease is a lock of the operating system, which a paused process keeps."""
    store, gate = create_store(s3_uri(), SCHEMA), tmp_path / "gate"
    branches.create_branch(store, "b")
    paused = harness.start_child(delete_branch, store.uri, "b", failpoints_on={"ref_delete.checked": f"pause:{gate}"})
    wait_for(Path(f"{gate}.reached"))
    let_leases_run_out(store.uri, paused.pid)
    branches.delete_branch(store, "b")
    branches.create_branch(store, "b")
    add_people(store, "bob", branch="b")
    gate.touch()
    assert harness.join(paused) != 0, "it finds out that it came too late"
    assert people(open_store(store.uri), "b") == ["bob"]


def test_a_failed_create_leaves_no_name_and_the_next_one_works(graph):
    with active("branch_create.before_ref", "raise"), pytest.raises(FailpointError):
        branches.create_branch(graph, "b")
    assert graph.refs.names() == ["main"]
    assert len(graph.tables.list_forks(MANIFEST)) == 1, "an unnamed Lance branch is left for cleanup"
    branches.create_branch(graph, "b")
    add_people(graph, "bob", branch="b")
    assert people(graph, "b") == ["bob"]


CREATE_FAILPOINTS = [
    "branch_create.before_manifest",
    "storage.fork.after",
    "branch_create.before_ref",
    "branch_create.after_ref",
]


@pytest.mark.parametrize("failpoint", CREATE_FAILPOINTS)
def test_killed_while_creating_the_name_exists_wholly_or_not_at_all(graph, path, failpoint):
    add_people(graph, "ada")
    run_killed(create_branch, path, "b", at=failpoint)
    store = open_store(path)
    exists = store.refs.get("b") is not None
    assert exists == (failpoint == "branch_create.after_ref")
    if not exists:
        branches.create_branch(store, "b")
    add_people(store, "bob", branch="b")
    assert people(store, "b") == ["ada", "bob"]
    assert people(store) == ["ada"]
    branches.delete_branch(store, "b")
    assert store.refs.names() == ["main"]


@pytest.mark.parametrize(
    "failpoint", ["branch_delete.before_ref", "branch_delete.after_ref", "branch_delete.between_forks"]
)
def test_killed_while_deleting_the_name_exists_wholly_or_not_at_all(graph, path, failpoint):
    add_people(graph, "ada")
    branches.create_branch(graph, "b")
    add_people(graph, "bob", branch="b")
    run_killed(delete_branch, path, "b", at=failpoint)
    store = open_store(path)
    exists = store.refs.get("b") is not None
    assert exists == (failpoint == "branch_delete.before_ref")
    if exists:
        assert people(store, "b") == ["ada", "bob"]
        branches.delete_branch(store, "b")
    branches.create_branch(store, "b")
    assert people(store, "b") == ["ada"], "a leftover fork never leaks into a new branch"
    add_people(store, "cyd", branch="b")
    assert people(store, "b") == ["ada", "cyd"]


@pytest.mark.parametrize("deleted", [False, True], ids=["live", "deleted"])
def test_a_fork_that_no_manifest_names_never_matters(graph, deleted):
    add_people(graph, "ada")
    ref = branches.create_branch(graph, "b")
    leftover = graph.tables.create_fork(table_of(graph.snapshot("b").pin(PERSON)), f"f-{ref.incarnation}")
    ghost = graph.tables.scan_table(leftover).set_column(0, "id", [["ghost"]])
    graph.tables.commit_staged(graph.tables.stage_append(leftover, ghost), "never published")
    if deleted:
        branches.delete_branch(graph, "b")
        branches.create_branch(graph, "b")
    assert people(graph, "b") == ["ada"]
    add_people(graph, "bob", branch="b")
    assert people(graph, "b") == ["ada", "bob"]


def test_an_unnamed_lance_branch_of_the_manifest_never_matters(graph):
    add_people(graph, "ada")
    start = graph.tables.head(MANIFEST)
    graph.tables.create_fork(start, "b-01ARZ3NDEKTSV4RRFFQ69G5FAV")
    graph.tables.create_fork(start, "b")
    assert [ref.name for ref in branches.list_branches(graph)] == ["main"]
    branches.create_branch(graph, "b")
    add_people(graph, "bob", branch="b")
    assert people(graph, "b") == ["ada", "bob"]


def test_many_processes_creating_the_same_names(graph, path):
    count = 2 if is_on_s3(path) else 6
    won = Counter(number for got in answers_of(create_branches, [(path, count)] * 4) for number in got)
    assert won == dict.fromkeys(range(count), 1)
    assert graph.refs.names() == ["main", *(f"n/{n}" for n in range(count))]
    for n in range(count):
        add_people(graph, f"p{n}", branch=f"n/{n}")
        assert people(graph, f"n/{n}") == [f"p{n}"]


def test_a_branch_with_children_is_deleted_by_force_and_they_keep_reading(graph):
    add_people(graph, "ada")
    branches.create_branch(graph, "parent")
    add_people(graph, "bob", branch="parent")
    branches.create_branch(graph, "child", "parent")
    branches.create_branch(graph, "writes", "parent")
    add_people(graph, "cyd", branch="writes")
    branches.create_branch(graph, "grandchild", "writes")
    with pytest.raises(BadRequest, match=r"made from `parent` \(child, writes\); delete those first, or force it"):
        branches.delete_branch(graph, "parent")
    branches.delete_branch(graph, "parent", force=True)
    branches.delete_branch(graph, "writes", force=True)
    assert [ref.name for ref in branches.list_branches(graph)] == ["child", "grandchild", "main"]
    for _ in range(2):
        assert people(graph, "child") == ["ada", "bob"]
        assert people(graph, "grandchild") == ["ada", "bob", "cyd"]
        cleanup(graph, keep_versions=1, confirm=True, force=True)
    add_people(graph, "dee", branch="child")
    add_people(graph, "eve", branch="grandchild")
    assert people(graph, "child") == ["ada", "bob", "dee"]
    assert people(graph, "grandchild") == ["ada", "bob", "cyd", "eve"]
    branches.create_branch(graph, "parent")
    assert people(graph, "parent") == ["ada"]
    branches.delete_branch(graph, "parent")
    branches.delete_branch(graph, "child")
    branches.delete_branch(graph, "grandchild")
    cleanup(graph, keep_versions=1, confirm=True, force=True)
    assert people(graph) == ["ada"]


def test_who_loses_the_race_for_a_name_leaves_no_line_of_the_manifest(graph, monkeypatch):
    create = Refs.create

    def late(self, ref):
        assert create(self, replace(ref, incarnation="quicker", manifest_branch=None))
        return create(self, ref)

    monkeypatch.setattr(Refs, "create", late)
    with pytest.raises(Conflict, match="already"):
        branches.create_branch(graph, "b")
    assert graph.tables.list_forks(MANIFEST) == []
