"""What a merge must say: commits of its source that the target had and took back, which merging does not bring again.

They are in the target's history, so a merge sees nothing new in them. To have them back, the revert is reverted.
"""

from __future__ import annotations

from dataclasses import dataclass
from weakref import WeakKeyDictionary

from omnigraph.ledger.history.dag import CommitGraph, ancestors
from omnigraph.ledger.values import GraphCommit, WriterKind
from omnigraph.merge.undo.spans import taken_back_by

_undos: WeakKeyDictionary[CommitGraph, tuple[int, list[GraphCommit]]] = WeakKeyDictionary()


@dataclass(frozen=True, slots=True)
class TakenBack:
    """A commit that a branch has taken back, and the commit that did it."""

    graph_commit_id: str
    by: str

    def to_json(self) -> dict[str, str]:
        """Plain JSON data."""
        return {"graph_commit_id": self.graph_commit_id, "reverted_by": self.by}


def taken_back(graph: CommitGraph, source: str, target: str) -> tuple[TakenBack, ...]:
    """The commits that the head `source` has and that were reverted on the way to the head `target`, newest first."""
    undos = _all_undos(graph)
    if not undos:
        return ()
    theirs, ours = ancestors(graph, source), ancestors(graph, target)
    own = [undo for undo in undos if undo.graph_commit_id in ours and undo.graph_commit_id not in theirs]
    gone: dict[str, str] = {}
    # The newest first: a revert that was reverted itself takes nothing back.
    for undo in sorted(own, key=lambda undo: graph.generation(undo.graph_commit_id), reverse=True):
        if undo.graph_commit_id not in gone:
            gone |= {one: undo.graph_commit_id for one in taken_back_by(graph, undo) if one not in gone}
    found = [one for one in gone if _is_of(graph, one, theirs)]
    return tuple(TakenBack(one, gone[one]) for one in sorted(found, key=graph.generation, reverse=True))


def _is_of(graph: CommitGraph, commit_id: str, theirs: set[str]) -> bool:
    """Whether a commit, or what it merged, is the source's own work."""
    commit = graph.get(commit_id)
    return commit is not None and (commit_id in theirs or commit.merged_parent_commit_id in theirs)


def _all_undos(graph: CommitGraph) -> list[GraphCommit]:
    """Every revert and restore there is. Looks at each commit once, however often it is asked."""
    seen, found = _undos.get(graph, (0, []))
    ids = graph.ids()
    fresh = (graph.get(commit_id) for commit_id in ids[seen:])
    found += [commit for commit in fresh if commit is not None and commit.kind in _TAKING_BACK]
    _undos[graph] = (len(ids), found)
    return found


_TAKING_BACK = (WriterKind.REVERT, WriterKind.RESTORE)
