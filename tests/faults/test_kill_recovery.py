"""Recovery itself is killed at every failpoint it meets, and the next recovery carries on: one audit row, one
commit."""

from __future__ import annotations

from pathlib import Path

import pytest

from omnigraph.ledger.branches.branches import delete_branch
from omnigraph.ledger.recovery.audit import RecoveryKind
from omnigraph.ledger.store import GraphStore, open_store
from omnigraph.ledger.values import RECOVERY_ACTOR
from tests.faults.harness import failpoints_met, run_killed
from tests.faults.invariants import check_invariants, observe
from tests.faults.scenarios import SCENARIOS, Scenario, make_graph, next_write, reopen, work

MAIN, FIRST, LATER = SCENARIOS
ENTRY = {"sidecar.list": 1, "window.before_lease": 1, "window.entered": 1, "window.leaving": 1}
TAKEN = {"sidecar.take_over": 1, "recovery.taken_over": 1}
RETIRED = {
    "audit.append.before": 1,
    "storage.create.before": 1,
    "storage.create.after": 1,
    "audit.append.after": 1,
    "sidecar.delete": 1,
    "recovery.retired": 1,
}
PUBLISHED = {
    "sidecar.plan": 1,
    "recovery.planned": 1,
    "recovery.before_publish": 1,
    "publish.before": 1,
    "storage.commit.before": 2,
    "storage.commit.after": 2,
    "publish.after": 1,
    "log.append.before": 1,
    "log.append.after": 1,
    "recovery.published": 1,
}
RESTORED = {"storage.restore.before": 1, "storage.restore.after": 1, "recovery.restored": 1}

# Where the writer died; what recovery makes of it; every failpoint that recovery meets, and how often.
CRASHES: dict[str, tuple[RecoveryKind, str, dict[str, int]]] = {
    "write.sidecar_put": (RecoveryKind.ROLLED_BACK, "before", {**ENTRY, **TAKEN, **RETIRED}),
    "write.table_committed": (
        RecoveryKind.ROLLED_BACK,
        "before",
        {**ENTRY, **TAKEN, **PUBLISHED, **RESTORED, **RETIRED},
    ),
    "write.tables_committed": (RecoveryKind.ROLLED_FORWARD, "after", {**ENTRY, **TAKEN, **PUBLISHED, **RETIRED}),
    "write.published": (RecoveryKind.COMPLETED, "after", {**ENTRY, **TAKEN, **RETIRED}),
}
CASES = [
    pytest.param(crash, failpoint, hit, id=f"{crash}-then-{failpoint}-{hit}")
    for crash, (_, _, met) in CRASHES.items()
    for failpoint, hits in met.items()
    for hit in range(1, hits + 1)
]


@pytest.mark.parametrize("crash", CRASHES)
def test_no_failpoint_on_the_way_of_recovery_is_left_out(crash: str, tmp_path: Path) -> None:
    uri, _, _ = make_graph(tmp_path, MAIN)
    run_killed(work, uri, MAIN.branch, at=crash)
    assert failpoints_met(reopen, uri) == CRASHES[crash][2]


@pytest.mark.parametrize(("crash", "failpoint", "hit"), CASES)
def test_a_killed_recovery_is_carried_on(crash: str, failpoint: str, hit: int, tmp_path: Path) -> None:
    kind, outcome, _ = CRASHES[crash]
    uri, before, after = make_graph(tmp_path, MAIN)
    run_killed(work, uri, MAIN.branch, at=crash)
    run_killed(reopen, uri, at=failpoint, hit=hit)
    assert check_invariants(uri, before, after, next_write=next_write(MAIN.branch)) == outcome
    rows = open_store(uri, read_only=True).audit.list()
    assert [row.kind for row in rows] == [kind]
    assert rows[0].recovery_for_actor == "act-ada"


@pytest.mark.parametrize("failpoint", ["recovery.planned", "recovery.restored", "recovery.published", "sidecar.delete"])
def test_a_recovery_that_is_killed_on_a_branch_again_and_again_still_ends(failpoint: str, tmp_path: Path) -> None:
    uri, before, after = make_graph(tmp_path, LATER)
    run_killed(work, uri, LATER.branch, at="write.table_committed")
    for again in ("sidecar.take_over", "recovery.taken_over", failpoint):
        run_killed(reopen, uri, at=again)
    assert check_invariants(uri, before, after, next_write=next_write(LATER.branch)) == "before"


def _crashed_and_deleted(tmp_path: Path, scenario: Scenario) -> str:
    uri, _, _ = make_graph(tmp_path, scenario)
    run_killed(work, uri, scenario.branch, at="write.tables_committed")
    # A handle that was open all along deletes the branch: nobody has recovered it.
    survivor = GraphStore(open_store(uri, read_only=True).root, read_only=False)
    delete_branch(survivor, scenario.branch)
    return uri


@pytest.mark.parametrize(
    "failpoint",
    ["recovery.taken_over", "sidecar.plan", "publish.before", "publish.after", "recovery.orphan_published",
     "audit.append.before", "audit.append.after", "recovery.retired"],
)  # fmt: skip
@pytest.mark.parametrize("scenario", [FIRST, LATER], ids=lambda scenario: scenario.name)
def test_a_killed_discard_of_an_orphaned_sidecar_is_carried_on(
    scenario: Scenario, failpoint: str, tmp_path: Path
) -> None:
    uri = _crashed_and_deleted(tmp_path, scenario)
    before = observe(open_store(uri, read_only=True))
    run_killed(reopen, uri, at=failpoint)
    assert check_invariants(uri, before, None, next_write=next_write("main")) == "before"
    store = open_store(uri)
    assert [row.kind for row in store.audit.list()] == [RecoveryKind.ORPHANED_BRANCH_DISCARDED]
    noted = store.commits.get(store.audit.list()[0].graph_commit_id)
    assert noted is not None
    assert (noted.branch, noted.actor_id, noted.changes_data) == ("main", RECOVERY_ACTOR, False)
