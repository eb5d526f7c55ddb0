"""Writers die at random moments, alone and beside others: what was acknowledged stays, the rest is whole or absent."""

from __future__ import annotations

import os
import random
import threading
import time
from pathlib import Path

import pytest

from omnigraph.errors import RecoveryRequired
from omnigraph.ledger.branches.branches import create_branch
from omnigraph.ledger.store import GraphStore, open_store
from tests.faults.harness import join, start_child, wait_for
from tests.faults.invariants import check_history, check_invariants, check_pins_are_heads, observe
from tests.faults.scenarios import write_on_and_on
from tests.faults.writers import KNOWS, PERSON, content, new_graph, put_friends

SEED = int(os.environ.get("OMNIGRAPH_KILL_SEED", "20240229"))
KILLS_PER_GRAPH = 40


def _noted(acknowledged: Path) -> str:
    return acknowledged.read_text() if acknowledged.exists() else ""


def check_acknowledged(store: GraphStore, branch: str, acknowledged: Path) -> set[str]:
    """Acknowledged writes are there, each write is whole, and at most one per life of a writer is unacknowledged."""
    noted = set(_noted(acknowledged).split())
    shown = content(store, branch)
    people = {str(row[0]) for row in shown[PERSON]}
    friends = {str(row[2]) for row in shown[KNOWS]}
    assert noted <= people
    assert friends == {person for person in people if "-" in person}
    unacknowledged = friends - noted
    assert len({person.rsplit("-", 1)[0] for person in unacknowledged}) == len(unacknowledged)
    return friends


def wait_for_writes(acknowledged: Path, prefix: str, count: int) -> None:
    """Wait until a writer has noted so many writes."""
    deadline = time.monotonic() + 60
    while _noted(acknowledged).count(prefix) < count:
        assert time.monotonic() < deadline, "a writer makes no headway"
        time.sleep(0.002)


@pytest.mark.slow
@pytest.mark.parametrize("graph", range(5))
def test_killed_at_random_moments(graph: int, tmp_path: Path) -> None:
    moments = random.Random(SEED + graph)
    branch = "main" if graph % 2 == 0 else "review"
    uri = str(tmp_path / "graph")
    create_branch(new_graph(uri), "review")
    acknowledged = tmp_path / "acknowledged"
    other = {"main": "review", "review": "main"}[branch]
    before_other = content(open_store(uri, read_only=True), other)
    life = recovered = 0
    # How many deaths fall into a commit depends on how busy the machine is: go on until the test means something.
    while life < KILLS_PER_GRAPH or (recovered < KILLS_PER_GRAPH // 20 and life < 5 * KILLS_PER_GRAPH):
        child = start_child(write_on_and_on, uri, branch, f"life{life}", str(acknowledged))
        wait_for(Path(f"{acknowledged}.life{life}"))
        # Some die while they open and recover, most in one of their first writes.
        wait_for_writes(acknowledged, f"life{life}-", moments.choice([0, 1, 1, 2]))
        time.sleep(moments.uniform(0.0, 0.06))
        child.kill()
        join(child)
        if life % 8 == 7:
            pending = observe(open_store(uri, read_only=True))
            store = open_store(uri)
            check_pins_are_heads(store)
            check_acknowledged(store, branch, acknowledged)
            assert content(store, other) == before_other
            assert pending[other] == before_other
            recovered = len(store.audit.list())
        life += 1
    store = open_store(uri)
    check_acknowledged(store, branch, acknowledged)
    now = observe(store)
    check_invariants(uri, now, now, next_write=lambda s: put_friends(s, {"last-1": 1}, [("ada", "last-1")], branch))
    rows = store.audit.list()
    assert len({row.operation_id for row in rows}) == len(rows)
    assert len(rows) >= KILLS_PER_GRAPH // 20, "too few deaths fell into a commit for the test to mean anything"


def _blocked_by(store: GraphStore, person: str) -> RecoveryRequired | None:
    try:
        put_friends(store, {person: 1}, [("ada", person)])
    except RecoveryRequired as blocked:
        return blocked
    return None


@pytest.mark.parametrize(
    "failpoint",
    ["write.prepared", "write.sidecar_put", "write.table_committed", "write.tables_committed", "publish.after",
     "write.published"],
)  # fmt: skip
def test_one_of_two_processes_is_killed_while_the_other_writes(failpoint: str, tmp_path: Path) -> None:
    uri = str(tmp_path / "graph")
    store = new_graph(uri)
    doomed_notes, survivor_notes = tmp_path / "doomed", tmp_path / "survivor"
    doomed = start_child(write_on_and_on, uri, "main", "doomed", str(doomed_notes), failpoints_on={failpoint: "kill:3"})
    wait_for(doomed_notes)
    reopened = 0
    with survivor_notes.open("a", buffering=1) as notes:
        for number in range(12):
            person = f"survivor-{number}"
            blocked = _blocked_by(store, person)
            if blocked is not None:
                # The error says so: reopening for writing recovers what needs a restore.
                assert "eopen the graph for writing" in blocked.message
                assert blocked.operation_id is not None
                join(doomed)
                store = open_store(uri)
                reopened += 1
                put_friends(store, {person: 1}, [("ada", person)])
            notes.write(f"{person}\n")
    assert join(doomed) != 0
    assert reopened <= 1
    if failpoint != "write.table_committed":
        assert reopened == 0
    store = open_store(uri)
    check_history(store)
    check_pins_are_heads(store)
    both = tmp_path / "both"
    both.write_text(doomed_notes.read_text() + survivor_notes.read_text())
    shown = check_acknowledged(store, "main", both)
    assert {f"survivor-{number}" for number in range(12)} <= shown
    assert store.sidecars.list() == []
    assert store.leases.list_live() == []


@pytest.mark.slow
def test_threads_of_a_living_process_go_on_when_another_process_dies(tmp_path: Path) -> None:
    uri = str(tmp_path / "graph")
    store = new_graph(uri)
    for name in ("a", "b"):
        create_branch(store, name)
    failures: list[BaseException] = []

    def write(branch: str) -> None:
        try:
            for number in range(10):
                put_friends(store, {f"{branch}{number}-x": number}, [("ada", f"{branch}{number}-x")], branch)
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=write, args=(branch,)) for branch in ("a", "b")]
    doomed = start_child(
        write_on_and_on,
        uri,
        "main",
        "doomed",
        str(tmp_path / "notes"),
        failpoints_on={"write.table_committed": "kill:2"},
    )
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert join(doomed) != 0
    assert failures == []
    store = open_store(uri)
    for branch in ("a", "b"):
        assert len(content(store, branch)[KNOWS]) == 10
    check_pins_are_heads(store)
    check_history(store)
