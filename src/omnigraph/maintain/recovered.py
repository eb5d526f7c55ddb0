"""Maintenance works on a recovered graph only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnigraph.config import settings
from omnigraph.errors import RecoveryRequired
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
