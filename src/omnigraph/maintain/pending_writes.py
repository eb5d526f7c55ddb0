"""Unfinished writes that recovery left for a person: shown, forced, put back, or set aside, for `repair`.

Of a sidecar that cannot be read nothing is known but the id of its operation, which every commit of its write carries.
So the tables that it moved are found as drift with that tag, and `repair` mends those like any other drift; then the
sidecar is set aside. Set aside means moved to `__set_aside/sidecars`, out of recovery's sight, with an audit row.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import orjson

from omnigraph.errors import OmniGraphError
from omnigraph.failpoints import declare, failpoint
from omnigraph.ledger.recovery.audit import RecoveryKind, RecoveryRecord
from omnigraph.ledger.recovery.decide import Action
from omnigraph.ledger.recovery.resolve import look, why_refused
from omnigraph.ledger.recovery.resolve_by_hand import force_sidecar
from omnigraph.ledger.recovery.sidecars import RecoveredTable, Sidecar, UnreadableSidecar, path_of
from omnigraph.ledger.values import MAIN, GraphCommit, WriterKind
from omnigraph.maintain.survey.unexplained_drift import FoundDrift

if TYPE_CHECKING:
    from omnigraph.ledger.store import GraphStore

declare("repair.set_aside", "The audit row of a sidecar that is set aside is written; the sidecar is still there")

REFUSED, REPORTED, RESOLVED, SET_ASIDE = "refused", "reported", "resolved", "set aside"
LEFT_TO_RECOVERY = "left to recovery"
UNREADABLE = "unreadable"


@dataclass(frozen=True, slots=True)
class PendingWrite:
    """One sidecar, with the class of each of its tables, and what became of it. Of one that cannot be read the tables
    are those that carry its tag, and kind and branch are as much as could be made out."""

    operation_id: str
    kind: str
    branch: str
    actor_id: str | None
    classes: tuple[tuple[str, str], ...]
    decision: str
    action: str
    reason: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data."""
        return {
            "operation_id": self.operation_id,
            "kind": self.kind,
            "branch": self.branch,
            "actor_id": self.actor_id,
            "tables": dict(self.classes),
            "decision": self.decision,
            "action": self.action,
            "reason": self.reason,
        }


@dataclass(frozen=True, slots=True)
class Readable:
    """The sidecars that could be read, and the damage of those that could not."""

    sidecars: tuple[Sidecar, ...]
    unreadable: dict[str, UnreadableSidecar]


def read_all(store: GraphStore) -> Readable:
    """Every sidecar, oldest first."""
    found: list[Sidecar] = []
    unreadable: dict[str, UnreadableSidecar] = {}
    for operation_id in store.sidecars.list():
        try:
            stored = store.sidecars.get(operation_id)
            found += [stored.sidecar] if stored is not None else []
        except UnreadableSidecar as damage:
            unreadable[operation_id] = damage
    return Readable(tuple(found), unreadable)


def resolve_readable(
    store: GraphStore,
    sidecar: Sidecar,
    *,
    force: bool,
    restore: bool,
    set_aside: bool,
    actor: str | None,
    commits: list[GraphCommit],
) -> PendingWrite:
    """Show a sidecar with the classes of its tables; resolve one that recovery refuses, if that was asked for."""
    operation_id = sidecar.operation_id
    branch = next((ref for ref in store.refs.list() if ref.incarnation == sidecar.incarnation), None)
    if branch is None:
        return PendingWrite(
            operation_id, sidecar.kind.value, sidecar.branch, sidecar.actor_id, (), "discard", LEFT_TO_RECOVERY
        )
    decision, _ = look(store, branch, sidecar)
    classes = tuple((state.table.table_key, state.table_class.value) for state in decision.states)
    reason = why_refused(decision) if decision.blocks else None
    action = REFUSED if decision.blocks else LEFT_TO_RECOVERY
    try:
        if decision.blocks and set_aside:
            tables = tuple(
                RecoveredTable(s.table.table_key, s.head, s.pin.version if s.pin else None) for s in decision.states
            )
            reason = _set_aside(store, operation_id, sidecar.kind, sidecar.branch, sidecar.actor_id, tables)
            action = SET_ASIDE
        elif decision.action is Action.REFUSE and force:
            commit = force_sidecar(store, operation_id, restore=restore, actor=actor)
            commits += [commit] if commit else []
            action = RESOLVED
    except OmniGraphError as error:
        reason = error.message
    return PendingWrite(
        operation_id,
        sidecar.kind.value,
        sidecar.branch,
        sidecar.actor_id,
        classes,
        decision.action.value,
        action,
        reason,
    )


def resolve_unreadable(
    store: GraphStore, damage: UnreadableSidecar, drifted: Sequence[FoundDrift], *, mended: bool, set_aside: bool
) -> PendingWrite:
    """Show a sidecar that cannot be read, with the tables that carry its tag; set it aside once they are mended."""
    assert damage.operation_id is not None
    own = [drift for drift in drifted if damage.operation_id in drift.operation_ids]
    kind, branch, actor = _made_out(store, damage.operation_id)
    branch = branch or (own[0].branch if own else "unknown")
    classes = tuple((drift.table_key, drift.verdict.value) for drift in own)
    action, reason = REFUSED, damage.message
    if mended or set_aside:
        tables = tuple(RecoveredTable(drift.table_key, drift.head, None if set_aside else drift.head) for drift in own)
        try:
            reason = _set_aside(store, damage.operation_id, kind, branch, actor, tables)
            action = SET_ASIDE if set_aside else RESOLVED
        except OmniGraphError as error:
            reason = error.message
    shown = kind.value if kind else UNREADABLE
    return PendingWrite(damage.operation_id, shown, branch, actor, classes, UNREADABLE, action, reason)


def _set_aside(
    store: GraphStore,
    operation_id: str,
    kind: WriterKind | None,
    branch: str,
    actor: str | None,
    tables: tuple[RecoveredTable, ...],
) -> str:
    """One audit row, and the sidecar moved away; where it is now."""
    named = store.refs.get(branch) or store.branch(MAIN)
    store.audit.record(
        RecoveryRecord(
            operation_id=operation_id,
            kind=RecoveryKind.SET_ASIDE,
            graph_commit_id=store.manifest.read(named).head.graph_commit_id,
            writer_kind=kind or WriterKind.REPAIR,
            recovery_for_actor=actor,
            branch=branch,
            tables=tables,
            created_at=time.time_ns() // 1000,
        )
    )
    failpoint("repair.set_aside")
    return f"the sidecar is kept at {store.sidecars.set_aside(operation_id)}"


def _made_out(store: GraphStore, operation_id: str) -> tuple[WriterKind | None, str | None, str | None]:
    """What can be read of a sidecar that is of a newer program: its writer's kind, its branch and its actor."""
    try:
        content = orjson.loads(store.objects.get(path_of(operation_id))[0])
        known = {one.value: one for one in WriterKind}
        texts = [content.get(name) for name in ("writer_kind", "branch", "actor_id")]
    except (ValueError, AttributeError, OmniGraphError):
        return None, None, None
    kind, branch, actor = (text if isinstance(text, str) else None for text in texts)
    return known.get(kind or ""), branch, actor
