"""The same on an object store, where a dead writer's leases have to run out before anybody may touch its work."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from omnigraph.config import override
from omnigraph.ledger.store import open_store
from tests.faults.harness import run_killed
from tests.faults.invariants import check_invariants
from tests.faults.scenarios import SCENARIOS, Scenario, make_graph, next_write, reopen, work

pytestmark = [pytest.mark.s3, pytest.mark.slow]

MAIN, FIRST, LATER = SCENARIOS


@pytest.fixture(autouse=True)
def short_leases(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Leases of a second, here and in the children."""
    monkeypatch.setenv("OMNIGRAPH_LEASE_SECONDS", "1")
    monkeypatch.setenv("OMNIGRAPH_LEASE_RENEWAL_SECONDS", "300ms")
    with override(lease_seconds=1.0, lease_renewal_seconds=0.3):
        yield


@pytest.mark.parametrize(
    ("scenario", "failpoint", "outcome"),
    [
        (MAIN, "write.sidecar_put", "before"),
        (MAIN, "write.table_committed", "before"),
        (MAIN, "write.tables_committed", "after"),
        (FIRST, "storage.fork.after", "before"),
        (FIRST, "write.tables_committed", "after"),
        (LATER, "write.table_committed", "before"),
        (LATER, "publish.after", "after"),
        (MAIN, "write.published", "after"),
    ],
    ids=lambda value: getattr(value, "name", value),
)
def test_a_killed_writer(scenario: Scenario, failpoint: str, outcome: str, s3_uri: Callable[[], str]) -> None:
    uri, before, after = make_graph(s3_uri(), scenario)
    run_killed(work, uri, scenario.branch, at=failpoint)
    assert check_invariants(uri, before, after, next_write=next_write(scenario.branch)) == outcome


def test_a_killed_recovery(s3_uri: Callable[[], str]) -> None:
    uri, before, after = make_graph(s3_uri(), MAIN)
    run_killed(work, uri, MAIN.branch, at="write.table_committed")
    run_killed(reopen, uri, at="recovery.restored")
    assert check_invariants(uri, before, after, next_write=next_write(MAIN.branch)) == "before"
    assert len(open_store(uri, read_only=True).audit.list()) == 1
