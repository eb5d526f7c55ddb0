"""Keeping old states from being removed while something is made to refer to them: a branch, a tag.

`cleanup` holds the same lease while it removes versions. Heads need no such care: whoever works on one has a writer's
lease, and cleanup leaves everything alone that was a head since the oldest of those was taken.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from omnigraph.config import settings
from omnigraph.errors import HistoryGap
from omnigraph.ledger.parts import GraphParts
from omnigraph.ledger.values import Snapshot
from omnigraph.storage.lance_errors import TableNotFound

HISTORY_LEASE = "history"


@contextmanager
def history_held(store: GraphParts, owner: str) -> Iterator[None]:
    """Nothing old is removed while this is held; `Busy` when a cleanup goes on for longer than writers wait."""
    with store.leases.acquire(HISTORY_LEASE, owner, wait=settings().lease_wait_seconds):
        yield


def refuse_removed(store: GraphParts, snapshot: Snapshot, operation: str) -> None:
    """`HistoryGap` when a table of this state has been removed. Looks at the store: an open handle proves nothing."""
    for pin in snapshot.tables.values():
        try:
            versions = {info.version for info in store.tables.versions(pin.location, pin.lance_branch)}
        except TableNotFound:
            versions = set()
        if pin.version not in versions:
            raise HistoryGap(
                f"{operation}: the rows of {pin.table_key} at commit {snapshot.head.graph_commit_id} have been "
                "reclaimed, by cleanup or with their branch; choose a newer commit",
                graph_commit_id=snapshot.head.graph_commit_id,
            )
