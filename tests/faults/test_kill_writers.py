"""A writer is killed at every failpoint it meets, on main and on branches; the graph heals itself when it is
reopened."""

from __future__ import annotations

from pathlib import Path

import pytest

from omnigraph.ledger.store import open_store
from tests.faults.harness import failpoints_met, run_killed
from tests.faults.invariants import check_invariants, observe
from tests.faults.scenarios import SCENARIOS, Scenario, make_graph, next_write, work

# How often a write of two tables meets each failpoint, and at which hits the write is still undone by recovery.
MET: dict[str, tuple[int, int]] = {
    "sidecar.list": (2, 2),
    "write.leased": (1, 1),
    "storage.fork.before": (2, 2),
    "storage.fork.after": (2, 2),
    "write.prepared": (1, 1),
    "window.before_lease": (1, 1),
    "window.entered": (1, 1),
    "write.premises_hold": (1, 1),
    "sidecar.put": (1, 1),
    "write.sidecar_put": (1, 1),
    # Two tables, the manifest, the commit log: with both tables committed the write is finished by recovery.
    "storage.commit.before": (4, 2),
    "storage.commit.after": (4, 1),
    "write.table_committed": (2, 1),
    "write.tables_committed": (1, 0),
    "publish.before": (1, 0),
    "publish.after": (1, 0),
    "log.append.before": (1, 0),
    "log.append.after": (1, 0),
    "write.published": (1, 0),
    "sidecar.delete": (1, 0),
    "write.sidecar_deleted": (1, 0),
    "window.leaving": (1, 0),
}
ONLY_ON_FIRST_WRITES = {"storage.fork.before", "storage.fork.after"}
CASES = [
    pytest.param(scenario, name, id=f"{scenario.name.replace(' ', '-')}-{name}")
    for scenario in SCENARIOS
    for name in MET
    if name not in ONLY_ON_FIRST_WRITES or scenario.name.startswith("first")
]


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_no_failpoint_on_the_way_of_a_write_is_left_out(scenario: Scenario, tmp_path: Path) -> None:
    uri, _, _ = make_graph(tmp_path, scenario)
    expected = {
        name: hits
        for name, (hits, _) in MET.items()
        if name not in ONLY_ON_FIRST_WRITES or scenario.name.startswith("first")
    }
    assert failpoints_met(work, uri, scenario.branch) == expected


@pytest.mark.parametrize(("scenario", "failpoint"), CASES)
def test_a_killed_writer_leaves_the_state_before_or_after(scenario: Scenario, failpoint: str, tmp_path: Path) -> None:
    hits, undone = MET[failpoint]
    for hit in range(1, hits + 1):
        uri, before, after = make_graph(tmp_path / str(hit), scenario)
        run_killed(work, uri, scenario.branch, at=failpoint, hit=hit)
        found = check_invariants(uri, before, after, next_write=next_write(scenario.branch))
        assert found == ("before" if hit <= undone else "after"), f"{failpoint} at hit {hit}"


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_reading_meanwhile_shows_only_published_states_and_writes_nothing(scenario: Scenario, tmp_path: Path) -> None:
    uri, before, _ = make_graph(tmp_path, scenario)
    run_killed(work, uri, scenario.branch, at="write.tables_committed")
    reader = open_store(uri, read_only=True)
    files = [(entry.path, entry.size) for entry in reader.objects.list("")]
    assert observe(reader) == before
    assert [(entry.path, entry.size) for entry in reader.objects.list("")] == files
    assert len(reader.sidecars.list()) == 1
