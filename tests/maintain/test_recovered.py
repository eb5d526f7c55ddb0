"""Maintenance beside writers of other processes: one at work is waited for and never taken for a dead one."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from omnigraph.config import override
from omnigraph.errors import Busy
from omnigraph.ledger.store import GraphStore, open_store
from omnigraph.maintain.optimize.optimize import optimize
from tests.faults.harness import join, run_killed, start_child, wait_for
from tests.maintain.graphs import people, put


def write(uri: str) -> None:
    """One write of another process."""
    put(open_store(uri), theirs=1)


def test_a_writer_that_takes_long_is_waited_for_and_then_told_of_as_busy(store: GraphStore, tmp_path: Path) -> None:
    put(store, mine=1)
    gate = tmp_path / "gate"
    child = start_child(write, store.uri, failpoints_on={"write.sidecar_put": f"pause:{gate}"})
    try:
        wait_for(Path(f"{gate}.reached"))
        with override(lease_wait_seconds=0.2), pytest.raises(Busy, match="still at work"):
            optimize(store)
        threading.Timer(0.5, gate.touch).start()
        optimize(store)
    finally:
        gate.touch()
    assert join(child) == 0
    assert people(store) == {"mine": 1, "theirs": 1}


def test_what_a_dead_writer_left_is_healed_though_its_branch_is_busy(store: GraphStore) -> None:
    put(store, mine=1)
    run_killed(write, store.uri, at="write.tables_committed")
    branch = store.branch("main")
    busy = threading.Event()

    def hold() -> None:
        with store.windows.enter(branch, None):
            busy.set()
            threading.Event().wait(0.3)

    holder = threading.Thread(target=hold)
    holder.start()
    busy.wait()
    optimize(store)
    holder.join()
    assert store.sidecars.list() == []
    assert people(store) == {"mine": 1, "theirs": 1}
