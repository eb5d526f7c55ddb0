"""Repair: each kind of drift and a refused sidecar, reported, published or put back; nothing needs surgery by hand."""

from __future__ import annotations

import pytest

from omnigraph.errors import BadRequest
from omnigraph.ledger.branches.branches import create_branch
from omnigraph.ledger.recovery.audit import RecoveryKind
from omnigraph.ledger.snapshots import table_of
from omnigraph.ledger.store import GraphStore, open_store
from omnigraph.ledger.values import WriterKind
from omnigraph.maintain.repair import repair
from omnigraph.maintain.survey.unexplained_drift import Verdict
from omnigraph.maintain.verify import verify
from tests.faults.harness import run_killed
from tests.maintain.graphs import KNOWS, PERSON, files, knows, people, put


@pytest.fixture
def filled(store: GraphStore) -> GraphStore:
    """People in several fragments."""
    for number in range(4):
        put(store, **{f"p{number}": number})
    return store


def compacted(store: GraphStore) -> None:
    staged = store.tables.stage_compaction(table_of(store.snapshot().pin(PERSON)))
    assert staged is not None
    store.tables.commit_compaction(staged)


def deleted(store: GraphStore, name: str = "p0", branch: str = "main") -> None:
    line = table_of(store.snapshot(branch=branch).pin(PERSON))
    head = store.tables.head(line.location, line.branch)
    store.tables.commit_staged(store.tables.stage_delete(head, [name]), "somebody")


def unreadable(store: GraphStore) -> None:
    """A commit whose transaction and base are gone: what it changed cannot be told."""
    deleted(store)
    pin = store.snapshot().pin(PERSON)
    head = store.tables.head(pin.location)
    store.tables.commit_staged(store.tables.stage_delete(head, ["p1"]), "somebody")
    store.tables.remove_versions(pin.location, None, [pin.version + 1])
    store.objects.delete_prefix(f"{pin.location}/_transactions")


def sound(store: GraphStore) -> None:
    with open_store(store.uri) as reopened:
        assert verify(reopened).ok
        put(reopened, last=1)
        assert people(reopened)["last"] == 1


def test_without_flags_it_only_reports(filled: GraphStore) -> None:
    deleted(filled)
    before = files(filled)
    report = repair(filled)
    (table,) = report.tables
    assert (table.drift.table_key, table.drift.verdict, table.action) == (PERSON, Verdict.SUSPICIOUS, "reported")
    assert table.drift.head == table.drift.pinned + 1
    assert report.exit_code == 0
    assert files(filled) == before
    with open_store(filled.uri, read_only=True) as reader:
        assert len(repair(reader).tables) == 1


def test_force_and_restore_need_each_other_and_confirm(filled: GraphStore) -> None:
    with pytest.raises(BadRequest, match="confirm"):
        repair(filled, force=True)
    with pytest.raises(BadRequest, match="force"):
        repair(filled, confirm=True, restore=True)


def test_confirm_publishes_verified_maintenance(filled: GraphStore) -> None:
    compacted(filled)
    before = people(filled)
    assert repair(filled).tables[0].drift.verdict is Verdict.VERIFIED
    report = repair(filled, confirm=True, actor="act-ada")
    assert [(t.drift.table_key, t.action) for t in report.tables] == [(PERSON, "published")]
    assert report.exit_code == 0
    (commit,) = report.commits
    assert (commit.kind, commit.actor_id, commit.changes_data) == (WriterKind.REPAIR, "act-ada", False)
    assert people(filled) == before
    (audited,) = filled.audit.list()
    assert (audited.kind, audited.graph_commit_id) == (RecoveryKind.ROLLED_FORWARD, commit.graph_commit_id)
    assert repair(filled, confirm=True).tables == ()
    sound(filled)


def test_confirm_refuses_suspicious_drift_and_exits_non_zero(filled: GraphStore) -> None:
    knows(filled, "p1", "p2")
    knows(filled, "p2", "p3")
    staged = filled.tables.stage_compaction(table_of(filled.snapshot().pin(KNOWS)))
    assert staged is not None
    filled.tables.commit_compaction(staged)
    deleted(filled)
    report = repair(filled, confirm=True)
    assert {t.drift.table_key: t.action for t in report.tables} == {PERSON: "refused", KNOWS: "published"}
    assert report.exit_code == 1
    assert "p0" in people(filled)


@pytest.mark.parametrize("damage", [deleted, unreadable])
@pytest.mark.parametrize("branch", ["main", "review"])
def test_force_publishes_the_rest_or_puts_it_back(filled: GraphStore, damage, branch: str) -> None:
    if branch == "review":
        create_branch(filled, "review")
        put(filled, "review", extra=1)
        if damage is unreadable:
            return
        deleted(filled, branch="review")
    else:
        damage(filled)
    verdict = Verdict.UNVERIFIABLE if damage is unreadable else Verdict.SUSPICIOUS
    assert [t.drift.verdict for t in repair(filled).tables] == [verdict]
    published = people(filled, branch=branch)
    pin, head = (t.drift.pinned for t in repair(filled).tables), (t.drift.head for t in repair(filled).tables)
    back = repair(filled, confirm=True, force=True, restore=True)
    assert [t.action for t in back.tables] == ["restored"]
    assert back.exit_code == 0
    assert not back.commits[0].changes_data
    # The audit tells which published state the table shows again, not the number of the version written for it.
    (audited,) = filled.audit.list()[-1].tables
    assert (audited.from_version, audited.to_version) == (*head, *pin)
    assert people(filled, branch=branch) == published
    deleted(filled, branch=branch)
    forward = repair(filled, confirm=True, force=True)
    assert [t.action for t in forward.tables] == ["published"]
    assert forward.commits[0].changes_data
    assert people(filled, branch=branch) == {name: age for name, age in published.items() if name != "p0"}
    assert [row.kind for row in filled.audit.list()] == [RecoveryKind.ROLLED_BACK, RecoveryKind.ROLLED_FORWARD]
    sound(filled)


def write_and_die(uri: str) -> None:
    """A write, to be killed."""
    put(open_store(uri), zoe=1)


@pytest.mark.parametrize("restore", [False, True])
def test_a_refused_sidecar_is_shown_with_its_classes_and_resolved_the_same_way(
    filled: GraphStore, restore: bool
) -> None:
    run_killed(write_and_die, filled.uri, at="write.table_committed")
    deleted(filled)
    store = open_store(filled.uri)
    report = repair(store)
    (pending,) = report.pending
    assert (pending.classes, pending.action) == (((PERSON, "Unexpected"),), "refused")
    assert report.tables == ()
    assert repair(store, confirm=True).exit_code == 1
    assert len(store.sidecars.list()) == 1
    done = repair(store, confirm=True, force=True, restore=restore)
    assert (done.pending[0].action, done.exit_code) == ("resolved", 0)
    assert store.sidecars.list() == []
    assert ("p0" in people(store), "zoe" in people(store)) == ((True, False) if restore else (False, True))
    (audited,) = store.audit.list()
    (told,) = audited.tables
    assert told.from_version is not None
    # Put back, the table shows the published state again, which is older; left as it is, the state it was found in.
    assert told.to_version is not None
    assert (told.to_version < told.from_version) if restore else (told.to_version == told.from_version)
    sound(store)


def test_a_sidecar_that_recovery_can_handle_is_left_to_recovery(filled: GraphStore) -> None:
    run_killed(write_and_die, filled.uri, at="write.table_committed")
    report = repair(filled, confirm=True, force=True)
    assert [(p.action, p.decision) for p in report.pending] == [("left to recovery", "roll_forward")]
    assert report.tables == ()
    with open_store(filled.uri) as reopened:
        assert people(reopened)["zoe"] == 1


def torn(store: GraphStore) -> str:
    """A writer died with its table committed, and its sidecar was damaged; the id of its operation."""
    run_killed(write_and_die, store.uri, at="write.table_committed")
    (operation_id,) = store.sidecars.list()
    store.objects.put(f"__recovery/{operation_id}.json", b"{ torn")
    return operation_id


@pytest.mark.parametrize("restore", [False, True])
def test_an_unreadable_sidecar_is_shown_with_what_it_moved_and_forced_or_put_back(
    filled: GraphStore, restore: bool
) -> None:
    operation_id = torn(filled)
    with open_store(filled.uri) as store:
        (shown,) = repair(store).pending
        assert (shown.operation_id, shown.action, shown.classes) == (operation_id, "refused", ((PERSON, "suspicious"),))
        assert repair(store, confirm=True).exit_code == 1
        done = repair(store, confirm=True, force=True, restore=restore)
        assert (done.pending[0].action, done.exit_code) == ("resolved", 0)
        assert store.sidecars.list() == []
        assert ("zoe" in people(store)) != restore
        assert [row.kind for row in store.audit.list() if row.operation_id == operation_id] == [RecoveryKind.SET_ASIDE]
        assert store.objects.get(f"__set_aside/sidecars/{operation_id}.json")[0] == b"{ torn"
        sound(store)


@pytest.mark.parametrize("damaged", [True, False], ids=["unreadable", "refused"])
def test_a_sidecar_is_set_aside_and_its_tables_left_as_they_are(filled: GraphStore, damaged: bool) -> None:
    if damaged:
        operation_id = torn(filled)
    else:
        run_killed(write_and_die, filled.uri, at="write.table_committed")
        deleted(filled)
        (operation_id,) = filled.sidecars.list()
    with open_store(filled.uri) as store:
        done = repair(store, confirm=True, set_aside=True)
        assert [(one.operation_id, one.action) for one in done.pending] == [(operation_id, "set aside")]
        assert store.sidecars.list() == []
        assert [(row.operation_id, row.kind) for row in store.audit.list()] == [(operation_id, RecoveryKind.SET_ASIDE)]
        assert [table.drift.table_key for table in repair(store).tables] == [PERSON]
        repair(store, confirm=True, force=True, restore=True)
        sound(store)
