"""Drift found when a write enters its window: published past, recovered first, or left to `repair`, in three texts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from omnigraph.errors import RecoveryRequired, StorageError
from omnigraph.failpoints import FailpointError, active
from omnigraph.ledger.branches.branches import create_branch
from omnigraph.ledger.commit.attempts import RetryPolicy, run_write
from omnigraph.ledger.commit.drift import drift_of, preserves_content
from omnigraph.ledger.snapshots import table_of
from omnigraph.ledger.store import GraphStore, open_store
from omnigraph.ledger.values import RECOVERY_ACTOR, WriterKind
from omnigraph.maintain.repair import repair
from omnigraph.maintain.verify import verify
from tests.faults.invariants import check_history, check_pins_are_heads, observe
from tests.faults.scenarios import work
from tests.faults.writers import KNOWS, PERSON, content, edges_write, new_graph, put_friends, put_people
from tests.ledger.places import new_graph_at
from tests.ledger.processes import run_killed


@pytest.fixture
def store(path: str, new_place: Callable[[], str]) -> GraphStore:
    return new_graph_at(path, fragmented, new_place)


def fragmented(uri: str) -> GraphStore:
    made = new_graph(uri)
    for number in range(3):
        put_people(made, {f"p{number}": number})
    return made


def compact_behind_its_back(store: GraphStore, branch: str = "main") -> None:
    staged = store.tables.stage_compaction(table_of(store.snapshot(branch=branch).pin(PERSON)))
    assert staged is not None
    store.tables.commit_compaction(staged)


def write_behind_its_back(store: GraphStore, branch: str = "main") -> None:
    pin = store.snapshot(branch=branch).pin(PERSON)
    rows = store.tables.take_ids(table_of(pin), ["ada"])
    store.tables.commit_staged(store.tables.stage_upsert(table_of(pin), rows), "somebody")


@pytest.mark.parametrize("retry", list(RetryPolicy))
@pytest.mark.parametrize("branch", ["main", "review"])
def test_drift_without_content_is_published_past_by_the_next_write(
    store: GraphStore, retry: RetryPolicy, branch: str
) -> None:
    if branch == "review":
        create_branch(store, "review")
        for number in range(3):
            put_people(store, {f"r{number}": number}, "review")
    before = store.snapshot(branch=branch).head
    compact_behind_its_back(store, branch)
    commit = put_people(store, {"bob": 1}, branch, retry=retry)
    assert commit.parent_commit_id is not None
    past = store.commits.get(commit.parent_commit_id)
    assert past is not None
    assert (past.actor_id, past.kind, past.changes_data) == (RECOVERY_ACTOR, WriterKind.RECOVERY, False)
    assert past.parent_commit_id == before.graph_commit_id
    check_pins_are_heads(store)
    check_history(store)
    assert store.audit.list() == []


def test_drift_with_content_points_to_repair(store: GraphStore) -> None:
    write_behind_its_back(store)
    before = observe(store)
    with pytest.raises(RecoveryRequired, match="omnigraph repair") as caught:
        put_people(store, {"bob": 1})
    assert caught.value.operation_id is None
    assert caught.value.details["table_key"] == PERSON
    assert "no unfinished write explains" in caught.value.message
    assert observe(store) == before


def test_drift_with_content_blocks_its_own_table_only(store: GraphStore) -> None:
    create_branch(store, "review")
    write_behind_its_back(store)
    put_people(store, {"bob": 1}, "review")
    run_write(
        store,
        "main",
        lambda base, session: session.intent(
            WriterKind.MUTATION, base, [edges_write(session, base.pin(KNOWS), [("ada", "grace")])]
        ),
    )
    assert len(content(store)[KNOWS]) == 1


def test_drift_that_a_sidecar_covers_names_the_operation_and_says_reopen(store: GraphStore) -> None:
    run_killed(work, store.uri, "main", at="write.table_committed")
    operation_id = store.sidecars.list()[0]
    before = observe(store)
    with pytest.raises(RecoveryRequired, match=r"[Rr]eopen the graph for writing") as caught:
        put_friends(store, {"carl": 1}, [("carl", "ada")])
    assert caught.value.operation_id == operation_id
    assert operation_id in caught.value.message
    assert "repair" not in caught.value.message
    assert observe(store) == before
    open_store(store.uri)
    put_friends(store, {"carl": 1}, [("carl", "ada")])
    check_pins_are_heads(store)


def test_when_the_listing_failed_the_error_says_that_both_are_possible_and_why(
    store: GraphStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_behind_its_back(store)
    real, calls = store.objects.list, []

    def list_once_then_fail(prefix: str = "") -> object:
        calls.append(prefix)
        if len(calls) > 1:
            raise StorageError("listing __recovery failed: connection reset")
        return real(prefix)

    monkeypatch.setattr(store.objects, "list", list_once_then_fail)
    with pytest.raises(RecoveryRequired) as caught:
        put_people(store, {"bob": 1})
    message = caught.value.message
    assert "reopen the graph" in message
    assert "omnigraph repair" in message
    assert "connection reset" in message


def test_published_data_that_is_missing_is_damage_with_the_name_of_a_file(store: GraphStore) -> None:
    branch, pin = store.branch("main"), store.snapshot().pin(PERSON)
    lost = replace(pin, version=pin.version + 5)
    with pytest.raises(StorageError, match="published data is missing") as caught:
        drift_of(store, branch, lost)
    assert caught.value.details["path"] == table_of(lost).manifest_file
    assert store.objects.exists(table_of(pin).manifest_file)


def test_drift_is_told_apart(store: GraphStore) -> None:
    branch, pin = store.branch("main"), store.snapshot().pin(PERSON)
    assert drift_of(store, branch, pin) is None
    compact_behind_its_back(store)
    drift = drift_of(store, branch, pin)
    assert drift is not None
    assert drift.head == pin.version + 2
    assert preserves_content(store, drift)
    put_people(store, {"bob": 1})
    write_behind_its_back(store)
    drift = drift_of(store, branch, store.snapshot().pin(PERSON))
    assert drift is not None
    assert not preserves_content(store, drift)


def test_a_line_that_the_branch_does_not_own_cannot_drift(store: GraphStore) -> None:
    branch = create_branch(store, "review")
    pin = store.snapshot(branch="review").pin(PERSON)
    put_people(store, {"bob": 1})
    assert drift_of(store, branch, pin) is None


def test_a_crash_before_drift_is_published_changes_nothing(store: GraphStore) -> None:
    compact_behind_its_back(store)
    before = observe(store)
    with active("drift.publish", "raise:1"), pytest.raises(Exception, match=r"drift\.publish"):
        put_people(store, {"bob": 1})
    assert observe(store) == before
    put_people(store, {"bob": 1})
    check_pins_are_heads(store)


# --- commits that came too late


def land_late(store: GraphStore, operation_id: str, name: str = "late") -> None:
    """What a writer does that was paused right before a table commit, after its write was taken back."""
    pin = store.snapshot().pin(PERSON)
    row = store.tables.take_ids(table_of(pin), ["ada"]).to_pylist()[0]
    rows = store.tables.scan_table(table_of(pin)).slice(0, 0)
    late = rows.from_pylist([{**row, "id": name, **({"slug": name} if "slug" in row else {})}], schema=rows.schema)
    store.tables.commit_staged(store.tables.stage_append(table_of(pin), late), operation_id)


@pytest.fixture
def taken_back(store: GraphStore) -> str:
    """The id of a write that recovery took back before anything of it had landed."""
    run_killed(work, store.uri, "main", at="write.sidecar_put")
    with open_store(store.uri) as opened:
        [record] = opened.audit.list()
    assert record.kind.value == "RolledBack"
    return record.operation_id


def people_of(store: GraphStore) -> set[object]:
    return {row[0] for row in content(store)[PERSON]}


@pytest.mark.parametrize("dies_at", [None, "drift.put_back", "drift.publish"])
def test_what_landed_after_its_write_was_taken_back_is_put_back_by_the_next_write(
    store: GraphStore, taken_back: str, dies_at: str | None
) -> None:
    with open_store(store.uri) as opened:
        before = people_of(opened)
        land_late(opened, taken_back)
        assert people_of(opened) == before
        if dies_at is not None:
            with pytest.raises(FailpointError), active(dies_at, "raise"):
                put_people(opened, {"next": 1})
        put_people(opened, {"next": 1})
        assert people_of(opened) == before | {"next"}
        check_pins_are_heads(opened)
        check_history(opened)
        assert verify(opened).ok
        assert len(opened.audit.list()) == 1


def test_repair_puts_it_back_without_force(store: GraphStore, taken_back: str) -> None:
    with open_store(store.uri) as opened:
        before = people_of(opened)
        land_late(opened, taken_back)
        [found] = repair(opened).tables
        assert found.drift.verdict.value == "late"
        done = repair(opened, confirm=True)
        assert ([one.action for one in done.tables], done.exit_code) == (["restored"], 0)
        assert people_of(opened) == before
        check_pins_are_heads(opened)
        assert verify(opened).ok


def test_a_commit_of_anybody_else_beside_it_is_for_a_person(store: GraphStore, taken_back: str) -> None:
    with open_store(store.uri) as opened:
        land_late(opened, taken_back)
        pin = opened.snapshot().pin(PERSON)
        head = opened.tables.head(pin.location, pin.lance_branch)
        rows = opened.tables.take_ids(table_of(pin), ["ada"])
        opened.tables.commit_staged(opened.tables.stage_upsert(head, rows), "somebody")
        with pytest.raises(RecoveryRequired, match="omnigraph repair"):
            put_people(opened, {"next": 1})
