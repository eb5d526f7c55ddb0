"""Recovery: finishing or undoing the writes of those who died.

`recover_all` runs when a graph is opened for writing and resolves every sidecar. `heal` runs at each write entry and in
`refresh`: one listing, empty in the normal case; it resolves what needs no restore and leaves the rest for the next
open. A live writer is never touched: both enter the window of the sidecar's branch first, and it is held by the living.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace

from ulid import ULID

from omnigraph.config import settings
from omnigraph.errors import Busy, LeaseLost, RecoveryRequired
from omnigraph.failpoints import declare, failpoint
from omnigraph.ledger.branches.schema_lock import drop_dead_schema_lock
from omnigraph.ledger.commit.window import lease_name
from omnigraph.ledger.history.acknowledged import refuse_lost_head
from omnigraph.ledger.history.complete_log import complete, complete_marked, known_history
from omnigraph.ledger.manifest.publish import Publication, publish
from omnigraph.ledger.parts import GraphParts
from omnigraph.ledger.recovery.audit import RecoveryKind
from omnigraph.ledger.recovery.evidence import head_of_line
from omnigraph.ledger.recovery.resolve import draft_of_recovery, look, resolve, retire, why_refused
from omnigraph.ledger.recovery.sidecars import (
    SIDECAR_PREFIX,
    Deferred,
    RecoveredTable,
    Resolution,
    Sidecar,
    SidecarOwner,
    StoredSidecar,
    UnreadableSidecar,
    operation_ids,
)
from omnigraph.ledger.values import MAIN, BranchRef
from omnigraph.storage.objects.objects import DEAD_TEMPORARY_SECONDS

_logger = logging.getLogger("omnigraph.ledger")

declare("recovery.taken_over", "A recoverer has taken a sidecar over and done nothing else yet")
declare("recovery.orphan_published", "An orphaned sidecar is noted on main; no audit row, the sidecar is still there")

_LIVE = "live"
_DEFERRED = "deferred"
_RESOLVED = "resolved"
_UNREADABLE = "unreadable"


@dataclass(frozen=True, slots=True)
class RecoveryReport:
    """The operation ids of the sidecars that were found, by what became of them.

    `live` belong to a writer at work, or to a branch that one holds; `deferred` wait for the next open or for a person;
    `unreadable` are damaged or of a newer program, and wait for a person too.
    """

    resolved: tuple[str, ...] = ()
    deferred: tuple[str, ...] = ()
    live: tuple[str, ...] = ()
    unreadable: tuple[str, ...] = ()

    @property
    def waiting(self) -> tuple[str, ...]:
        """Those that are not over."""
        return (*self.deferred, *self.unreadable, *self.live)


def heal(store: GraphParts, *, wait: float = 0.0) -> RecoveryReport:
    """Resolve what can be resolved without a restore. Costs one listing when there is nothing to do.

    A sidecar whose branch is being written to is passed over, unless its window is free within `wait` seconds.
    """
    return _sweep(store, lambda operation_id: recover_one(store, operation_id, restore=False, wait=wait))


def recover_all(store: GraphParts) -> RecoveryReport:
    """Resolve every sidecar of a writer that is not alive. For opening a graph for writing."""
    # The lease of a writer that died on another machine has to run out first; a lock on local disk is free at once.
    wait = settings().lease_wait_seconds
    if not store.root.is_local:
        wait += settings().lease_seconds
    report = _sweep(store, lambda operation_id: recover_one(store, operation_id, restore=True, wait=wait))
    if report.unreadable:
        # One of them may have published on any branch and not logged it.
        complete(store)
    drop_dead_schema_lock(store)
    store.leases.sweep()
    store.objects.remove_temporaries(DEAD_TEMPORARY_SECONDS, SIDECAR_PREFIX)
    return report


def _sweep(store: GraphParts, recover: Callable[[str], str]) -> RecoveryReport:
    names = store.sidecars.names()
    complete_marked(store, store.publish_marks.read(names))
    pending = operation_ids(names)
    store.sidecars.forget_all_but(pending)
    if not pending:
        return RecoveryReport()
    ends: dict[str, list[str]] = {_RESOLVED: [], _DEFERRED: [], _LIVE: [], _UNREADABLE: []}
    for operation_id in pending:
        try:
            ends[recover(operation_id)].append(operation_id)
        except (Busy, LeaseLost):
            ends[_LIVE].append(operation_id)
        except UnreadableSidecar as error:
            # What it moved shows as drift that carries its id, so those tables are blocked, and nothing else is.
            ends[_UNREADABLE].append(operation_id)
            _logger.error("%s", error.message)
    return RecoveryReport(*(tuple(ends[end]) for end in (_RESOLVED, _DEFERRED, _LIVE, _UNREADABLE)))


def recover_one(store: GraphParts, operation_id: str, *, restore: bool, wait: float) -> str:
    """Resolve one sidecar, if it is still there and its window is free within `wait` seconds; what became of it."""
    stored = store.sidecars.get(operation_id)
    if stored is None:
        return _RESOLVED
    if not restore and store.sidecars.is_deferred(stored):
        return _DEFERRED
    # Locks and lease go by the incarnation alone, so the window of a live writer turns us away before anything is read.
    sidecar = stored.sidecar
    unnamed = BranchRef(sidecar.branch, sidecar.incarnation, None)
    if wait <= 0 and store.leases.is_live(lease_name(unnamed)) is not None:
        # Not even tried: it would be got when its holder is done, and take the turn of a writer that waits for it.
        return _LIVE
    with store.windows.enter(unnamed, sidecar.table_keys, wait=wait) as entered:
        stored = store.sidecars.get(operation_id)
        if stored is None:
            return _RESOLVED
        branch = _branch_of(store, stored.sidecar)
        if branch is None:
            return _discard_orphan(store, stored)
        window = replace(entered, branch=branch)
        try:
            refuse_lost_head(store, branch, store.manifest.read(branch))
        except RecoveryRequired as lost:
            return _refuse(store, stored, lost.message)
        decision, _ = look(store, branch, stored.sidecar)
        if decision.blocks:
            return _refuse(store, stored, why_refused(decision))
        if decision.restores and not restore:
            store.sidecars.defer(Deferred(stored.sidecar, stored.token, None))
            return _DEFERRED
        stored = store.sidecars.take_over(stored, SidecarOwner.here(window.lease.name))
        failpoint("recovery.taken_over")
        outcome = resolve(store, window, stored, restore=restore)
        if outcome.refused is not None:
            return _refuse(store, stored, outcome.refused)
        _logger.warning(
            "recovered the unfinished %s %s on branch `%s`: %s",
            stored.sidecar.kind.value,
            operation_id,
            stored.sidecar.branch,
            outcome.action.value,
        )
        return _RESOLVED


def _branch_of(store: GraphParts, sidecar: Sidecar) -> BranchRef | None:
    """The branch of a sidecar. That it is gone is concluded from the list of all refs, never from a failed look."""
    named = store.refs.get(sidecar.branch)
    if named is not None and named.incarnation == sidecar.incarnation:
        return named
    return next((ref for ref in store.refs.list() if ref.incarnation == sidecar.incarnation), None)


def _refuse(store: GraphParts, stored: StoredSidecar, reason: str) -> str:
    """Leave a sidecar for a person. It blocks writes to its own tables, and nothing else."""
    sidecar = stored.sidecar
    store.sidecars.defer(Deferred(sidecar, stored.token, reason))
    _logger.error("recovery of %s %s refused: %s", sidecar.kind.value, sidecar.operation_id, reason)
    return _DEFERRED


def _discard_orphan(store: GraphParts, stored: StoredSidecar) -> str:
    """A sidecar of a branch that is gone: nothing of it can matter. Noted on main by a commit that changes nothing."""
    main = store.branch(MAIN)
    with store.windows.enter(main, ()) as window:
        stored = store.sidecars.take_over(stored, SidecarOwner.here(window.lease.name))
        failpoint("recovery.taken_over")
        sidecar = stored.sidecar
        plan = sidecar.resolution
        if plan is None or plan.kind != RecoveryKind.ORPHANED_BRANCH_DISCARDED:
            tables = tuple(RecoveredTable(t.table_key, head_of_line(store, t), None) for t in sidecar.tables)
            plan = Resolution(RecoveryKind.ORPHANED_BRANCH_DISCARDED, str(ULID()), tables)
            stored = store.sidecars.plan(stored, plan)
        current = store.manifest.read(main)
        if known_history(store, current).get(plan.graph_commit_id) is None:
            draft = draft_of_recovery(plan.graph_commit_id, current)
            window.check()
            store.sidecars.check_ours(stored)
            publish(store, main, Publication(commit=draft), told_by_sidecar=True)
            failpoint("recovery.orphan_published")
        retire(store, stored.sidecar, plan)
    return _RESOLVED
