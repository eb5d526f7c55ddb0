"""Maintenance works on a recovered graph only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnigraph.config import settings
from omnigraph.errors import BadRequest, RecoveryRequired
from omnigraph.ledger.recovery.recover import heal

if TYPE_CHECKING:
    from omnigraph.ledger.store import GraphStore


def refuse_pending_recovery(store: GraphStore, operation: str) -> None:
    """What heals by itself is healed, a writer at work is waited for, and anything else is refused."""
    store.refuse_if_read_only(operation)
    waiting = heal(store, wait=settings().lease_wait_seconds).waiting
    if waiting:
        raise RecoveryRequired(
            f"{operation}: {len(waiting)} unfinished writes ({', '.join(waiting[:3])}) have to be recovered first. "
            "Reopen the graph for writing; what recovery refuses is shown and resolved by `omnigraph repair`. If a "
            "writer is at work, try again when it is done.",
            waiting[0],
        )


def refuse_visible_trouble(store: GraphStore, operation: str) -> None:
    """The same for a preview, which may only look: whatever a writer that died left is refused, and an old layout."""
    if store.is_old:
        raise BadRequest(
            f"{operation}: this graph has the layout of an older release, which the first write brings up to date; a "
            "preview changes nothing, so there is none before that"
        )
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
