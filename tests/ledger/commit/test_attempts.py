"""Writes from entry to commit: who prepares again and who reports, `if_commit`, leases, nothing left behind."""

from __future__ import annotations

import threading

import pytest

from omnigraph.config import override
from omnigraph.errors import BadRequest, Busy, NotFound, PreconditionFailed, TableMoved
from omnigraph.ledger.branches.branches import create_branch, delete_branch
from omnigraph.ledger.branches.schema_lock import hold_schema_lock
from omnigraph.ledger.commit import attempts
from omnigraph.ledger.commit.attempts import RetryPolicy, WriteSession, run_write
from omnigraph.ledger.commit.intents import TableCommits, TableWrite, WriteIntent
from omnigraph.ledger.commit.queue import Footprint, WriteQueue
from omnigraph.ledger.commit.window import CommitWindows
from omnigraph.ledger.snapshots import table_of
from omnigraph.ledger.store import GraphStore, open_store
from omnigraph.ledger.values import GraphCommit, Snapshot, WriterKind
from tests.faults.harness import answers_of
from tests.faults.invariants import check_history, check_pins_are_heads, observe
from tests.faults.writers import KNOWS, PERSON, content, edges_write, people_write, put_friends, put_people
from tests.ledger.places import is_on_s3


def people(store: GraphStore, branch: str = "main") -> dict[object, object]:
    return {row[0]: row[2] for row in content(store, branch)[PERSON]}


def racing(store: GraphStore, ages: dict[str, int], race: list[object], **options: object) -> GraphCommit | None:
    """A write of people during whose preparation the calls in `race` happen, one per attempt."""

    def prepare(base: Snapshot, session: WriteSession) -> WriteIntent:
        write = people_write(session, base.pin(PERSON), ages)
        if race:
            race.pop(0)()  # type: ignore[operator]
        return session.intent(WriterKind.MUTATION, base, [write])

    return run_write(store, "main", prepare, **options)  # type: ignore[arg-type]


def compact(store: GraphStore) -> None:
    """A commit that changes the layout of the people and no data."""

    def prepare(base: Snapshot, session: WriteSession) -> WriteIntent:
        pin = base.pin(PERSON)
        staged = store.tables.stage_compaction(table_of(pin))
        assert staged is not None

        def apply(commits: TableCommits) -> None:
            commits.untagged(lambda _: store.tables.commit_compaction(staged))

        write = TableWrite(PERSON, pin.type_id, pin.location, pin, table_of(pin), pin.row_count, apply=apply)
        return session.intent(WriterKind.OPTIMIZE, base, [write], changes_data=False)

    assert run_write(store, "main", prepare) is not None


class TestConflicts:
    def test_a_write_that_adds_rows_is_prepared_again(self, store: GraphStore) -> None:
        race = [lambda: put_people(store, {"carl": 1}), lambda: put_people(store, {"dora": 1})]
        racing(store, {"bob": 1}, race, retry=RetryPolicy.PREPARE_AGAIN)
        assert {"bob", "carl", "dora"} <= people(store).keys()
        check_history(store)
        check_pins_are_heads(store)

    def test_an_update_reports_the_conflict_with_details(self, store: GraphStore) -> None:
        with pytest.raises(TableMoved) as caught:
            racing(store, {"ada": 1}, [lambda: put_people(store, {"ada": 2})], retry=RetryPolicy.SURFACE)
        assert caught.value.details["manifest_conflict"] == {"table_key": PERSON, "expected": 2, "actual": 3}
        assert people(store)["ada"] == 2

    def test_attempts_are_bounded(self, store: GraphStore, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(attempts, "DATA_ATTEMPTS", 3)
        monkeypatch.setattr(attempts, "HOLD_AFTER", 100)
        race = [lambda: put_people(store, {"carl": 1}) for _ in range(10)]
        with pytest.raises(TableMoved):
            racing(store, {"bob": 1}, race, retry=RetryPolicy.PREPARE_AGAIN)
        assert 10 - len(race) == 3

    def test_nobody_comes_between_once_two_races_are_lost(self, store: GraphStore) -> None:
        rival = threading.Thread(target=lambda: put_people(store, {"rival": 1}))
        seen: list[bool] = []

        def try_to_come_between() -> None:
            rival.start()
            rival.join(0.2)
            seen.append(rival.is_alive())

        race = [lambda: put_people(store, {"carl": 1}), lambda: put_people(store, {"dora": 1}), try_to_come_between]
        first = racing(store, {"bob": 1}, race, retry=RetryPolicy.PREPARE_AGAIN)
        rival.join()
        assert seen == [True], "the rival waits while the write is prepared for the third time"
        assert not race
        assert store.snapshot().head.parent_commit_id == first.graph_commit_id
        assert {"bob", "carl", "dora", "rival"} <= people(store).keys()

    def test_a_mismatch_from_layout_only_is_never_surfaced(self, store: GraphStore) -> None:
        put_people(store, {"carl": 1})
        racing(store, {"ada": 1}, [lambda: compact(store)], retry=RetryPolicy.SURFACE)
        assert people(store)["ada"] == 1

    def test_layout_then_data_is_surfaced(self, store: GraphStore) -> None:
        put_people(store, {"carl": 1})

        def both() -> None:
            compact(store)
            put_people(store, {"dora": 1})

        with pytest.raises(TableMoved):
            racing(store, {"ada": 1}, [both], retry=RetryPolicy.SURFACE)

    def test_data_elsewhere_and_layout_here_is_not_surfaced(self, store: GraphStore) -> None:
        put_people(store, {"carl": 1})

        def both() -> None:
            compact(store)
            run_write(
                store,
                "main",
                lambda base, session: session.intent(
                    WriterKind.MUTATION, base, [edges_write(session, base.pin(KNOWS), [("ada", "grace")])]
                ),
            )

        racing(store, {"ada": 1}, [both], retry=RetryPolicy.SURFACE)
        assert people(store)["ada"] == 1


TOLD = Footprint(frozenset({PERSON, KNOWS}))


class TestTurns:
    """Who says what it will touch waits before it is prepared; everybody else only once it has lost a race."""

    @pytest.fixture
    def turns(self, monkeypatch: pytest.MonkeyPatch) -> list[Footprint]:
        found: list[Footprint] = []
        turn = WriteQueue.turn

        def noted(self: WriteQueue, branch: str, footprint: Footprint) -> object:
            found.append(footprint)
            return turn(self, branch, footprint)

        monkeypatch.setattr(WriteQueue, "turn", noted)
        return found

    def test_who_takes_one_before_it_is_prepared(self, store: GraphStore, turns: list[Footprint]) -> None:
        racing(store, {"told": 1}, [], footprint=TOLD)
        assert turns == [TOLD]
        racing(store, {"has it": 1}, [], footprint=TOLD, has_turn=True)
        racing(store, {"not told": 1}, [])
        assert turns == [TOLD]

    @pytest.mark.parametrize(
        ("options", "expected"),
        [({"footprint": TOLD}, TOLD), ({}, Footprint(frozenset({PERSON})))],
        ids=["told", "not told"],
    )
    def test_everybody_takes_one_for_the_second_attempt(
        self, store: GraphStore, turns: list[Footprint], options: dict[str, object], expected: Footprint
    ) -> None:
        racing(store, {"bob": 1}, [lambda: put_people(store, {"carl": 1})], retry=RetryPolicy.PREPARE_AGAIN, **options)
        assert turns == [expected]

    def test_who_waits_for_its_turn_waits_as_long_for_the_window(
        self, store: GraphStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        waits: list[float | None] = []
        enter = CommitWindows.enter

        def noted(self: CommitWindows, *given: object, wait: float | None = None, **options: object) -> object:
            waits.append(wait)
            return enter(self, *given, wait=wait, **options)  # type: ignore[arg-type]

        monkeypatch.setattr(CommitWindows, "enter", noted)
        with override(queue_wait_seconds=7.0):
            racing(store, {"bob": 1}, [])
            racing(store, {"bob": 2}, [], footprint=Footprint(frozenset({PERSON})))
        assert waits == [None, 7.0]


class TestIfCommit:
    def test_runs_when_the_head_is_that_commit(self, store: GraphStore) -> None:
        head = store.snapshot().head.graph_commit_id
        put_people(store, {"bob": 1}, if_commit=head)

    def test_fails_without_effect_when_data_changed_since(self, store: GraphStore) -> None:
        old = store.snapshot().head.graph_commit_id
        put_people(store, {"bob": 1})
        before = observe(store)
        with pytest.raises(PreconditionFailed) as caught:
            put_people(store, {"carl": 1}, if_commit=old)
        assert caught.value.details["if_commit"] == old
        assert observe(store) == before

    def test_commits_that_changed_no_data_do_not_count(self, store: GraphStore) -> None:
        put_people(store, {"bob": 1})
        old = store.snapshot().head.graph_commit_id
        compact(store)
        put_people(store, {"carl": 1}, if_commit=old)
        assert "carl" in people(store)

    def test_a_change_during_preparation_counts_even_of_another_table(self, store: GraphStore) -> None:
        head = store.snapshot().head.graph_commit_id

        def edges() -> None:
            run_write(
                store,
                "main",
                lambda base, session: session.intent(
                    WriterKind.MUTATION, base, [edges_write(session, base.pin(KNOWS), [("ada", "grace")])]
                ),
            )

        with pytest.raises(PreconditionFailed):
            racing(store, {"bob": 1}, [edges], retry=RetryPolicy.PREPARE_AGAIN, if_commit=head)
        assert "bob" not in people(store)

    def test_an_unknown_commit_is_a_failed_precondition(self, store: GraphStore) -> None:
        with pytest.raises(PreconditionFailed, match="knows no commit 01JZ"):
            put_people(store, {"bob": 1}, if_commit="01JZ0000000000000000000000")


class TestEntry:
    def test_a_read_only_graph_refuses(self, store: GraphStore) -> None:
        with pytest.raises(BadRequest, match="read-only"):
            put_people(open_store(store.uri, read_only=True), {"bob": 1})

    def test_an_unknown_branch(self, store: GraphStore) -> None:
        with pytest.raises(NotFound, match="did you mean"):
            put_people(store, {"bob": 1}, "mian")

    def test_a_live_schema_apply_turns_writers_away(self, store: GraphStore) -> None:
        with hold_schema_lock(store, "01SCHEMA"), pytest.raises(Busy, match="schema apply"):
            put_people(store, {"bob": 1})
        put_people(store, {"bob": 1})

    def test_a_lease_says_that_files_are_being_made(self, store: GraphStore) -> None:
        seen: list[str] = []

        def prepare(base: Snapshot, session: WriteSession) -> None:
            seen.extend(info.name for info in store.leases.list_live(attempts.WRITER_LEASE_PREFIX))

        assert run_write(store, "main", prepare) is None
        assert len(seen) == 1
        assert store.leases.list_live() == []


class TestNothingLeftBehind:
    def files(self, store: GraphStore) -> set[str]:
        return {entry.path for entry in store.objects.list("") if "/data/" in entry.path or "/tree/" in entry.path}

    def forks(self, store: GraphStore) -> list[str]:
        return [fork.name for pin in store.snapshot().tables.values() for fork in store.tables.list_forks(pin.location)]

    @pytest.mark.parametrize("branch", ["main", "review"])
    def test_a_failure_in_preparation(self, store: GraphStore, branch: str) -> None:
        create_branch(store, "review")
        before = self.files(store)

        def prepare(base: Snapshot, session: WriteSession) -> WriteIntent:
            people_write(session, base.pin(PERSON), {"bob": 1})
            edges_write(session, base.pin(KNOWS), [("ada", "bob")])
            assert self.files(store) != before
            raise ValueError("bad rows")

        with pytest.raises(ValueError, match="bad rows"):
            run_write(store, branch, prepare)
        assert self.forks(store) == []
        assert self.files(store) == before

    def test_nothing_to_do(self, store: GraphStore) -> None:
        create_branch(store, "review")
        before = self.files(store)

        def prepare(base: Snapshot, session: WriteSession) -> None:
            people_write(session, base.pin(PERSON), {"bob": 1})

        assert run_write(store, "review", prepare) is None
        assert self.forks(store) == []
        assert self.files(store) == before

    def test_a_lost_race_for_the_first_fork(self, store: GraphStore) -> None:
        create_branch(store, "review")

        def prepare(base: Snapshot, session: WriteSession) -> WriteIntent:
            write = people_write(session, base.pin(PERSON), {"bob": 1})
            if "carl" not in people(store, "review"):
                put_people(store, {"carl": 1}, "review")
            return session.intent(WriterKind.MUTATION, base, [write])

        run_write(store, "review", prepare, retry=RetryPolicy.PREPARE_AGAIN)
        assert {"bob", "carl"} <= people(store, "review").keys()
        assert self.forks(store) == [store.snapshot(branch="review").pin(PERSON).lance_branch]

    def test_forks_that_the_write_did_not_use_go(self, store: GraphStore) -> None:
        create_branch(store, "review")

        def prepare(base: Snapshot, session: WriteSession) -> WriteIntent:
            edges_write(session, base.pin(KNOWS), [("ada", "bob")])
            return session.intent(WriterKind.MUTATION, base, [people_write(session, base.pin(PERSON), {"bob": 1})])

        run_write(store, "review", prepare)
        assert self.forks(store) == [store.snapshot(branch="review").pin(PERSON).lance_branch]


class TestConcurrency:
    def test_threads_that_add_rows_to_one_table_all_succeed(self, store: GraphStore) -> None:
        failures: list[BaseException] = []
        workers, count = (3, 2) if is_on_s3(store.uri) else (6, 4)

        def add(worker: int) -> None:
            try:
                for number in range(count):
                    put_people(store, {f"w{worker}-{number}": number})
            except BaseException as failure:
                failures.append(failure)

        _in_threads(add, workers)
        assert failures == []
        assert len(people(store)) == 3 + workers * count
        check_history(store)
        check_pins_are_heads(store)

    def test_no_update_is_lost(self, store: GraphStore) -> None:
        put_people(store, {"ada": 0})
        successes: list[int] = []

        def prepare(base: Snapshot, session: WriteSession) -> WriteIntent:
            rows = store.tables.take_ids(table_of(base.pin(PERSON)), ["ada"]).to_pylist()
            return session.intent(
                WriterKind.MUTATION, base, [people_write(session, base.pin(PERSON), {"ada": rows[0]["age"] + 1})]
            )

        def increment(worker: int) -> None:
            for _ in range(2 if is_on_s3(store.uri) else 8):
                try:
                    run_write(store, "main", prepare, retry=RetryPolicy.SURFACE)
                    successes.append(worker)
                except TableMoved:
                    continue

        _in_threads(increment, 5)
        assert people(store)["ada"] == len(successes)
        assert successes

    def test_writers_of_different_branches_do_not_meet(self, store: GraphStore) -> None:
        names = [f"b{number}" for number in range(2 if is_on_s3(store.uri) else 4)]
        for name in names:
            create_branch(store, name)

        def add(worker: int) -> None:
            for number in range(3):
                put_friends(store, {f"w{number}": number}, [("ada", f"w{number}")], names[worker])

        _in_threads(add, len(names))
        for name in names:
            assert len(people(store, name)) == 6
        assert len(people(store)) == 3
        check_history(store)
        check_pins_are_heads(store)

    @pytest.mark.slow
    def test_processes_that_add_rows_to_one_table_all_succeed(self, store: GraphStore) -> None:
        count = 2 if is_on_s3(store.uri) else 5
        answers_of(add_people, [(store.uri, worker, count) for worker in range(3)])
        assert len(people(store)) == 3 + 3 * count
        check_history(store)
        check_pins_are_heads(store)
        assert store.audit.list() == []


def add_people(uri: str, worker: int, count: int) -> None:
    store = open_store(uri)
    for number in range(count):
        put_people(store, {f"w{worker}-{number}": number})


def _in_threads(work: object, count: int) -> None:
    threads = [threading.Thread(target=work, args=(number,)) for number in range(count)]  # type: ignore[arg-type]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
        assert not thread.is_alive()


def test_a_branch_that_another_process_made_anew_is_written_as_it_is_now(store: GraphStore) -> None:
    """What is known of a branch from the write before is asked for at once with the branch, and only believed if it is
    still the same one."""
    put_people(store, {"ada": 1}, "main")
    create_branch(store, "review")
    put_people(store, {"bob": 2}, "review")
    with open_store(store.uri) as other:
        delete_branch(other, "review")
        put_people(other, {"eve": 3}, "main")
        create_branch(other, "review")
    put_people(store, {"cid": 4}, "review")
    assert people(store, "review") == {**people(store), "cid": 4}
    assert people(store)["eve"] == 3
    delete_branch(store, "review")
    with pytest.raises(NotFound, match="review"):
        put_people(store, {"dan": 5}, "review")
