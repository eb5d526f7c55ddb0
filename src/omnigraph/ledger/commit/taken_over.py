"""What became of a write whose process was paused past its lease: its caller is told what is true, not what is feared.

The window is no longer ours, so somebody else may have finished or undone the write, or be about to. Entering the
window anew waits for that; whatever is still unresolved then is resolved here, like the write of somebody who died.
Afterwards history and audit say how it ended.
"""

from __future__ import annotations

import logging

from omnigraph.config import settings
from omnigraph.errors import BranchNotFound, LeaseLost, NotFound, OmniGraphError, WriteInDoubt
from omnigraph.ledger.history.complete_log import known_history
from omnigraph.ledger.parts import GraphParts
from omnigraph.ledger.recovery.audit import RecoveryKind
from omnigraph.ledger.recovery.recover import recover_one
from omnigraph.ledger.recovery.sidecars import Sidecar
from omnigraph.ledger.values import GraphCommit

_logger = logging.getLogger("omnigraph.ledger")


class TakenOver(Exception):
    """Raised out of the window by a writer that found its lease or its sidecar lost; never seen by callers."""

    def __init__(self, sidecar: Sidecar, cause: BaseException) -> None:
        super().__init__(str(cause))
        self.sidecar = sidecar
        self.cause = cause


def settle(store: GraphParts, sidecar: Sidecar, cause: BaseException) -> GraphCommit:
    """The commit, when the write stands. `LeaseLost` when it was undone, `WriteInDoubt` when nobody can tell."""
    operation_id = sidecar.operation_id
    try:
        wait = settings().lease_wait_seconds + (0.0 if store.root.is_local else settings().lease_seconds)
        recover_one(store, operation_id, restore=True, wait=wait)
        branch = next((ref for ref in store.refs.list() if ref.incarnation == sidecar.incarnation), None)
        if branch is None:
            raise BranchNotFound(
                f"branch `{sidecar.branch}` was deleted while the write {operation_id} was paused: nothing of it is "
                "there",
                branch=sidecar.branch,
                operation_id=operation_id,
            )
        commit = known_history(store, store.manifest.read(branch)).get(sidecar.graph_commit_id)
        ends = {row.kind for row in store.audit.list() if row.operation_id == operation_id}
    except NotFound:
        raise
    except (OmniGraphError, OSError) as trouble:
        raise _doubt(sidecar, f"and what became of it cannot be told now ({trouble})") from cause
    if commit is not None:
        _logger.warning("the write %s was paused past its lease and stands all the same: %s", operation_id, cause)
        return commit
    if RecoveryKind.ROLLED_BACK in ends:
        raise LeaseLost(
            f"the write {operation_id} was paused past its lease and was undone by recovery: nothing of it is there. "
            "Write again.",
            operation_id=operation_id,
        ) from cause
    raise _doubt(sidecar, "and nothing tells what became of it") from cause


def _doubt(sidecar: Sidecar, why: str) -> WriteInDoubt:
    return WriteInDoubt(
        f"the write {sidecar.operation_id} on branch `{sidecar.branch}` was paused past its lease, {why}. Do not write "
        "again before you have looked: open the graph for writing, then see whether `omnigraph commit list` has "
        f"{sidecar.graph_commit_id}, and what `omnigraph commit recoveries` says of the operation.",
        sidecar.operation_id,
        graph_commit_id=sidecar.graph_commit_id,
    )
