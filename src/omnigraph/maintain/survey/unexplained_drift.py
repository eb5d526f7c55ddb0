"""Drift that no unfinished write explains: a line whose newest version is above the published one, and why.

Reservations of fragments, compactions and index builds are verified maintenance: no row is another one afterwards.
What a writer landed after its write was taken back is late. Anything else is suspicious, and what Lance cannot tell is
unverifiable.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Any

from omnigraph.ledger.branches.live_branches import for_live_branches
from omnigraph.ledger.commit.drift import published_is_missing
from omnigraph.ledger.recovery.evidence import commits_above, line_of
from omnigraph.ledger.recovery.late_commits import taken_back_before
from omnigraph.ledger.recovery.sidecars import UnreadableSidecar
from omnigraph.ledger.values import BranchRef, TablePin
from omnigraph.storage.constants import OPERATION_ID_PROPERTY as TAG

if TYPE_CHECKING:
    from omnigraph.ledger.store import GraphStore


CoveredLine = tuple[str, str, str | None]
"""The incarnation of a branch, a table key, and the line of that table."""


class Verdict(StrEnum):
    """What can be said about drift."""

    VERIFIED = "verified"
    LATE = "late"
    SUSPICIOUS = "suspicious"
    UNVERIFIABLE = "unverifiable"


@dataclass(frozen=True, slots=True)
class FoundDrift:
    """One drifted table of one branch, with the kinds of the transactions above its pin, oldest first, and the ids of
    the operations that they are tagged with."""

    branch: str
    incarnation: str
    table_key: str
    pin: TablePin
    head: int
    verdict: Verdict
    transactions: tuple[str, ...]
    operation_ids: frozenset[str] = frozenset()
    late_of: str | None = None
    """The operation that landed too late, for a verdict of `LATE`."""

    @property
    def pinned(self) -> int:
        """The published version."""
        return self.pin.version

    def is_covered(self, covered: Collection[CoveredLine]) -> bool:
        """Whether an unfinished write is over this line."""
        return (self.incarnation, self.table_key, self.pin.lance_branch) in covered

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data."""
        return {
            "branch": self.branch,
            "table_key": self.table_key,
            "lance_branch": self.pin.lance_branch,
            "published_version": self.pin.version,
            "newest_version": self.head,
            "verdict": self.verdict.value,
            "transactions": list(self.transactions),
        }


def drift_of_branches(store: GraphStore) -> list[FoundDrift]:
    """The drift of every branch. What looks like drift is looked at again with the branch's window held, since a writer
    between its table commits and its publish looks the same."""

    def certain(branch: BranchRef) -> list[FoundDrift]:
        if not drift_of_branch(store, branch):
            return []
        with store.windows.enter(branch, ()):
            return drift_of_branch(store, branch)

    return [drift for _, found in for_live_branches(store, certain) for drift in found]


def seen_drift_of_branches(store: GraphStore) -> list[FoundDrift]:
    """The drift of every branch, for those who only look and hold no window.

    A writer has a sidecar before a table moves, so what a sidecar covers is no drift. What is left is looked at again,
    since a writer may have come and gone meanwhile.
    """
    covered = covered_by_sidecars(store)
    first = _looked_at(store)
    if not first:
        return []
    covered |= covered_by_sidecars(store)
    again = {(drift.incarnation, drift.table_key, drift.pin, drift.head) for drift in _looked_at(store)}
    return [
        drift
        for drift in first
        if (drift.incarnation, drift.table_key, drift.pin, drift.head) in again and not drift.is_covered(covered)
    ]


def _looked_at(store: GraphStore) -> list[FoundDrift]:
    return [drift for _, found in for_live_branches(store, partial(drift_of_branch, store)) for drift in found]


def covered_by_sidecars(store: GraphStore) -> set[CoveredLine]:
    """The lines that a sidecar is over, as far as it can be read: those are not drift of nobody."""
    found: set[CoveredLine] = set()
    for operation_id in store.sidecars.list():
        try:
            stored = store.sidecars.get(operation_id)
        except UnreadableSidecar:
            continue
        if stored is not None:
            found |= {(stored.sidecar.incarnation, t.table_key, t.lance_branch) for t in stored.sidecar.tables}
    return found


def drift_of_branch(store: GraphStore, branch: BranchRef, tables: frozenset[str] | None = None) -> list[FoundDrift]:
    """The drift of the tables that a branch owns, as it is now."""
    pins = store.manifest.read(branch).tables.values()
    owned = [pin for pin in pins if pin.owner == branch.incarnation and (tables is None or pin.table_key in tables)]
    found = [_drift(store, branch, pin) for pin in owned]
    return [drift for drift in found if drift is not None]


def _drift(store: GraphStore, branch: BranchRef, pin: TablePin) -> FoundDrift | None:
    head = store.tables.head(pin.location, pin.lance_branch).version
    if head < pin.version:
        raise published_is_missing(branch, pin, head)
    if head == pin.version:
        return None
    line = line_of(pin)
    above = store.tables.transactions(line.location, line.branch, line.version, head)
    late = None
    changes = [entry.changes_content for entry in above]
    if any(changed is None for changed in changes):
        verdict = Verdict.UNVERIFIABLE
    elif not any(changes):
        verdict = Verdict.VERIFIED
    else:
        late = taken_back_before(store, commits_above(store, line, head))
        verdict = Verdict.SUSPICIOUS if late is None else Verdict.LATE
    kinds = tuple(entry.kind for entry in above)
    tags = frozenset(entry.properties[TAG] for entry in above if TAG in entry.properties)
    return FoundDrift(branch.name, branch.incarnation, pin.table_key, pin, head, verdict, kinds, tags, late)
