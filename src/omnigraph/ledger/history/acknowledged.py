"""Whether a branch shows what was acknowledged last: a manifest whose newest version was lost shows an older state.

Lance takes the newest version that it finds for the newest one there is, so the loss of a file would set a branch back
in silence, and the next write would build on that. The commit log knows better: the last commit that it has of a branch
must be the one that the branch shows.
"""

from __future__ import annotations

from dataclasses import dataclass

from omnigraph.errors import RecoveryRequired
from omnigraph.ledger.history.complete_log import complete_from
from omnigraph.ledger.manifest.manifest import ManifestState
from omnigraph.ledger.parts import GraphParts
from omnigraph.ledger.values import BranchRef, GraphCommit


@dataclass(frozen=True, slots=True)
class LostHead:
    """A branch that shows an older commit than the one that was acknowledged last."""

    branch: BranchRef
    shown: GraphCommit
    acknowledged: GraphCommit

    def __str__(self) -> str:
        return (
            f"branch `{self.branch.name}` shows commit {self.shown.graph_commit_id} (manifest version "
            f"{self.shown.manifest_version}), but commit {self.acknowledged.graph_commit_id} (version "
            f"{self.acknowledged.manifest_version}) was acknowledged after it: the newest version of its manifest is "
            "lost"
        )


def lost_head(store: GraphParts, branch: BranchRef, state: ManifestState) -> LostHead | None:
    """The branch's lost head, if the log knows a later commit of it than this state has."""
    newest = store.commits.newest_of(branch.incarnation)
    if newest in (None, state.head.graph_commit_id):
        return None
    # The log may lag behind the manifest; completed, its last commit of the branch is the head.
    if not store.read_only:
        complete_from(store, [state])
        newest = store.commits.newest_of(branch.incarnation)
    elif not store.commits.knows([state.head.graph_commit_id]):
        return None
    if newest is None or newest == state.head.graph_commit_id:
        return None
    acknowledged = store.commits.get(newest)
    if acknowledged is None or acknowledged.manifest_version < state.version:
        # Versions only rise: what has an older one than the branch shows is no loss, wherever it stands in the log.
        return None
    if state.head.incarnation == branch.incarnation and _is_there(store, state, acknowledged):
        return None
    return LostHead(branch, state.head, acknowledged)


def refuse_lost_head(store: GraphParts, branch: BranchRef, state: ManifestState) -> None:
    """`RecoveryRequired` rather than to build on a state older than what was acknowledged.

    Looked up in the log once for each handle and branch; afterwards the versions that the handle has seen tell.
    """
    seen = store.seen_versions.get(branch.incarnation)
    if seen is None or state.version < seen:
        lost = lost_head(store, branch, state)
        if lost is not None:
            raise RecoveryRequired(
                f"{lost}. Nothing was written. Put the missing file below `__manifest` back from a copy, or run "
                "`omnigraph repair`: with `--force --confirm` it publishes the acknowledged state again",
                branch=branch.name,
                graph_commit_id=lost.acknowledged.graph_commit_id,
            )
    store.seen_versions[branch.incarnation] = state.version


def _is_there(store: GraphParts, state: ManifestState, acknowledged: GraphCommit) -> bool:
    """Whether the branch has that commit by now: others have published since the state was read, it and maybe more."""
    fresh = store.manifest.read_line(state.table.branch)
    if fresh.version == acknowledged.manifest_version:
        return fresh.head.graph_commit_id == acknowledged.graph_commit_id
    return fresh.version > max(state.version, acknowledged.manifest_version)
