"""The same on an object store, where a dead writer's leases have to run out before anybody may touch its work."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from omnigraph.ledger.store import open_store
from tests.faults.harness import run_killed
from tests.faults.invariants import GraphContent, check_invariants
from tests.faults.scenarios import SCENARIOS, Scenario, make_graph, next_write, reopen, work

pytestmark = [pytest.mark.s3, pytest.mark.slow]

MAIN, FIRST, LATER = SCENARIOS

CASES = [
    (MAIN, "write.sidecar_put", "before"),
    (MAIN, "write.table_committed", "before"),
    (MAIN, "write.tables_committed", "after"),
    (FIRST, "storage.fork.after", "before"),
    (FIRST, "write.tables_committed", "after"),
    (LATER, "write.table_committed", "before"),
    (LATER, "publish.after", "after"),
    (MAIN, "write.published", "after"),
]


@contextmanager
def short_leases() -> Iterator[None]:
    """Leases of a second in the children, which die. Those of this process last: it may be slow, and it lives."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("OMNIGRAPH_LEASE_SECONDS", "1")
        environment.setenv("OMNIGRAPH_LEASE_RENEWAL_SECONDS", "300ms")
        yield


@pytest.fixture(scope="module")
def killed(s3_uri: Callable[[], str]) -> dict[tuple[str, str], tuple[str, GraphContent, GraphContent]]:
    """All writers die one after the other, so that their leases run out together."""
    left = {}
    for scenario, failpoint, _ in CASES:
        left[scenario.name, failpoint] = made = make_graph(s3_uri(), scenario)
        with short_leases():
            run_killed(work, made[0], scenario.branch, at=failpoint)
    return left


@pytest.mark.parametrize(("scenario", "failpoint", "outcome"), CASES, ids=lambda value: getattr(value, "name", value))
def test_a_killed_writer(
    scenario: Scenario,
    failpoint: str,
    outcome: str,
    killed: dict[tuple[str, str], tuple[str, GraphContent, GraphContent]],
) -> None:
    uri, before, after = killed[scenario.name, failpoint]
    assert check_invariants(uri, before, after, next_write=next_write(scenario.branch)) == outcome


def test_a_killed_recovery(s3_uri: Callable[[], str]) -> None:
    uri, before, after = make_graph(s3_uri(), MAIN)
    with short_leases():
        run_killed(work, uri, MAIN.branch, at="write.table_committed")
        run_killed(reopen, uri, at="recovery.restored")
    assert check_invariants(uri, before, after, next_write=next_write(MAIN.branch)) == "before"
    assert len(open_store(uri, read_only=True).audit.list()) == 1
