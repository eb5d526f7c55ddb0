"""Branches whose newest manifest version is lost: shown, and mended on request, for `repair`.

The commit log has the pins of the commit that was acknowledged last, and the tables have its versions, so its state can
be published again. Or the older state is accepted, with a commit that says so.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ulid import ULID

from omnigraph.errors import HistoryGap, OmniGraphError
from omnigraph.ledger.branches.live_branches import for_live_branches
from omnigraph.ledger.history.acknowledged import LostHead, lost_head
from omnigraph.ledger.manifest.manifest import ManifestState
from omnigraph.ledger.manifest.publish import CommitDraft, Publication, publish
from omnigraph.ledger.snapshots import table_of
from omnigraph.ledger.values import GraphCommit, WriterKind

if TYPE_CHECKING:
    from omnigraph.ledger.store import GraphStore


@dataclass(frozen=True, slots=True)
class MendedHead:
    """A branch that shows an older commit than it should, and what became of it."""

    lost: LostHead
    action: str
    error: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data."""
        return {
            "branch": self.lost.branch.name,
            "shown": self.lost.shown.graph_commit_id,
            "acknowledged": self.lost.acknowledged.graph_commit_id,
            "action": self.action,
            "error": self.error,
        }


def find(store: GraphStore) -> list[LostHead]:
    """The branches that show less than was acknowledged."""
    found = for_live_branches(store, lambda ref: lost_head(store, ref, store.manifest.read(ref)))
    return [lost for _, lost in found if lost is not None]


def mend(
    store: GraphStore, lost: LostHead, *, restore: bool, actor: str | None, commits: list[GraphCommit]
) -> MendedHead:
    """Publish the acknowledged state again, or with `restore` keep the older one and say so in a commit."""
    try:
        with store.windows.enter(lost.branch, ()) as window:
            state = store.manifest.read(lost.branch)
            again = lost_head(store, lost.branch, state)
            if again is None:
                return MendedHead(lost, "published")
            changes = _accepted(state, actor) if restore else _acknowledged(store, again, state, actor)
            window.check()
            commits.append(publish(store, lost.branch, changes))
            store.seen_versions.pop(lost.branch.incarnation, None)
    except OmniGraphError as error:
        return MendedHead(lost, "refused", error.message)
    return MendedHead(lost, "restored" if restore else "published")


def _draft(state: ManifestState, actor: str | None, merged: str | None, *, changes_data: bool) -> CommitDraft:
    return CommitDraft(
        graph_commit_id=str(ULID()),
        parent_commit_id=state.head.graph_commit_id,
        merged_parent_commit_id=merged,
        actor_id=actor,
        created_at=time.time_ns() // 1000,
        kind=WriterKind.REPAIR,
        changes_data=changes_data,
    )


def _accepted(state: ManifestState, actor: str | None) -> Publication:
    return Publication(commit=_draft(state, actor, None, changes_data=True))


def _acknowledged(store: GraphStore, lost: LostHead, state: ManifestState, actor: str | None) -> Publication:
    wanted = store.commits.pins(lost.acknowledged.graph_commit_id)
    if wanted is None:
        raise HistoryGap(
            f"the pins of commit {lost.acknowledged.graph_commit_id} are not known: only the older state can be kept "
            "(`--restore`)"
        )
    for pin in wanted.values():
        store.tables.count(table_of(pin))
    named = {pin.type_id: key for key, pin in state.tables.items()}
    kept = {pin.type_id for pin in wanted.values()}
    return Publication(
        commit=_draft(state, actor, lost.acknowledged.graph_commit_id, changes_data=True),
        updates=tuple(pin for pin in wanted.values() if pin.type_id in named),
        registered=tuple(pin for pin in wanted.values() if pin.type_id not in named),
        tombstones=tuple(key for key, pin in state.tables.items() if pin.type_id not in kept),
        renamed=tuple((named[pin.type_id], key) for key, pin in wanted.items() if named.get(pin.type_id, key) != key),
        schema_digest=lost.acknowledged.schema_digest,
    )
