"""Commits that came too late, of a writer that slept through its own recovery.

A writer makes sure that its sidecar is still its own before each table commit. If it is paused right there, on an
object store, for longer than its lease, somebody else finds that nothing of the write has landed, takes it back and
retires the sidecar; then the writer wakes up, lands that one commit, and stops at its next look. The commit carries the
id of an operation that the audit says was taken back, which proves whose it is and that nobody counts on it.
"""

from __future__ import annotations

from collections.abc import Sequence

from omnigraph.ledger.parts import GraphParts
from omnigraph.ledger.recovery.audit import RecoveryKind
from omnigraph.ledger.recovery.classify import LandedCommit


def taken_back_before(store: GraphParts, landed: Sequence[LandedCommit]) -> str | None:
    """The id of the last operation of these commits, if all that change data belong to operations that were taken back.

    None when one of them is anybody else's: that is for a person to judge.
    """
    changing = [commit.operation_id for commit in landed if not commit.preserves_content]
    if not changing or None in changing:
        return None
    undone = {record.operation_id for record in store.audit.list() if record.kind is RecoveryKind.ROLLED_BACK}
    return changing[-1] if set(changing) <= undone else None
