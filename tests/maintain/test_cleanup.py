"""Cleanup: what goes, what stays, and what it refuses."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from ulid import ULID

from omnigraph import failpoints
from omnigraph.config import override
from omnigraph.errors import BadRequest, Busy, HistoryGap, OmniGraphError, RecoveryRequired
from omnigraph.graph import Graph
from omnigraph.ledger.branches.branches import create_branch, delete_branch
from omnigraph.ledger.branches.schema_lock import hold_schema_lock
from omnigraph.ledger.commit.staging_marks import MARKS, any_marked, put_mark
from omnigraph.ledger.snapshots import table_of
from omnigraph.ledger.store import GraphStore, open_store
from omnigraph.ledger.values import GraphCommit
from omnigraph.maintain.cleanup import CleanedTable, cleanup
from omnigraph.maintain.optimize.optimize import optimize
from omnigraph.maintain.tags import Tags
from omnigraph.maintain.verify import verify
from omnigraph.merge.merge import merge
from omnigraph.read.entities import entity
from tests.faults.harness import run_killed
from tests.maintain.graphs import KNOWS, PERSON, content, files, interrupted, knows, people, put


def row(store: GraphStore, key: str = PERSON, **options) -> CleanedTable:
    result = cleanup(store, **{"keep_versions": 3, "confirm": True, **options})
    assert not result.failed, result
    return next(table for table in result.tables if table.table_key == key)


def history(store: GraphStore, number: int = 8, branch: str = "main") -> list[GraphCommit]:
    start = len(people(store, branch=branch))
    return [put(store, branch, **{f"p{i}": i}) for i in range(start, start + number)]


def versions(store: GraphStore, key: str = PERSON, branch: str = "main") -> list[int]:
    pin = store.snapshot(branch=branch).pin(key)
    return [info.version for info in store.tables.versions(pin.location, pin.lance_branch)]


def readable(store: GraphStore, commit: GraphCommit) -> bool:
    try:
        people(store, commit.graph_commit_id)
    except OmniGraphError:
        return False
    return True


# --- the rules of retention -----------------------------------------------------------------------------------------


def test_needs_a_retention(store: GraphStore) -> None:
    with pytest.raises(BadRequest, match="keep_versions, older_than"):
        cleanup(store)


def test_keep_under_three_needs_force(store: GraphStore) -> None:
    history(store)
    with pytest.raises(BadRequest, match="recovery may need"):
        cleanup(store, keep_versions=2, confirm=True)
    assert row(store, keep_versions=1, force=True).old_versions_removed == 8
    assert len(versions(store)) == 1


def test_age_alone_keeps_three_commits_unless_forced(store: GraphStore) -> None:
    commits = history(store)
    cleanup(store, older_than=0.0, confirm=True)
    assert [readable(store, commit) for commit in commits[-4:]] == [False, True, True, True]


def test_previews_unless_confirmed(store: GraphStore) -> None:
    history(store)
    before = files(store)
    preview = cleanup(store, keep_versions=3)
    assert preview.preview
    assert next(t for t in preview.tables if t.table_key == PERSON).old_versions_removed == 6
    assert files(store) == before


def test_keeps_the_newest_commits_of_each_branch_and_removes_the_rest(store: GraphStore) -> None:
    on_main = history(store)
    create_branch(store, "review")
    on_review = history(store, 6, "review")
    assert row(store).old_versions_removed == 6 + 3
    for commits in (on_main, on_review):
        assert all(readable(store, commit) for commit in commits[-3:])
    # The head of main is where review starts, so it is the merge base; everything before the third newest went.
    assert not readable(store, on_main[4])
    assert not readable(store, on_review[2])
    assert len(people(store)) == 8


def test_with_both_a_commit_goes_only_if_it_is_past_both(store: GraphStore) -> None:
    commits = history(store)
    assert row(store, older_than=3600.0).old_versions_removed == 0
    assert all(readable(store, commit) for commit in commits)
    assert row(store, keep_versions=5, older_than=0.0).old_versions_removed == 4


def test_commits_whose_data_is_gone_stay_listed_and_say_so(store: GraphStore) -> None:
    commits = history(store)
    row(store)
    with open_store(store.uri) as reopened:
        head = reopened.snapshot().head.graph_commit_id
        listed = [commit.graph_commit_id for commit in reopened.commits.log(head)]
        assert listed[:8] == [commit.graph_commit_id for commit in commits[::-1]]
        with pytest.raises(HistoryGap, match="removed by cleanup"):
            entity(reopened, "Person", "p0", commits[1].graph_commit_id)
        query = "query all() { match { $p: Person } return { $p.name } }"
        with pytest.raises(HistoryGap, match="cleanup has removed"):
            Graph(reopened).query(query, at=commits[1].graph_commit_id)
        assert len(Graph(reopened).query(query, at=commits[-1].graph_commit_id)) == 8


def test_a_tag_keeps_its_commit(store: GraphStore) -> None:
    commits = history(store)
    tags = Tags(store, "main", None)
    tags.create("v1", commits[1].graph_commit_id)
    row(store)
    assert people(store, "v1") == {"p0": 0, "p1": 1}
    create_branch(store, "from-tag", "v1")
    assert people(store, branch="from-tag") == {"p0": 0, "p1": 1}
    tags.delete("v1")
    delete_branch(store, "from-tag")
    with override(cleanup_grace=0.0):
        row(store)
    assert not readable(store, commits[1])


def test_a_tag_or_a_branch_at_a_removed_commit_is_refused(store: GraphStore) -> None:
    commits = history(store)
    row(store)
    for work in (
        lambda: Tags(store, "main", None).create("late", commits[0].graph_commit_id),
        lambda: create_branch(store, "late", commits[0].graph_commit_id),
    ):
        with pytest.raises(HistoryGap, match="reclaimed"):
            work()


def test_a_merge_base_stays_and_the_merge_works(store: GraphStore) -> None:
    put(store, ada=1, bob=2)
    create_branch(store, "review")
    put(store, "review", ada=10)
    for age in range(20, 28):
        put(store, bob=age)
    row(store)
    merge(store, "review", "main")
    assert people(store) == {"ada": 10, "bob": 27}


# --- forks ----------------------------------------------------------------------------------------------------------


def orphan(store: GraphStore, key: str = PERSON) -> tuple[str, str]:
    pin = store.snapshot().pin(key)
    return pin.location, store.tables.create_fork(table_of(pin), f"f-{ULID()}").branch or ""


def fork_names(store: GraphStore, location: str) -> set[str]:
    return {fork.name for fork in store.tables.list_forks(location)}


def test_orphaned_forks_go_after_the_grace_period_and_live_ones_stay(store: GraphStore) -> None:
    put(store, ada=1)
    create_branch(store, "review")
    put(store, "review", bob=2)
    location, _ = orphan(store)
    assert row(store).forks_removed == 0
    with override(cleanup_grace=0.0):
        assert row(store).forks_removed == 1
    assert fork_names(store, location) == {store.snapshot(branch="review").pin(PERSON).lance_branch}
    assert people(store, branch="review") == {"ada": 1, "bob": 2}


def test_what_went_and_what_could_not_go_is_logged(
    store: GraphStore, no_grace: None, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    history(store)
    _, name = orphan(store)
    with caplog.at_level("INFO", "omnigraph"):
        cleanup(store, keep_versions=3, confirm=True, actor="act-ada")
        create_branch(store, "review")
        delete_branch(store, "review", actor="act-bob")
        Tags(store, "main", "act-cy").create("v1")
        Tags(store, "main", "act-cy").delete("v1")
    told = caplog.text
    assert f"{PERSON}: reclaimed 1 forks of ['{name}']" in told
    assert f"cleanup for act-ada: {PERSON}: 1 forks, " in told
    assert "branch review was deleted by act-bob" in told
    assert "tag v1 was deleted by act-cy" in told
    caplog.clear()
    history(store)

    def refuse(*_: object) -> int:
        raise OSError("the disk is on fire")

    monkeypatch.setattr(store.tables, "remove_versions", refuse)
    assert cleanup(store, keep_versions=3, confirm=True).failed
    assert f"cleanup: {PERSON}: something stays: the disk is on fire" in caplog.text


def test_children_go_before_their_parents(store: GraphStore, no_grace: None) -> None:
    put(store, ada=1)
    location, parent = orphan(store)
    line = store.tables.head(location, parent)
    store.tables.create_fork(line, f"f-{ULID()}")
    assert row(store).forks_removed == 2
    assert fork_names(store, location) == set()


def test_a_fork_without_a_reference_goes(store: GraphStore, no_grace: None) -> None:
    put(store, ada=1)
    location, name = orphan(store)
    store.objects.delete(f"{location}/_refs/branches/{name}.json")
    assert row(store).forks_removed == 1
    assert not any(f"/tree/{name}/" in path for path in files(store, location))


def test_a_live_writer_protects_what_is_younger_than_it(store: GraphStore, no_grace: None) -> None:
    put(store, ada=1)
    with store.leases.acquire("writer-test", "somebody at work"):
        location, name = orphan(store)
        assert row(store).forks_removed == 0
        assert name in fork_names(store, location)
    assert row(store).forks_removed == 1


def test_a_live_writer_protects_the_heads_it_may_have_read(store: GraphStore) -> None:
    commits = history(store, 3)
    with store.leases.acquire("writer-test", "somebody at work"):
        later = history(store, 6)
        row(store, keep_versions=1, force=True)
        assert all(readable(store, commit) for commit in [commits[-1], *later])
    row(store, keep_versions=1, force=True)
    assert not readable(store, commits[-1])


def test_unnamed_manifest_branches_go(store: GraphStore, no_grace: None) -> None:
    history(store, 2)
    with pytest.raises(failpoints.FailpointError), failpoints.active("branch_create.before_ref", "raise"):
        create_branch(store, "review")
    create_branch(store, "live")
    put(store, "live", bob=1)
    assert row(store, "__manifest").forks_removed == 1
    assert fork_names(store, "__manifest") == {store.branch("live").manifest_branch}


def test_everything_of_a_deleted_branch_goes(store: GraphStore, no_grace: None) -> None:
    put(store, ada=1)
    create_branch(store, "review")
    put(store, "review", bob=2)
    merge(store, "review", "main")
    put(store, cid=3)
    put(store, dan=3)
    put(store, eve=3)
    delete_branch(store, "review")
    cleanup(store, keep_versions=3, confirm=True)
    assert fork_names(store, "__manifest") == set()
    assert len(people(store)) == 5


def test_manifest_versions_go_and_states_stay_readable(store: GraphStore) -> None:
    commits = history(store, 10)
    assert row(store, "__manifest").old_versions_removed > 5
    with open_store(store.uri) as reopened:
        assert len(people(reopened, commits[-1].graph_commit_id)) == 10
        put(reopened, zoe=1)


# --- files ----------------------------------------------------------------------------------------------------------


def test_abandoned_files_go_after_the_grace_period(store: GraphStore) -> None:
    put(store, ada=1)
    line = table_of(store.snapshot().pin(PERSON))
    before = set(files(store, line.location))
    rows = store.tables.scan_table(line)
    store.tables.stage_append(line, rows)
    assert set(files(store, line.location)) - before
    assert row(store).files_removed == 0
    with override(cleanup_grace=0.0):
        assert row(store, confirm=False).files_removed == 1
        assert row(store).files_removed == 1
    assert set(files(store, line.location)) <= before
    assert people(store) == {"ada": 1}


def test_nothing_referenced_is_taken_for_a_leftover(store: GraphStore, no_grace: None) -> None:
    """Deletion vectors, indexes and files of the parent that a fork uses all stay."""
    history(store, 6)
    optimize(store)
    create_branch(store, "review")
    put(store, "review", p1=100, p2=200)
    put(store, p3=300)
    knows(store, "p1", "p2")
    knows(store, "p2", "p1", "review")
    before = {branch: content(store, store.snapshot(branch=branch)) for branch in ("main", "review")}
    cleanup(store, keep_versions=1, force=True, confirm=True)
    with open_store(store.uri) as reopened:
        for branch, expected in before.items():
            assert content(reopened, reopened.snapshot(branch=branch)) == expected
            pin = reopened.snapshot(branch=branch).pin(PERSON)
            assert reopened.tables.list_indexes(table_of(pin))
            assert reopened.tables.take_ids(table_of(pin), ["p1"]).num_rows == 1
        put(reopened, "review", zoe=1)
        merge(reopened, "review", "main")


def test_tables_that_were_never_published_go(store: GraphStore) -> None:
    put(store, ada=1)
    store.tables.create("nodes/never", store.tables.schema(table_of(store.snapshot().pin(PERSON))))
    store.objects.put("edges/half/data/x.lance", b"x")
    cleanup(store, keep_versions=3, confirm=True)
    assert files(store, "nodes/never")
    with override(cleanup_grace=0.0):
        cleanup(store, keep_versions=3, confirm=True)
    assert not files(store, "nodes/never")
    assert not files(store, "edges/half")


# --- refusals and faults ---------------------------------------------------------------------------------------------


def test_refuses_on_suspicious_drift(store: GraphStore) -> None:
    history(store, 5)
    line = table_of(store.snapshot().pin(PERSON))
    store.tables.commit_staged(store.tables.stage_delete(line, ["p0"]), "somebody")
    with pytest.raises(RecoveryRequired, match="omnigraph repair"):
        cleanup(store, keep_versions=3, confirm=True)
    assert len(versions(store)) == 7


def test_refuses_while_a_sidecar_is_pending(store: GraphStore) -> None:
    history(store, 5)
    run_killed(write_and_die, store.uri, at="write.table_committed")
    store = open_store(store.uri, read_only=True)
    store.read_only = False
    line = table_of(store.snapshot().pin(PERSON))
    head = store.tables.head(line.location)
    store.tables.commit_staged(store.tables.stage_delete(head, ["p0"]), "somebody")
    with pytest.raises(RecoveryRequired, match="recovered first"):
        cleanup(store, keep_versions=3, confirm=True)
    assert len(store.sidecars.list()) == 1


def write_and_die(uri: str) -> None:
    """A write, to be killed."""
    put(open_store(uri), zoe=1)


def test_waits_for_a_schema_apply_only_as_a_retryable_error(store: GraphStore) -> None:
    with hold_schema_lock(store, "apply"), pytest.raises(Busy, match="schema apply"):
        cleanup(store, keep_versions=3, confirm=True)


def test_one_tables_failure_is_reported_on_its_row_and_a_rerun_converges(store: GraphStore, monkeypatch) -> None:
    history(store)
    for number in range(6):
        knows(store, "p0", f"p{number + 1}")
    location = store.snapshot().pin(KNOWS).location
    real = store.tables.remove_versions

    def broken(at, branch, unwanted):
        if at == location:
            raise OSError("the disk is gone")
        return real(at, branch, unwanted)

    monkeypatch.setattr(store.tables, "remove_versions", broken)
    result = cleanup(store, keep_versions=3, confirm=True)
    assert result.failed
    assert [table.table_key for table in result.tables if table.error] == [KNOWS]
    assert next(t for t in result.tables if t.table_key == PERSON).old_versions_removed > 0
    monkeypatch.undo()
    assert row(store, KNOWS).old_versions_removed > 0
    assert row(store, KNOWS).old_versions_removed == 0


def test_stops_before_anything_when_a_branchs_needs_are_unknown(store: GraphStore) -> None:
    history(store)
    create_branch(store, "review")
    manifest = store.branch("review").manifest_branch
    before = files(store, "nodes")
    store.manifest.forget()
    store.objects.delete_prefix(f"__manifest/tree/{manifest}/_versions")
    with pytest.raises(OmniGraphError):
        cleanup(store, keep_versions=3, confirm=True)
    assert files(store, "nodes") == before


# --- interleavings ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("at", ["cleanup.chosen", "cleanup.before_versions"])
def test_a_branch_made_and_written_while_cleanup_runs_is_whole(
    store: GraphStore, no_grace: None, at: str, tmp_path: Path
) -> None:
    history(store)
    expected = people(store)

    def meanwhile() -> None:
        create_branch(store, "review")
        put(store, "review", zoe=1)
        for number in range(5):
            put(store, **{f"q{number}": number})

    interrupted(at, tmp_path / "gate", lambda: cleanup(store, keep_versions=1, force=True, confirm=True), meanwhile)
    with open_store(store.uri) as reopened:
        assert people(reopened, branch="review") == {**expected, "zoe": 1}
        assert len(people(reopened)) == 13
        merge(reopened, "review", "main")


def test_a_slow_branch_create_keeps_the_head_it_read(store: GraphStore, no_grace: None, tmp_path: Path) -> None:
    history(store)
    expected = people(store)

    def meanwhile() -> None:
        for number in range(5):
            put(store, **{f"q{number}": number})
        cleanup(store, keep_versions=1, force=True, confirm=True)

    interrupted("branch_create.before_ref", tmp_path / "gate", lambda: create_branch(store, "review"), meanwhile)
    with open_store(store.uri) as reopened:
        assert people(reopened, branch="review") == expected


def test_temporary_files_of_the_dead_go_and_those_of_living_writers_stay(store: GraphStore, no_grace: None) -> None:
    put(store, ada=1)
    old, young = (Path(store.uri, "__recovery", f"01JZ000000000000000000000{n}.json#1") for n in (0, 1))
    for file in (old, young):
        file.write_text("cut off")
    os.utime(old, (0, 0))
    cleanup(store, keep_versions=3, confirm=True)
    assert (old.exists(), young.exists()) == (False, True), "the young one may be renamed in an instant"


def test_marks_of_frame_writes_whose_driver_died_go_after_the_grace_period(store: GraphStore) -> None:
    put_mark(store.objects, "frame write to node:Person")
    cleanup(store, keep_versions=3, confirm=True)
    assert any_marked(store.objects)
    with override(cleanup_grace=0.0):
        cleanup(store, keep_versions=3, confirm=True)
    assert list(store.objects.list(MARKS)) == []


# --- crashes ---------------------------------------------------------------------------------------------------------


def clean_and_die(uri: str) -> None:
    """A cleanup, to be killed."""
    with override(cleanup_grace=0.0):
        cleanup(open_store(uri), keep_versions=3, confirm=True)


@pytest.mark.parametrize(
    "at", ["cleanup.chosen", "cleanup.between_forks", "cleanup.before_versions", "cleanup.between_tables"]
)
def test_a_kill_at_any_step_loses_nothing_and_a_rerun_converges(store: GraphStore, at: str) -> None:
    history(store)
    create_branch(store, "review")
    put(store, "review", zoe=1)
    orphan(store)
    orphan(store)
    before = {branch: content(store, store.snapshot(branch=branch)) for branch in ("main", "review")}
    run_killed(clean_and_die, store.uri, at=at)
    with open_store(store.uri) as reopened, override(cleanup_grace=0.0):
        cleanup(reopened, keep_versions=3, confirm=True)
        assert {branch: content(reopened, reopened.snapshot(branch=branch)) for branch in before} == before
        assert len(versions(reopened)) == 3
        assert verify(reopened).ok
        put(reopened, yan=1)
