"""The four phases: what is checked before anything moves, what a failure leaves, what a sidecar says."""

from __future__ import annotations

import os
import signal
import threading
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from omnigraph.errors import InternalError, LeaseLost, NotFound, TableMoved
from omnigraph.failpoints import FailpointError, active
from omnigraph.ledger.branches.branches import create_branch, delete_branch
from omnigraph.ledger.commit.attempts import WriteSession, run_write
from omnigraph.ledger.commit.intents import TableCommits, TableWrite, WriteIntent
from omnigraph.ledger.commit.phases import commit_write, prepare_line
from omnigraph.ledger.recovery.audit import RecoveryKind
from omnigraph.ledger.recovery.sidecars import SidecarOwner
from omnigraph.ledger.snapshots import table_of
from omnigraph.ledger.store import GraphStore, open_store
from omnigraph.ledger.values import RECOVERY_ACTOR, Snapshot, TablePin, WriterKind
from omnigraph.storage.values import TableVersion
from tests.faults.harness import join, start_child, wait_for
from tests.faults.invariants import check_history, check_invariants, check_pins_are_heads, observe
from tests.faults.scenarios import work
from tests.faults.writers import (
    COMPANY,
    KNOWS,
    PERSON,
    content,
    edges_write,
    people_write,
    put_friends,
    put_people,
)
from tests.ledger.places import is_on_s3
from tests.ledger.processes import run_killed


def prepared(store: GraphStore, ages: dict[str, int], branch: str = "main", **changes: object) -> WriteIntent:
    base = store.snapshot(branch=branch)
    session = WriteSession(store, base.branch, "act-ada")
    intent = session.intent(WriterKind.MUTATION, base, [people_write(session, base.pin(PERSON), ages)])
    return replace(intent, **changes)


class TestPremises:
    """Checked in the window, before anything moves."""

    def test_a_written_table_that_moved(self, store: GraphStore) -> None:
        stale = prepared(store, {"bob": 1})
        put_people(store, {"carl": 1})
        before = observe(store)
        with pytest.raises(TableMoved) as caught:
            commit_write(store, stale)
        mismatch = caught.value.mismatch
        assert (mismatch.table_key, mismatch.expected, mismatch.actual) == (PERSON, 2, 3)
        assert caught.value.data_changed
        assert observe(store) == before
        check_pins_are_heads(store)
        assert store.sidecars.list() == []

    def test_a_table_that_was_only_read_and_moved(self, store: GraphStore) -> None:
        base = store.snapshot()
        session = WriteSession(store, base.branch, None)
        writes = [edges_write(session, base.pin(KNOWS), [("ada", "grace")])]
        stale = session.intent(WriterKind.MUTATION, base, writes, reads=[PERSON])
        put_people(store, {"carl": 1})
        with pytest.raises(TableMoved) as caught:
            commit_write(store, stale)
        assert caught.value.mismatch.table_key == PERSON
        assert content(store)[KNOWS] == []

    def test_a_table_that_the_write_does_not_touch_may_move(self, store: GraphStore) -> None:
        intent = prepared(store, {"bob": 1})
        base = store.snapshot()
        session = WriteSession(store, base.branch, None)
        other = session.intent(WriterKind.MUTATION, base, [edges_write(session, base.pin(KNOWS), [("ada", "grace")])])
        commit_write(store, other)
        commit = commit_write(store, intent)
        assert commit is not None
        assert commit.parent_commit_id == other.graph_commit_id
        check_history(store)

    def test_a_branch_that_was_deleted_and_made_again(self, store: GraphStore) -> None:
        create_branch(store, "review")
        intent = prepared(store, {"bob": 1}, "review")
        delete_branch(store, "review")
        with pytest.raises(NotFound, match="review"):
            commit_write(store, intent)
        create_branch(store, "review")
        before = observe(store)
        with pytest.raises(NotFound, match="review"):
            commit_write(store, intent)
        assert observe(store) == before


class TestPhases:
    def test_commit_says_who_what_and_after_what(self, store: GraphStore) -> None:
        parent = store.snapshot().head
        intent = prepared(store, {"bob": 1})
        commit = commit_write(store, intent)
        assert commit is not None
        assert commit.graph_commit_id == intent.graph_commit_id
        assert commit.parent_commit_id == parent.graph_commit_id
        assert (commit.actor_id, commit.kind, commit.branch) == ("act-ada", WriterKind.MUTATION, "main")
        assert store.snapshot().head == commit
        assert store.snapshot().pin(PERSON).row_count == 4

    def test_every_table_commit_carries_the_operation_id(self, store: GraphStore) -> None:
        intent = prepared(store, {"bob": 1})
        commit_write(store, intent)
        pin = store.snapshot().pin(PERSON)
        landed = store.tables.transactions(pin.location, pin.lance_branch, pin.version - 1, pin.version)
        assert [info.properties["omnigraph.operation_id"] for info in landed] == [intent.operation_id]

    def test_cost_of_a_one_row_write(self, store: GraphStore) -> None:
        """One table commit, one of the manifest, one of the log; one put, one delete, one listing; nothing that
        grows. A lease is an object of its own where there are no locks of the operating system."""
        leases = 2 if is_on_s3(store.uri) else 0

        def cost() -> tuple[Counter[str], Counter[str]]:
            objects: Counter[str] = Counter()
            tables: Counter[str] = Counter()
            store.objects.on_call = lambda name: objects.update([name])
            store.tables.on_call = lambda name, location: tables.update([f"{name} {location.split('/')[0]}"])
            put_people(store, {"bob": 1})
            store.objects.on_call = None
            store.tables.on_call = None
            return objects, tables

        put_people(store, {"bob": 0})
        objects, tables = cost()
        commits = {name: count for name, count in tables.items() if name.startswith("commit ")}
        assert commits == {"commit nodes": 1, "commit __manifest": 1, "commit _graph_commits.lance": 1}
        assert {name: count for name, count in objects.items() if name != "get"} == {
            "list": 1,
            "put_if_absent": 1 + leases,
            "delete": 1 + leases,
        }
        for _ in range(10):
            put_people(store, {"bob": 2})
        later_objects, later_tables = cost()
        assert later_objects == objects
        assert later_tables == tables

    def test_the_sidecar_says_everything_and_only_names_tables_that_move(self, store: GraphStore) -> None:
        parent = store.snapshot().head
        run_killed(work, store.uri, "main", at="write.sidecar_put")
        stored = store.sidecars.get(store.sidecars.list()[0])
        assert stored is not None
        sidecar = stored.sidecar
        assert (sidecar.kind, sidecar.branch, sidecar.actor_id) == (WriterKind.LOAD, "main", "act-ada")
        assert sidecar.incarnation == store.branch("main").incarnation
        assert sidecar.parent_commit_id == parent.graph_commit_id
        assert sidecar.owner.process != os.getpid()
        assert sidecar.owner.lease is not None
        assert sidecar.owner.lease.startswith("writer-")
        assert {table.table_key for table in sidecar.tables} == {PERSON, KNOWS}
        assert [key for key, _ in sidecar.reads] == [COMPANY]
        for table in sidecar.tables:
            assert table.pin == store.snapshot().pin(table.table_key)
            assert table.expected_version == store.snapshot().pin(table.table_key).version
            assert len(table.transactions) == 1

    def test_a_table_without_changes_is_not_published(self, store: GraphStore) -> None:
        base = store.snapshot()
        session = WriteSession(store, base.branch, None)
        pin = base.pin(COMPANY)
        still = TableWrite(COMPANY, pin.type_id, pin.location, pin, table_of(pin), pin.row_count)
        writes = [people_write(session, base.pin(PERSON), {"bob": 1}), still]
        commit_write(store, session.intent(WriterKind.MUTATION, base, writes))
        assert store.snapshot().pin(COMPANY) == pin

    def test_staging_on_another_version_is_a_hard_error_and_undone(self, store: GraphStore) -> None:
        intent = prepared(store, {"bob": 1})
        write = intent.writes[0]
        wrong = replace(intent, writes=(replace(write, line=write.line.at(write.line.version - 1)),))
        before = observe(store)
        with pytest.raises(InternalError):
            commit_write(store, wrong)
        assert observe(store) == before
        assert store.sidecars.list() == []
        put_people(store, {"bob": 1})


class TestForks:
    def test_main_and_the_owner_build_on_the_pin(self, store: GraphStore) -> None:
        pin = store.snapshot().pin(PERSON)
        assert prepare_line(store, store.branch("main"), pin) == table_of(pin)

    def test_another_branch_forks_from_the_pin_under_a_unique_name(self, store: GraphStore) -> None:
        branch = create_branch(store, "review")
        pin = store.snapshot(branch="review").pin(PERSON)
        one, two = prepare_line(store, branch, pin), prepare_line(store, branch, pin)
        assert one.branch != two.branch
        assert one.branch is not None
        assert one.branch.startswith("f-")
        assert one.version == two.version == pin.version

    def test_the_first_write_of_a_branch_leaves_its_source_alone(self, store: GraphStore) -> None:
        create_branch(store, "review")
        before = content(store)
        put_friends(store, {"bob": 1}, [("bob", "ada")], "review")
        assert content(store) == before
        pin = store.snapshot(branch="review").pin(PERSON)
        assert pin.owner == store.branch("review").incarnation
        put_people(store, {"carl": 1}, "review")
        assert store.snapshot(branch="review").pin(PERSON).lance_branch == pin.lance_branch

    def test_of_two_first_writes_one_wins_and_the_other_drops_its_fork(self, store: GraphStore) -> None:
        create_branch(store, "review")
        one, two = prepared(store, {"bob": 1}, "review"), prepared(store, {"carl": 2}, "review")
        commit_write(store, one)
        with pytest.raises(TableMoved):
            commit_write(store, two)
        assert "bob" in {row[0] for row in content(store, "review")[PERSON]}


class TestFailingWriterThatLives:
    """It resolves its own sidecar before it returns."""

    @pytest.mark.parametrize("place", ["write.sidecar_put", "storage.commit.before", "storage.commit.after"])
    @pytest.mark.parametrize("branch", ["main", "review"])
    def test_undone(self, store: GraphStore, place: str, branch: str) -> None:
        create_branch(store, "review")
        put_people(store, {"carl": 3}, "review")
        before = observe(store)
        with active(place, "raise:1"), pytest.raises(FailpointError):
            put_friends(store, {"bob": 1, "ada": 99}, [("ada", "bob")], branch)
        assert observe(store) == before
        self.check(store, RecoveryKind.ROLLED_BACK)
        put_friends(store, {"bob": 1}, [("ada", "bob")], branch)

    @pytest.mark.parametrize(
        ("place", "kind"),
        [
            ("write.tables_committed", RecoveryKind.ROLLED_FORWARD),
            ("publish.before", RecoveryKind.ROLLED_FORWARD),
            ("publish.after", RecoveryKind.COMPLETED),
            ("write.published", RecoveryKind.COMPLETED),
        ],
    )
    def test_finished_and_reported_as_done(self, store: GraphStore, place: str, kind: RecoveryKind) -> None:
        with active(place, "raise:1"):
            commit = put_friends(store, {"bob": 1}, [("ada", "bob")])
        assert store.snapshot().head == commit
        assert commit.actor_id == (RECOVERY_ACTOR if kind is RecoveryKind.ROLLED_FORWARD else "act-ada")
        assert ("ada-bob", "ada", "bob") in content(store)[KNOWS]
        self.check(store, kind)

    def check(self, store: GraphStore, kind: RecoveryKind) -> None:
        check_pins_are_heads(store)
        check_history(store)
        assert store.sidecars.list() == []
        assert store.leases.list_live() == []
        assert [row.kind for row in store.audit.list()] == [kind]

    def test_a_writer_whose_sidecar_was_taken_over_stops(self, store: GraphStore, tmp_path: Path) -> None:
        before = observe(store)
        gate = tmp_path / "gate"
        failures: list[BaseException] = []

        def write() -> None:
            try:
                put_friends(store, {"bob": 1}, [("ada", "bob")])
            except BaseException as failure:
                failures.append(failure)

        with active("write.table_committed", f"pause:{gate}"):
            writer = threading.Thread(target=write)
            writer.start()
            wait_for(Path(f"{gate}.reached"))
            stored = store.sidecars.get(store.sidecars.list()[0])
            assert stored is not None
            store.sidecars.take_over(stored, SidecarOwner.here("somebody else"))
            gate.touch()
            writer.join(90)
        assert isinstance(failures[0], LeaseLost)
        assert observe(store) == before
        assert check_invariants(store.uri, before, None) == "before"


def interrupted(uri: str, place: str, gate: str) -> None:
    # A shell that runs the tests in the background has its children ignore the interrupt.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with active(place, f"pause:{gate}"):
        work(uri, "main")


@pytest.mark.parametrize(
    ("place", "outcome"), [("write.prepared", "before"), ("write.sidecar_put", "after"), ("publish.after", "after")]
)
def test_ctrl_c_before_phase_a_leaves_nothing_and_after_it_the_write_finishes(
    store: GraphStore, tmp_path: Path, place: str, outcome: str
) -> None:
    before = observe(store)
    gate = tmp_path / "gate"
    child = start_child(interrupted, store.uri, place, str(gate))
    wait_for(Path(f"{gate}.reached"))
    assert child.pid is not None
    os.kill(child.pid, signal.SIGINT)
    gate.touch()
    # The interrupt was delivered in the end: the child did not come to a normal end.
    assert join(child) != 0
    assert store.sidecars.list() == []
    assert store.leases.list_live() == []
    assert store.audit.list() == []
    assert (observe(store) == before) == (outcome == "before")
    check_pins_are_heads(store)
    check_history(store)


class TestLayoutWork:
    """`apply`: commits that depend on each other and carry no tag, for writers that change no data."""

    @pytest.fixture
    def fragmented(self, store: GraphStore) -> GraphStore:
        for number in range(4):
            put_people(store, {f"p{number}": number})
        return store

    @staticmethod
    def compact(base: Snapshot, session: WriteSession, kind: WriterKind = WriterKind.OPTIMIZE) -> WriteIntent:
        pin = base.pin(PERSON)
        line = session.line(pin)
        staged = session.store.tables.stage_compaction(line)
        assert staged is not None

        def apply(commits: TableCommits) -> None:
            commits.untagged(lambda _: session.store.tables.commit_compaction(staged))

        write = TableWrite(PERSON, pin.type_id, pin.location, pin, line, pin.row_count, apply=apply)
        return session.intent(kind, base, [write], changes_data=False)

    def test_published_as_a_commit_that_changes_no_data(self, fragmented: GraphStore) -> None:
        before, pin = observe(fragmented), fragmented.snapshot().pin(PERSON)
        commit = run_write(fragmented, "main", self.compact)
        assert commit is not None
        assert not commit.changes_data
        assert observe(fragmented) == before
        assert fragmented.snapshot().pin(PERSON).version == pin.version + 2
        check_pins_are_heads(fragmented)

    def test_a_writer_of_data_may_not_make_untagged_commits(self, fragmented: GraphStore) -> None:
        before = observe(fragmented)
        with pytest.raises(InternalError, match="without its tag"):
            run_write(fragmented, "main", lambda base, session: self.compact(base, session, WriterKind.LOAD))
        assert observe(fragmented) == before
        check_pins_are_heads(fragmented)

    @pytest.mark.parametrize("strict", [False, True])
    def test_rows_that_come_with_a_change_of_layout_are_not_published(
        self, fragmented: GraphStore, strict: bool
    ) -> None:
        before = content(fragmented)

        def prepare(base: Snapshot, session: WriteSession) -> WriteIntent:
            pin = base.pin(PERSON)
            more = fragmented.tables.scan_table(table_of(pin)).slice(0, 1)

            def grow(line: TableVersion) -> TableVersion:
                return fragmented.tables.commit_staged(fragmented.tables.stage_append(line, more), "somebody")

            write = TableWrite(
                PERSON,
                pin.type_id,
                pin.location,
                pin,
                table_of(pin),
                pin.row_count,
                apply=lambda commits: commits.untagged(grow, strict=strict),
            )
            return session.intent(WriterKind.OPTIMIZE, base, [write], changes_data=False)

        with pytest.raises(InternalError, match="only its layout was to change"):
            run_write(fragmented, "main", prepare)
        assert content(fragmented) == before

    def test_work_that_moves_nothing_makes_no_commit(self, fragmented: GraphStore) -> None:
        head = fragmented.snapshot().head

        def idle(base: Snapshot, session: WriteSession) -> WriteIntent:
            pin = base.pin(PERSON)
            write = TableWrite(
                PERSON, pin.type_id, pin.location, pin, table_of(pin), pin.row_count, apply=lambda commits: None
            )
            return session.intent(WriterKind.OPTIMIZE, base, [write], changes_data=False)

        assert run_write(fragmented, "main", idle) is None
        assert fragmented.snapshot().head == head
        assert fragmented.sidecars.list() == []

    def test_what_landed_before_a_failure_is_published_per_table(self, fragmented: GraphStore) -> None:
        before = observe(fragmented)
        with active("storage.compaction.after", "raise:1"):
            commit = run_write(fragmented, "main", self.compact)
        assert commit is not None
        assert observe(fragmented) == before
        check_pins_are_heads(fragmented)
        assert [row.kind for row in fragmented.audit.list()] == [RecoveryKind.ROLLED_FORWARD]

    def test_a_table_that_moved_meanwhile_is_left_out_and_told(self, fragmented: GraphStore) -> None:
        left_out: list[str] = []

        def prepare(base: Snapshot, session: WriteSession) -> WriteIntent:
            intent = self.compact(base, session)
            put_people(fragmented, {"late": 1})
            return replace(intent, on_left_out=left_out.append)

        assert run_write(fragmented, "main", prepare) is None
        assert left_out == [PERSON]
        check_pins_are_heads(fragmented)


class TestPublishOnly:
    """Writes that move no table: a fast-forward, a tombstone."""

    def test_repinned_and_tombstoned_without_a_sidecar(self, store: GraphStore) -> None:
        create_branch(store, "review")
        put_people(store, {"bob": 1}, "review")
        theirs = store.snapshot(branch="review").pin(PERSON)
        base = store.snapshot()
        session = WriteSession(store, base.branch, None)
        intent = replace(session.intent(WriterKind.BRANCH_MERGE, base, []), repinned=(theirs,), tombstones=(COMPANY,))
        with active("sidecar.put", "raise"):
            commit = commit_write(store, intent)
        assert commit is not None
        assert store.snapshot().pin(PERSON) == theirs
        assert COMPANY not in store.snapshot().tables
        put_people(store, {"carl": 1})
        assert store.snapshot().pin(PERSON).lance_branch != theirs.lance_branch
        assert {"bob", "carl"} <= {row[0] for row in content(store)[PERSON]}
        assert "carl" not in {row[0] for row in content(store, "review")[PERSON]}

    def test_a_new_table_with_rows_is_registered(self, store: GraphStore) -> None:
        base = store.snapshot()
        session = WriteSession(store, base.branch, None)
        schema = store.tables.schema(table_of(base.pin(PERSON)))
        made = store.tables.create("nodes/extra", schema)
        rows = store.tables.scan_table(table_of(base.pin(PERSON)))
        staged = store.tables.stage_append(made, rows)
        write = TableWrite("node:Extra", "extra", "nodes/extra", None, made, 3, commits=(staged,))
        commit_write(store, session.intent(WriterKind.SCHEMA_APPLY, base, [write]))
        pin = store.snapshot().pin("node:Extra")
        assert pin == TablePin("node:Extra", "extra", "nodes/extra", None, 2, 3, base.branch.incarnation)
        check_pins_are_heads(open_store(store.uri))
