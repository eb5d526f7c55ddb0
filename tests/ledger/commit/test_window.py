"""The commit window: one at a time per branch, in process and across processes; branches run in parallel."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from omnigraph.errors import Busy, InternalError, LeaseLost
from omnigraph.ledger.commit import window as window_module
from omnigraph.ledger.commit.window import CommitWindows, lease_name
from omnigraph.ledger.values import BranchRef
from omnigraph.storage.leases.leases import Leases
from omnigraph.storage.objects.objects import open_objects
from omnigraph.storage.uri import parse_root
from tests.faults.harness import join, start_child, wait_for
from tests.ledger.places import is_on_s3, let_leases_run_out

MAIN = BranchRef("main", "01M", None)
OTHER = BranchRef("other", "01N", "b-01N")


def windows_at(path: str) -> CommitWindows:
    root = parse_root(path)
    return CommitWindows(root.uri, Leases(root, open_objects(root)))


@pytest.fixture
def windows(path: str) -> Iterator[CommitWindows]:
    yield windows_at(path)
    assert not window_module._locks


def test_a_window_covers_its_tables_only(windows: CommitWindows) -> None:
    with windows.enter(MAIN, ["node:A", "edge:B"]) as window:
        window.covers("node:A")
        window.covers("edge:B")
        with pytest.raises(InternalError, match="node:C"):
            window.covers("node:C")


def test_the_same_table_of_the_same_branch_is_exclusive(windows: CommitWindows) -> None:
    with windows.enter(MAIN, ["node:A"]), pytest.raises(Busy), windows.enter(MAIN, ["node:A"], wait=0.05):
        pass


def test_two_handles_of_one_graph_share_their_locks(windows: CommitWindows, path: str) -> None:
    again = windows_at(path)
    with windows.enter(MAIN, ["node:A"]), pytest.raises(Busy), again.enter(MAIN, ["node:A"], wait=0.05):
        pass


def test_branches_run_in_parallel(windows: CommitWindows) -> None:
    with windows.enter(MAIN, ["node:A"]), windows.enter(OTHER, ["node:A"], wait=0.0) as inner:
        inner.check()


def test_schema_key_is_exclusive(windows: CommitWindows) -> None:
    with (
        windows.enter(MAIN, ["node:A"], schema=True),
        pytest.raises(Busy),
        windows.enter(MAIN, [], schema=True, wait=0.05),
    ):
        pass


def test_windows_over_tables_in_any_order_do_not_deadlock(windows: CommitWindows, path: str) -> None:
    rounds = 5 if is_on_s3(path) else 30
    keys = ["node:A", "node:B", "node:C"]
    inside = []

    def work(order: list[str]) -> None:
        for _ in range(rounds):
            with windows.enter(MAIN, order):
                inside.append(1)
                assert len(inside) == 1
                inside.pop()

    threads = [threading.Thread(target=work, args=(order,)) for order in (keys, keys[::-1], keys[1:], keys[:2])]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(90)
        assert not thread.is_alive()


def test_windows_are_entered_in_the_order_in_which_they_were_asked_for(windows: CommitWindows) -> None:
    """Who wants the table that is just being committed waits no longer than those who want others."""
    entered: list[str] = []

    def work(table_key: str) -> None:
        with windows.enter(MAIN, [table_key], wait=30.0):
            entered.append(table_key)

    threads = []
    with windows.enter(MAIN, ["node:A"]):
        for number, table_key in enumerate(("node:A", "node:B", "node:C", "node:A"), start=1):
            threads.append(threading.Thread(target=work, args=(table_key,)))
            threads[-1].start()
            while windows.waiting(MAIN) < number:
                time.sleep(0.001)
    with windows.enter(MAIN, ["node:D"], wait=30.0):
        entered.append("node:D")
    for thread in threads:
        thread.join(30)
    assert entered == ["node:A", "node:B", "node:C", "node:A", "node:D"]


def test_a_failure_inside_gives_everything_back(windows: CommitWindows) -> None:
    with pytest.raises(ZeroDivisionError), windows.enter(MAIN, ["node:A"]):
        _ = 1 / 0
    with windows.enter(MAIN, ["node:A"], wait=0.0):
        pass


def test_a_lost_lease_is_found_out(windows: CommitWindows) -> None:
    with windows.enter(MAIN, ["node:A"]) as window:
        window.check()
        window.lease.release()
        with pytest.raises(LeaseLost):
            window.check()


def hold_window(path: str) -> None:
    with windows_at(path).enter(MAIN, ["node:A"]):
        pass


def test_a_live_process_keeps_its_window_and_a_dead_one_frees_it(
    windows: CommitWindows, path: str, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    child = start_child(hold_window, path, failpoints_on={"window.entered": f"pause:{gate}"})
    wait_for(Path(f"{gate}.reached"))
    with pytest.raises(Busy, match="branch `main`"), windows.enter(MAIN, ["node:B"], wait=0.1):
        pass
    with windows.enter(OTHER, ["node:A"], wait=30.0):
        pass
    child.kill()
    join(child)
    assert child.pid is not None
    let_leases_run_out(path, child.pid)
    with windows.enter(MAIN, ["node:A"], wait=30.0):
        pass


def test_lease_goes_by_incarnation() -> None:
    assert lease_name(MAIN) != lease_name(OTHER)
    assert lease_name(MAIN) == lease_name(BranchRef("renamed", "01M", None))
