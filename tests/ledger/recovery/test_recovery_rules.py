"""Recovery: the decision table of page 04 on real tables, when it runs, and what it never does."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

import pytest

from omnigraph.config import override
from omnigraph.errors import LeaseLost, OmniGraphError, RecoveryRequired
from omnigraph.failpoints import active
from omnigraph.ledger.branches.branches import create_branch, delete_branch
from omnigraph.ledger.branches.schema_lock import LOCK_PATH, hold_schema_lock
from omnigraph.ledger.commit.attempts import WriteSession, run_write
from omnigraph.ledger.commit.intents import TableCommits, TableWrite, WriteIntent, sidecar_of
from omnigraph.ledger.commit.phases import commit_write
from omnigraph.ledger.commit.window import Window
from omnigraph.ledger.recovery.audit import RecoveryKind
from omnigraph.ledger.recovery.recover import heal, recover_all
from omnigraph.ledger.recovery.sidecars import Sidecar
from omnigraph.ledger.snapshots import table_of
from omnigraph.ledger.store import GraphStore, open_store
from omnigraph.ledger.values import RECOVERY_ACTOR, Snapshot, TablePin, WriterKind
from tests.faults.harness import NotReached, join, start_child, wait_for
from tests.faults.invariants import check_history, check_invariants, check_pins_are_heads, observe
from tests.faults.scenarios import work
from tests.faults.writers import (
    COMPANY,
    KNOWS,
    PERSON,
    content,
    edges_write,
    people_write,
    put_company,
    put_friends,
    put_people,
)
from tests.ledger.processes import run_killed


def crash(store: GraphStore, at: str, branch: str = "main", hit: int = 1) -> Sidecar:
    run_killed(work, store.uri, branch, at=at, hit=hit)
    stored = store.sidecars.get(store.sidecars.list()[-1])
    assert stored is not None
    return stored.sidecar


def put_edges(store: GraphStore, branch: str = "main") -> None:
    run_write(
        store,
        branch,
        lambda base, session: session.intent(
            WriterKind.MUTATION, base, [edges_write(session, base.pin(KNOWS), [("grace", "alan")])]
        ),
    )


def commit_behind(store: GraphStore, key: str = PERSON, branch: str = "main") -> int:
    """Somebody commits to a table outside of the protocol, on top of what is there."""
    pin = store.snapshot(branch=branch).pin(key)
    head = store.tables.head(pin.location, pin.lance_branch)
    rows = store.tables.scan_table(head)
    return store.tables.commit_staged(store.tables.stage_upsert(head, rows.slice(0, 1)), "somebody").version


class TestRollForward:
    def test_keeps_the_commit_id_and_names_recovery_as_its_actor(self, store: GraphStore) -> None:
        parent = store.snapshot().head
        sidecar = crash(store, "write.tables_committed")
        open_store(store.uri)
        head = store.snapshot().head
        assert head.graph_commit_id == sidecar.graph_commit_id
        assert head.parent_commit_id == parent.graph_commit_id
        assert (head.actor_id, head.kind, head.changes_data) == (RECOVERY_ACTOR, WriterKind.LOAD, True)
        (row,) = store.audit.list()
        assert row.kind is RecoveryKind.ROLLED_FORWARD
        assert row.graph_commit_id == sidecar.graph_commit_id
        assert (row.operation_id, row.writer_kind) == (sidecar.operation_id, WriterKind.LOAD)
        assert row.recovery_for_actor == "act-ada"
        assert {(t.table_key, t.from_version, t.to_version) for t in row.tables} == {(PERSON, 3, 3), (KNOWS, 2, 2)}

    def test_happens_in_heal_at_the_next_write_of_a_long_lived_process(self, store: GraphStore) -> None:
        sidecar = crash(store, "write.tables_committed")
        put_people(store, {"zoe": 1})
        assert store.commits.get(sidecar.graph_commit_id) is not None
        assert {"bob", "zoe"} <= {row[0] for row in content(store)[PERSON]}
        check_history(store)

    def test_neutral_commits_on_top_are_published_along(self, store: GraphStore) -> None:
        for number in range(3):
            put_people(store, {f"p{number}": number})
        crash(store, "write.tables_committed")
        pin = store.snapshot().pin(PERSON)
        staged = store.tables.stage_compaction(store.tables.head(pin.location))
        assert staged is not None
        store.tables.commit_compaction(staged)
        open_store(store.uri)
        assert [row.kind for row in store.audit.list()] == [RecoveryKind.ROLLED_FORWARD]
        check_pins_are_heads(store)

    def test_not_when_a_table_that_it_read_was_changed_meanwhile(self, store: GraphStore) -> None:
        """The dead writer had validated against the companies; publishing it now could break what it validated."""
        before = content(store)
        crash(store, "write.tables_committed")
        # A writer that had healed before the crash and writes companies only.
        base = store.snapshot()
        session = WriteSession(store, base.branch, None)
        pin = base.pin(COMPANY)
        rows = store.tables.scan_table(table_of(base.pin(PERSON)), columns=["id", "slug"])
        write = session.table_write(pin, store.tables.stage_append(table_of(pin), rows))
        commit_write(store, session.intent(WriterKind.MUTATION, base, [write]))
        open_store(store.uri)
        assert [row.kind for row in store.audit.list()] == [RecoveryKind.ROLLED_BACK]
        assert content(store)[PERSON] == before[PERSON]
        assert len(content(store)[COMPANY]) == 3
        check_pins_are_heads(store)
        check_history(store)


class TestRollBack:
    def test_restores_publishes_and_says_so(self, store: GraphStore) -> None:
        before, parent = observe(store), store.snapshot().head
        sidecar = crash(store, "write.table_committed")
        found = {t.table_key: store.tables.head(t.location, t.lance_branch).version for t in sidecar.tables}
        open_store(store.uri)
        assert observe(store) == before
        check_pins_are_heads(store)
        head = store.snapshot().head
        assert head.parent_commit_id == parent.graph_commit_id
        assert (head.actor_id, head.kind, head.changes_data) == (RECOVERY_ACTOR, WriterKind.RECOVERY, False)
        (row,) = store.audit.list()
        assert row.kind is RecoveryKind.ROLLED_BACK
        assert row.graph_commit_id == head.graph_commit_id
        assert {t.table_key: (t.from_version, t.to_version) for t in row.tables} == {
            key: (found[key], sidecar_table.expected_version)
            for key, sidecar_table in ((t.table_key, t) for t in sidecar.tables)
        }
        assert store.commits.get(sidecar.graph_commit_id) is None

    def test_an_update_is_undone_too(self, store: GraphStore) -> None:
        crash(store, "storage.commit.after", hit=1)
        put = {row[0]: row[2] for row in content(open_store(store.uri))[PERSON]}
        assert put["ada"] == 36

    def test_waits_for_the_next_open_and_blocks_its_own_tables_only(self, store: GraphStore) -> None:
        create_branch(store, "review")
        sidecar = crash(store, "write.table_committed")
        report = heal(store)
        assert report.deferred == (sidecar.operation_id,)
        for write in (lambda: put_people(store, {"zoe": 1}), lambda: put_edges(store)):
            with pytest.raises(RecoveryRequired) as caught:
                write()
            assert caught.value.operation_id == sidecar.operation_id
        put_people(store, {"zoe": 1}, "review")
        assert store.sidecars.list() == [sidecar.operation_id]
        open_store(store.uri)
        put_people(store, {"zoe": 1})
        put_edges(store)

    def test_a_deferred_sidecar_costs_later_writes_nothing_but_the_look(self, store: GraphStore) -> None:
        create_branch(store, "review")
        crash(store, "write.table_committed")
        heal(store)
        opened: list[str] = []
        store.tables.on_call = lambda name, location: opened.append(location)
        heal(store)
        store.tables.on_call = None
        assert opened == []

    def test_forks_of_its_own_need_no_restore_so_heal_resolves_them(self, store: GraphStore) -> None:
        create_branch(store, "review")
        before, head = observe(store), store.snapshot(branch="review").head
        sidecar = crash(store, "write.table_committed", "review")
        assert heal(store).resolved == (sidecar.operation_id,)
        assert observe(store) == before
        assert store.snapshot(branch="review").head == head
        (row,) = store.audit.list()
        assert (row.kind, row.graph_commit_id) == (RecoveryKind.ROLLED_BACK, head.graph_commit_id)
        assert all(store.tables.list_forks(pin.location) == [] for pin in store.snapshot().tables.values())

    def test_a_commit_that_slips_under_the_restore_is_kept_and_recovery_refuses(
        self, store: GraphStore, tmp_path: Path
    ) -> None:
        sidecar = crash(store, "write.table_committed")
        moved = next(table for table in sidecar.tables if table.table_key == KNOWS)
        gate = tmp_path / "gate"
        opened: list[GraphStore] = []
        with active("storage.restore.before", f"pause:{gate}"):
            recovering = threading.Thread(target=lambda: opened.append(open_store(store.uri)))
            recovering.start()
            wait_for(Path(f"{gate}.reached"))
            slipped = commit_behind(store, moved.table_key)
            gate.touch()
            recovering.join(60)
        assert opened, "a refused sidecar must not keep the graph from being opened"
        assert store.sidecars.list() == [sidecar.operation_id]
        head = store.tables.head(moved.location, moved.lance_branch)
        kept = store.tables.scan_table(head.at(slipped)).sort_by("id")
        assert store.tables.scan_table(head).sort_by("id") == kept
        with pytest.raises(RecoveryRequired, match="repair"):
            put_edges(opened[0])


class TestNothingLanded:
    def test_no_commit_and_an_audit_row_that_refers_to_the_head(self, store: GraphStore) -> None:
        head = store.snapshot().head
        sidecar = crash(store, "write.sidecar_put")
        assert heal(store).resolved == (sidecar.operation_id,)
        assert store.snapshot().head == head
        (row,) = store.audit.list()
        assert (row.kind, row.graph_commit_id) == (RecoveryKind.ROLLED_BACK, head.graph_commit_id)
        assert store.sidecars.list() == []


class TestCompleted:
    def test_a_published_write_only_loses_its_traces(self, store: GraphStore) -> None:
        sidecar = crash(store, "publish.after")
        head = store.manifest.read(store.branch("main")).head
        assert head.graph_commit_id == sidecar.graph_commit_id
        assert heal(store).resolved == (sidecar.operation_id,)
        assert store.snapshot().head == head
        assert head.actor_id == "act-ada"
        assert [row.kind for row in store.audit.list()] == [RecoveryKind.COMPLETED]
        check_history(store)

    def test_also_when_others_wrote_since(self, store: GraphStore) -> None:
        sidecar = crash(store, "write.published")
        base = store.snapshot()
        session = WriteSession(store, base.branch, None)
        writes = [people_write(session, base.pin(PERSON), {"zoe": 1})]
        commit_write(store, session.intent(WriterKind.MUTATION, base, writes))
        assert heal(store).resolved == (sidecar.operation_id,)
        assert [row.kind for row in store.audit.list()] == [RecoveryKind.COMPLETED]


class TestRefused:
    """Something above the pin is neither ours nor neutral: nobody's commit is ever destroyed."""

    @pytest.mark.parametrize("at", ["write.table_committed", "write.tables_committed", "write.sidecar_put"])
    def test_foreign_commits_block_their_own_tables_and_nothing_else(self, store: GraphStore, at: str) -> None:
        create_branch(store, "review")
        sidecar = crash(store, at)
        commit_behind(store)
        versions = {t.table_key: store.tables.head(t.location, t.lance_branch).version for t in sidecar.tables}
        again = open_store(store.uri)
        assert again.sidecars.list() == [sidecar.operation_id]
        assert {t.table_key: again.tables.head(t.location, t.lance_branch).version for t in sidecar.tables} == versions
        with pytest.raises(RecoveryRequired, match="repair") as caught:
            put_people(again, {"zoe": 1})
        assert caught.value.operation_id == sidecar.operation_id
        put_people(again, {"zoe": 1}, "review")
        assert again.audit.list() == []
        content_before = again.objects.get(f"__recovery/{sidecar.operation_id}.json")
        open_store(store.uri)
        assert again.objects.get(f"__recovery/{sidecar.operation_id}.json") == content_before

    def test_head_below_pin_is_loud_blocks_its_table_and_the_sidecar_stays(
        self, store: GraphStore, caplog: pytest.LogCaptureFixture
    ) -> None:
        intent = _stale_intent(store)
        sidecar = sidecar_of(intent, store.snapshot().head, None)
        table = sidecar.tables[0]
        pin = TablePin(PERSON, table.type_id, "nodes/never-made", None, 9, 0, sidecar.incarnation)
        base = store.snapshot()
        session = WriteSession(store, base.branch, None)
        commit_write(store, replace(session.intent(WriterKind.REPAIR, base, []), repinned=(pin,)))
        store.sidecars.put(replace(sidecar, tables=(replace(table, location="nodes/never-made", pin=pin),)))
        opened = open_store(store.uri)
        assert "published data is missing" in caplog.text
        with pytest.raises(OmniGraphError):
            put_people(opened, {"zoe": 1})
        put_company(opened, "acme")
        assert store.sidecars.list() == [sidecar.operation_id]


def _lost(_: Window) -> None:
    raise LeaseLost("somebody else has the window")


class TestOrphans:
    def test_discarded_with_an_audit_row_and_a_commit_on_main_that_changes_nothing(
        self, store: GraphStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        create_branch(store, "review")
        sidecar = crash(store, "write.tables_committed", "review")
        delete_branch(store, "review")
        before, parent = observe(store), store.snapshot().head
        with monkeypatch.context() as patched:
            patched.setattr(Window, "check", _lost)
            assert heal(store).resolved == ()
        assert store.snapshot().head == parent, "who does not hold the window any more publishes nothing"
        assert heal(store).resolved == (sidecar.operation_id,)
        head = store.snapshot().head
        assert observe(store) == before
        assert head.parent_commit_id == parent.graph_commit_id
        assert (head.branch, head.actor_id, head.changes_data) == ("main", RECOVERY_ACTOR, False)
        (row,) = store.audit.list()
        assert (row.kind, row.graph_commit_id) == (RecoveryKind.ORPHANED_BRANCH_DISCARDED, head.graph_commit_id)
        assert row.branch == "review"

    def test_a_branch_made_again_under_the_name_is_left_alone(self, store: GraphStore) -> None:
        create_branch(store, "review")
        crash(store, "write.tables_committed", "review")
        delete_branch(store, "review")
        create_branch(store, "review")
        before = observe(store)
        open_store(store.uri)
        assert observe(store) == before
        assert [row.kind for row in store.audit.list()] == [RecoveryKind.ORPHANED_BRANCH_DISCARDED]


def optimize_two(uri: str) -> None:
    """Compact two tables under one sidecar."""
    store = open_store(uri)

    def prepare(base: Snapshot, session: WriteSession) -> WriteIntent:
        writes = []
        for key in (KNOWS, PERSON):
            pin = base.pin(key)
            staged = store.tables.stage_compaction(table_of(pin))
            assert staged is not None

            def apply(commits: TableCommits, staged: object = staged) -> None:
                commits.untagged(lambda _: store.tables.commit_compaction(staged))

            writes.append(TableWrite(key, pin.type_id, pin.location, pin, table_of(pin), pin.row_count, apply=apply))
        return session.intent(WriterKind.OPTIMIZE, base, writes, changes_data=False)

    run_write(store, "main", prepare)


class TestOptimize:
    """Changes no data, so each table that landed rolls forward on its own."""

    @pytest.fixture
    def fragmented(self, store: GraphStore) -> GraphStore:
        for number in range(3):
            put_friends(store, {f"p{number}": number}, [("ada", f"p{number}")])
        return store

    @pytest.mark.parametrize(
        ("at", "hit", "moved"),
        [
            ("write.sidecar_put", 1, set()),
            ("storage.compaction.after", 1, {KNOWS}),
            ("storage.compaction.before", 2, {KNOWS}),
            ("storage.compaction.after", 2, {KNOWS, PERSON}),
        ],
    )
    def test_per_table(self, fragmented: GraphStore, at: str, hit: int, moved: set[str]) -> None:
        before, pins = observe(fragmented), fragmented.snapshot().tables
        run_killed(optimize_two, fragmented.uri, at=at, hit=hit)
        assert check_invariants(fragmented.uri, before, before, next_write=put_edges) == "before"
        now = fragmented.snapshot().tables
        versions = {key: now[key].version - pins[key].version for key in (KNOWS, PERSON)}
        assert versions[PERSON] == (2 if PERSON in moved else 0)
        (row,) = fragmented.audit.list()
        assert row.kind is (RecoveryKind.ROLLED_FORWARD if moved else RecoveryKind.ROLLED_BACK)
        assert {table.table_key for table in row.tables if moved} == moved

    def test_a_table_with_a_foreign_commit_is_forgotten_and_left_to_repair(self, fragmented: GraphStore) -> None:
        run_killed(optimize_two, fragmented.uri, at="storage.compaction.after", hit=2)
        commit_behind(fragmented, PERSON)
        store = open_store(fragmented.uri)
        assert store.sidecars.list() == []
        (row,) = store.audit.list()
        assert [table.table_key for table in row.tables] == [KNOWS]
        put_edges(store)
        with pytest.raises(RecoveryRequired, match="repair"):
            put_people(store, {"zoe": 1})


class TestLiveWriters:
    @pytest.mark.parametrize("at", ["write.sidecar_put", "write.table_committed", "publish.after"])
    def test_a_live_writer_of_another_process_is_never_touched(
        self, store: GraphStore, tmp_path: Path, at: str
    ) -> None:
        gate = tmp_path / "gate"
        child = start_child(work, store.uri, "main", failpoints_on={at: f"pause:{gate}"})
        wait_for(Path(f"{gate}.reached"))
        operation_id = store.sidecars.list()[0]
        written = store.objects.get(f"__recovery/{operation_id}.json")
        assert heal(store).live == (operation_id,)
        with override(lease_wait_seconds=0.2, lease_seconds=0.0):
            assert recover_all(store).live == (operation_id,)
        assert store.objects.get(f"__recovery/{operation_id}.json") == written
        gate.touch()
        assert join(child) == 0
        assert store.sidecars.list() == []
        assert store.audit.list() == []
        assert "bob" in {row[0] for row in content(store)[PERSON]}
        check_history(store)

    def test_a_live_writer_of_this_process_is_never_touched(self, store: GraphStore, tmp_path: Path) -> None:
        gate = tmp_path / "gate"
        with active("write.table_committed", f"pause:{gate}"):
            writer = threading.Thread(target=work, args=(store.uri, "main"))
            writer.start()
            wait_for(Path(f"{gate}.reached"))
            assert heal(store).live == tuple(store.sidecars.list())
            gate.touch()
            writer.join(60)
        assert store.audit.list() == []
        assert store.sidecars.list() == []

    def test_the_other_branch_is_written_meanwhile(self, store: GraphStore, tmp_path: Path) -> None:
        create_branch(store, "review")
        gate = tmp_path / "gate"
        child = start_child(work, store.uri, "main", failpoints_on={"write.table_committed": f"pause:{gate}"})
        wait_for(Path(f"{gate}.reached"))
        put_people(store, {"zoe": 1}, "review")
        gate.touch()
        assert join(child) == 0
        check_history(store)


class TestSweep:
    def test_several_sidecars_in_the_order_of_their_writes(self, store: GraphStore) -> None:
        for name in ("a", "b"):
            create_branch(store, name)
        ids = []
        for name in ("a", "b"):
            run_killed(commit_directly, store.uri, name, at="write.tables_committed")
            ids.append(store.sidecars.list()[-1])
        assert store.sidecars.list() == sorted(ids)
        report = recover_all(store)
        assert report.resolved == tuple(sorted(ids))
        assert [row.operation_id for row in store.audit.list()] == sorted(ids)
        check_history(store)

    def test_running_it_again_changes_nothing(self, store: GraphStore) -> None:
        crash(store, "write.table_committed")
        recover_all(store)
        head, rows = store.snapshot().head, store.audit.list()
        assert recover_all(store).resolved == ()
        assert (store.snapshot().head, store.audit.list()) == (head, rows)

    def test_the_audit_is_made_only_when_it_is_needed(self, store: GraphStore) -> None:
        assert store.audit.list() == []
        assert not store.tables.exists("_graph_commit_recoveries.lance")
        crash(store, "write.sidecar_put")
        heal(store)
        assert store.tables.exists("_graph_commit_recoveries.lance")

    def test_a_schema_lock_of_a_dead_owner_is_dropped_and_a_live_one_is_not(self, store: GraphStore) -> None:
        try:
            run_killed(die_with_the_schema_lock, store.uri, at="write.prepared")
        except NotReached as missing:
            raise AssertionError("the child did not die") from missing
        assert store.objects.exists(LOCK_PATH)
        put_people(store, {"zoe": 1})
        open_store(store.uri)
        assert not store.objects.exists(LOCK_PATH)
        with hold_schema_lock(store, "01SCHEMA"):
            open_store(store.uri)
            assert store.objects.exists(LOCK_PATH)


def commit_directly(uri: str, branch: str) -> None:
    """A write of somebody who opened and healed before the others died."""
    store = GraphStore(open_store(uri, read_only=True).root, read_only=False)
    base = store.snapshot(branch=branch)
    session = WriteSession(store, base.branch, None)
    writes = [people_write(session, base.pin(PERSON), {"bob": 1})]
    commit_write(store, session.intent(WriterKind.MUTATION, base, writes))


def die_with_the_schema_lock(uri: str) -> None:
    store = open_store(uri)
    with hold_schema_lock(store, "01SCHEMA"):
        run_write(store, "main", lambda base, session: None, holds_schema_lock=True)


def _stale_intent(store: GraphStore) -> WriteIntent:
    base = store.snapshot()
    session = WriteSession(store, base.branch, None)
    return session.intent(WriterKind.MUTATION, base, [people_write(session, base.pin(PERSON), {"bob": 1})])
