"""Drift before an optimize: what changes no content is published along, anything else is left for `repair`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnigraph.ledger.commit.drift import Drift, publish_drift
from omnigraph.ledger.values import BranchRef, GraphCommit
from omnigraph.maintain.survey.unexplained_drift import Verdict, drift_of_branch

if TYPE_CHECKING:
    from omnigraph.ledger.store import GraphStore

DRIFT_NEEDS_REPAIR = "DriftNeedsRepair"


def settle_drift(
    store: GraphStore, branch: BranchRef, tables: frozenset[str] | None
) -> tuple[GraphCommit | None, frozenset[str], frozenset[str]]:
    """Publish verified drift of a branch: the commit, the tables it published, and those that need `repair`.

    A writer between its table commits and its publish looks like drift, so what was seen is looked at again with the
    window held; an unfinished write that has appeared meanwhile leaves everything to recovery.
    """
    nothing: frozenset[str] = frozenset()
    if not drift_of_branch(store, branch, tables):
        return None, nothing, nothing
    current = store.manifest.read(branch)
    with store.windows.enter(branch, current.tables) as window:
        current = store.manifest.read(branch)
        found = drift_of_branch(store, branch, tables)
        verified = [drift for drift in found if drift.verdict is Verdict.VERIFIED]
        suspicious = frozenset(drift.table_key for drift in found if drift not in verified)
        if not verified or store.sidecars.list():
            return None, nothing, suspicious
        publish_drift(store, window, branch, [Drift(drift.pin, drift.head) for drift in verified], current)
        published = frozenset(drift.table_key for drift in verified)
        return store.manifest.read(branch).head, published, suspicious
