"""Resolving a refused sidecar because a person said how: for `repair`, never by itself.

Recovery refuses where somebody's commit lies above a published version. Whoever has looked at it may publish the tables
as they stand, or put them back to their pins, which takes that commit out of sight (its version stays until `cleanup`).
"""

from __future__ import annotations

from dataclasses import replace

from ulid import ULID

from omnigraph.errors import BadRequest, NotFound
from omnigraph.ledger.manifest.publish import CommitDraft, Publication, publish
from omnigraph.ledger.parts import GraphParts
from omnigraph.ledger.recovery.audit import RecoveryKind
from omnigraph.ledger.recovery.classify import TableState
from omnigraph.ledger.recovery.decide import Action
from omnigraph.ledger.recovery.evidence import line_of
from omnigraph.ledger.recovery.resolve import look, now, retire
from omnigraph.ledger.recovery.sidecars import RecoveredTable, Resolution, SidecarOwner
from omnigraph.ledger.values import BranchRef, GraphCommit, TablePin, WriterKind


def force_sidecar(
    store: GraphParts, operation_id: str, *, restore: bool, actor: str | None = None
) -> GraphCommit | None:
    """Resolve a sidecar that recovery refused: publish its tables as they stand, or with `restore` put them back.

    The commit, None when no table had drifted. One audit row either way. A sidecar that recovery can handle is left to
    recovery.
    """
    store.refuse_if_read_only("repair")
    found = store.sidecars.get(operation_id)
    if found is None:
        raise NotFound(f"repair: there is no unfinished write {operation_id}", operation_id=operation_id)
    branch = next((ref for ref in store.refs.list() if ref.incarnation == found.sidecar.incarnation), None)
    if branch is None:
        raise BadRequest(f"repair: the branch of {operation_id} is gone; reopen the graph for writing to discard it")
    with store.windows.enter(branch, found.sidecar.table_keys) as window:
        stored = store.sidecars.take_over(found, SidecarOwner.here(window.lease.name))
        decision, current = look(store, branch, stored.sidecar)
        if decision.action is not Action.REFUSE:
            raise BadRequest(
                f"repair: recovery can resolve {operation_id} by itself; reopen the graph for writing",
                operation_id=operation_id,
            )
        drifted = [state for state in decision.states if state.drifted]
        pins = [_resolved_pin(store, operation_id, state, restore=restore) for state in drifted]
        kind = RecoveryKind.ROLLED_BACK if restore else RecoveryKind.ROLLED_FORWARD
        tables = tuple(
            RecoveredTable(state.table.table_key, state.head, _stands_at(state, restore=restore))
            for state in decision.states
        )
        window.check()
        store.sidecars.check_ours(stored)
        commit = _publish(store, branch, pins, current.head.graph_commit_id, actor, changes_data=not restore)
        stands = commit.graph_commit_id if commit else current.head.graph_commit_id
        retire(store, stored.sidecar, Resolution(kind, stands, tables))
        return commit


def _stands_at(state: TableState, *, restore: bool) -> int | None:
    pinned = state.pin.version if state.pin else None
    return state.head if state.drifted and not restore else pinned


def _resolved_pin(store: GraphParts, operation_id: str, state: TableState, *, restore: bool) -> TablePin:
    assert state.pin is not None
    assert state.head is not None
    pinned = line_of(state.pin)
    if restore:
        return replace(state.pin, version=store.tables.restore(pinned, state.head, operation_id).version)
    return replace(state.pin, version=state.head, row_count=store.tables.count(pinned.at(state.head)))


def _publish(
    store: GraphParts,
    branch: BranchRef,
    pins: list[TablePin],
    parent_commit_id: str,
    actor: str | None,
    *,
    changes_data: bool,
) -> GraphCommit | None:
    if not pins:
        return None
    draft = CommitDraft(
        graph_commit_id=str(ULID()),
        parent_commit_id=parent_commit_id,
        merged_parent_commit_id=None,
        actor_id=actor,
        created_at=now(),
        kind=WriterKind.REPAIR,
        changes_data=changes_data,
    )
    return publish(store, branch, Publication(commit=draft, updates=tuple(pins)), told_by_sidecar=True)
