"""Maintenance works on a recovered graph only."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from omnigraph.config import settings
from omnigraph.errors import BadRequest, Busy, RecoveryRequired
from omnigraph.ledger.recovery.recover import heal

if TYPE_CHECKING:
    from omnigraph.ledger.store import GraphStore


_PAUSE_SECONDS = 0.02
"""Between two looks at a write that is about to end."""


def refuse_pending_recovery(store: GraphStore, operation: str) -> None:
    """What heals by itself is healed, a writer at work is waited for, and anything else is refused.

    A writer that is alive is waited for without its window: many others may be in line for that. `Busy` when it takes
    long; `RecoveryRequired` for what a person or the next open has to resolve.
    """
    store.refuse_if_read_only(operation)
    deadline = time.monotonic() + settings().lease_wait_seconds
    report = heal(store)
    live = [one for one in report.live if not _is_over(store, one, deadline)]
    if any(not _is_at_work(store, one) for one in live):
        # Its writer has died, and others keep its branch busy.
        report = heal(store, wait=settings().lease_wait_seconds)
        live = list(report.live)
    waiting = (*report.deferred, *report.unreadable)
    if waiting:
        raise RecoveryRequired(
            f"{operation}: {len(waiting)} unfinished writes ({', '.join(waiting[:3])}) have to be recovered first. "
            "Reopen the graph for writing; what recovery refuses is shown and resolved by `omnigraph repair`.",
            waiting[0],
        )
    if live:
        raise Busy(
            f"{operation}: a writer is still at work ({', '.join(live[:3])}) after "
            f"{settings().lease_wait_seconds:g} s. Try again when it is done"
        )


def _is_over(store: GraphStore, operation_id: str, deadline: float) -> bool:
    """Whether a write ends before the deadline; not waited for when its writer has died."""
    while store.sidecars.get(operation_id) is not None:
        if time.monotonic() >= deadline or not _is_at_work(store, operation_id):
            return False
        time.sleep(_PAUSE_SECONDS)
    return True


def refuse_old_layout(store: GraphStore, operation: str) -> None:
    """A preview of what is done to a graph of today's layout says nothing about one that is not migrated yet."""
    if store.is_old:
        raise BadRequest(
            f"{operation}: this graph has the layout of an older release, which the first open for writing brings up "
            "to date, unfinished writes included; a preview changes nothing, so there is none before that"
        )


def refuse_visible_trouble(store: GraphStore, operation: str) -> None:
    """The same for a preview, which may only look: whatever a writer that died left is refused, and an old layout."""
    refuse_old_layout(store, operation)
    dead = [one for one in store.sidecars.list() if not _is_at_work(store, one)]
    if dead:
        raise RecoveryRequired(
            f"{operation}: {len(dead)} unfinished writes ({', '.join(dead[:3])}) have to be recovered first, and a "
            "preview changes nothing. Open the graph for writing; what recovery refuses is shown and resolved by "
            "`omnigraph repair`.",
            dead[0],
        )


def _is_at_work(store: GraphStore, operation_id: str) -> bool:
    stored = store.sidecars.get(operation_id)
    if stored is None:
        return True
    lease = stored.sidecar.owner.lease
    return lease is not None and store.leases.is_live(lease) is not None
