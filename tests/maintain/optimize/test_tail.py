"""Small commits must not pile up: tails are compacted after writes, off their path, and nothing is lost by it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.config import override
from omnigraph.ledger.commit.queue import EVERYTHING
from omnigraph.ledger.snapshots import table_of
from omnigraph.ledger.store import GraphStore, open_store
from omnigraph.maintain.optimize import tail
from omnigraph.maintain.optimize.tail import STEPS, compact_tail, step_to_take
from omnigraph.maintain.verify import verify
from tests.faults.harness import run_killed
from tests.maintain.graphs import PERSON, SCHEMA, people, put

INSERT = "query add($who: String, $age: I32) { insert Person { name: $who, age: $age } }"


def fragments(graph: og.Graph) -> int:
    snapshot = graph.snapshot()
    return len(graph._store.tables.fragments(table_of(snapshot.pin(PERSON))))


def test_steps() -> None:
    assert step_to_take([1] * 64, 64) is None
    assert step_to_take([1] * 65, 64) == STEPS[0]
    assert step_to_take([*[1] * 65, *[5000] * 65], 64) == STEPS[1]
    assert step_to_take([STEPS[-1]] * 500, 64) is None


def mutate_many(path: Path, number: int) -> None:
    with og.init(path, schema=SCHEMA) as graph:
        for index in range(number):
            graph.mutate(INSERT, who=f"p{index}", age=index)
    with og.open(path) as graph:
        assert fragments(graph) <= 64 + 16
        assert graph.snapshot().pin(PERSON).row_count == number
        assert graph.entity("Person", "p7") is not None
        assert graph.verify().ok
        data = [commit for commit in graph.log() if commit.changes_data and commit.kind.value == "Mutation"]
        assert len(data) == number


def test_a_few_hundred_mutations_leave_a_bounded_number_of_fragments(tmp_path: Path) -> None:
    with override(auto_compact_fragments=24):
        mutate_many(tmp_path / "graph", 150)
    with og.open(tmp_path / "graph") as graph:
        assert fragments(graph) <= 24 + 8


@pytest.mark.slow
def test_as_it_is_set_many_mutations_leave_a_bounded_number_of_fragments(tmp_path: Path) -> None:
    mutate_many(tmp_path / "graph", 400)


def test_it_can_be_switched_off(tmp_path: Path) -> None:
    with override(auto_compact_fragments=0), og.init(tmp_path / "graph", schema=SCHEMA) as graph:
        for index in range(10):
            graph.mutate(INSERT, who=f"p{index}", age=index)
        assert fragments(graph) == 10
    with override(auto_compact_fragments=4), og.open(tmp_path / "graph") as graph:
        graph.mutate(INSERT, who="last", age=1)
    with og.open(tmp_path / "graph", read_only=True) as graph:
        assert fragments(graph) < 5


@pytest.mark.parametrize("accompanied", [True, False])
def test_beside_other_processes_a_tail_is_compacted_a_little_later_by_chance(
    tmp_path: Path, accompanied: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that tables which several processes write to alike are not all compacted at once."""
    monkeypatch.setattr(tail.random, "uniform", lambda least, most: most)

    def write(numbers: range) -> int:
        with og.open(tmp_path / "graph") as graph:
            for number in numbers:
                if accompanied:
                    graph._store.queue.note_company("main")
                graph.mutate(INSERT, who=f"p{number}", age=1)
        with og.open(tmp_path / "graph", read_only=True) as graph:
            return fragments(graph)

    with override(auto_compact_fragments=8):
        og.init(tmp_path / "graph", schema=SCHEMA).close()
        assert (write(range(12)) == 12) == accompanied
        assert write(range(12, 15)) < 9


def test_closing_ends_the_worker_and_nothing_is_lost_with_many_writers(tmp_path: Path) -> None:
    with override(auto_compact_fragments=8), og.init(tmp_path / "graph", schema=SCHEMA) as graph:

        def write(start: int) -> None:
            for index in range(start, start + 12):
                graph.mutate(INSERT, who=f"p{index}", age=index)

        writers = [threading.Thread(target=write, args=(start,)) for start in (0, 100, 200)]
        for writer in writers:
            writer.start()
        for writer in writers:
            writer.join()
    assert not any(thread.name == "omnigraph-tail" for thread in threading.enumerate())
    with og.open(tmp_path / "graph") as graph:
        assert graph.snapshot().pin(PERSON).row_count == 36
        assert graph.verify().ok


def test_an_idle_graph_keeps_no_thread_and_the_next_write_starts_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tail, "IDLE_SECONDS", 0.01)
    with override(auto_compact_fragments=2), og.init(tmp_path / "graph", schema=SCHEMA) as graph:
        for turn in range(3):
            for number in range(3):
                graph.mutate(INSERT, who=f"p{turn}-{number}", age=number)
            deadline = time.monotonic() + 90
            while any(thread.name == "omnigraph-tail" for thread in threading.enumerate()):
                assert time.monotonic() < deadline
                time.sleep(0.01)
            assert fragments(graph) <= 2 + 3


def compact_and_die(uri: str) -> None:
    """The upkeep of one table, to be killed."""
    with override(auto_compact_fragments=2):
        compact_tail(open_store(uri), "main", PERSON)


@pytest.mark.parametrize("at", ["storage.compaction.before", "storage.compaction.after", "write.tables_committed"])
def test_dying_in_the_middle_costs_nothing(store: GraphStore, at: str) -> None:
    for number in range(5):
        put(store, **{f"p{number}": number})
    before = people(store)
    run_killed(compact_and_die, store.uri, at=at)
    with open_store(store.uri) as reopened, override(auto_compact_fragments=2):
        assert people(reopened) == before
        assert reopened.sidecars.list() == []
        compact_tail(reopened, "main", PERSON)
        # The first fragment is spared: each commit of rows touches it.
        assert len(reopened.tables.fragments(table_of(reopened.snapshot().pin(PERSON)))) <= 2
        put(reopened, last=1)
        assert people(reopened) == {**before, "last": 1}
        assert verify(reopened).ok


def test_of_several_who_noticed_a_long_tail_one_compacts_it(store: GraphStore) -> None:
    for number in range(5):
        put(store, **{f"p{number}": number})
    before = store.snapshot().manifest_version
    with open_store(store.uri) as other, og.open(store.uri) as graph, override(auto_compact_fragments=3):
        steps: list[Callable[[], object]] = [
            lambda: compact_tail(store, "main", PERSON),
            lambda: graph.mutate(INSERT, who="late", age=1),
            lambda: graph.mutate(INSERT, who="later", age=1),
        ]
        running = [threading.Thread(target=step) for step in steps]
        # It has seen the long tail, and rewritten it, before the others write; who comes now leaves it alone.
        with store.queue.turn("main", EVERYTHING):
            for number, thread in enumerate(running):
                thread.start()
                deadline = time.monotonic() + 90
                while store.queue.waiting("main") < number + 2:
                    assert time.monotonic() < deadline
                    time.sleep(0.001)
            compact_tail(other, "main", PERSON)
        for thread in running:
            thread.join()
    commits = store.snapshot().manifest_version - before
    assert commits == 2 + 2, "two writes, the compaction, and its indexes"
    # The first one, those that were brought together, and two that came later.
    assert len(store.tables.fragments(table_of(store.snapshot().pin(PERSON)))) == 4


def rows_of_fragments(store: GraphStore) -> list[int]:
    return [fragment.rows for fragment in store.tables.fragments(table_of(store.snapshot().pin(PERSON)))]


@pytest.mark.parametrize("meanwhile", ["insert", "update", "delete"])
def test_what_was_compacted_outside_the_window_is_committed_after_other_writes(
    store: GraphStore, meanwhile: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(6):
        put(store, **{f"p{number}": number})
    stage = store.tables.stage_compaction
    staged: list[bool] = []

    def and_then_others_write(*args: object, **options: object) -> object:
        found = stage(*args, **options)  # type: ignore[arg-type]
        staged.append("spare_first" in options)
        if len(staged) == 1:
            with og.open(store.uri) as graph:
                graph.mutate(
                    {
                        "insert": 'query q() { insert Person { name: "late", age: 9 } }',
                        "update": 'query q() { update Person set { age: 9 } where name = "p3" }',
                        "delete": 'query q() { delete Person where name = "p3" }',
                    }[meanwhile]
                )
        return found

    monkeypatch.setattr(store.tables, "stage_compaction", and_then_others_write)
    expected = {f"p{number}": number for number in range(6)}
    expected |= {"insert": {"late": 9}, "update": {"p3": 9}, "delete": {}}[meanwhile]
    if meanwhile == "delete":
        del expected["p3"]
    with override(auto_compact_fragments=3):
        compact_tail(store, "main", PERSON)
    assert people(store) == expected
    # A change of what was rewritten makes it be done again, in the window; rows that come do not.
    assert staged == ([True] if meanwhile == "insert" else [True, False])
    assert len(rows_of_fragments(store)) <= 3
    assert verify(store).ok
    with open_store(store.uri) as other:
        assert people(other) == expected
        put(other, last=1)
        assert people(other) == {**expected, "last": 1}


def test_the_tail_of_a_fork_is_compacted_with_indexes_that_can_be_read(tmp_path: Path) -> None:
    """A compaction rewrites indexes that a fork has from its parent, and Lance looks for them in the parent's place."""
    with override(auto_compact_fragments=0), og.init(tmp_path / "graph", schema=SCHEMA) as graph:
        for index in range(10):
            graph.mutate(INSERT, who=f"p{index}", age=index)
        graph.ensure_indices()
        graph.branch_create("review")
    with override(auto_compact_fragments=4), og.open(tmp_path / "graph", branch="review") as graph:
        graph.mutate(INSERT, who="last", age=1)
    with og.open(tmp_path / "graph", branch="review") as graph:
        assert fragments(graph) < 5
        assert graph.verify().findings == ()
        pin = graph.snapshot().pin(PERSON)
        assert pin.lance_branch is not None
        indexes = graph._store.tables.list_indexes(table_of(pin))
        assert indexes
        assert not any(index.uncovered_fragments for index in indexes)
        assert all(graph.entity("Person", name) is not None for name in ("p0", "p9", "last"))
