"""Which commits a retention keeps: the newest of each branch, and those that are young enough. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice

from omnigraph.errors import BadRequest
from omnigraph.ledger.history.dag import CommitGraph, ancestors, first_parents

FEWEST_KEPT = 3
"""Commits of each branch that stay unless forced: recovery may need the version before the newest one."""


@dataclass(frozen=True, slots=True)
class Retention:
    """What to keep of each branch: its newest `keep_versions` commits, those younger than `older_than` seconds, or,
    with both, what either keeps."""

    keep_versions: int | None = None
    older_than: float | None = None

    def checked(self, *, force: bool) -> Retention:
        """The retention with its floor, or `BadRequest`."""
        if self.keep_versions is None and self.older_than is None:
            raise BadRequest("cleanup: say what to keep: keep_versions, older_than, or both")
        if self.older_than is not None and self.older_than < 0:
            raise BadRequest(f"cleanup: older_than is a length of time and cannot be {self.older_than:g}")
        if self.keep_versions is not None and self.keep_versions < 1:
            raise BadRequest("cleanup: the newest commit of a branch always stays; keep at least 1")
        if force:
            return self
        if self.keep_versions is not None and self.keep_versions < FEWEST_KEPT:
            raise BadRequest(
                f"cleanup: keeping {self.keep_versions} commits of a branch is refused, because recovery may need the "
                f"version before the newest one; keep {FEWEST_KEPT} or more, or force it"
            )
        return Retention(self.keep_versions or FEWEST_KEPT, self.older_than)


def kept_of_branch(graph: CommitGraph, head: str, retention: Retention, now: float) -> set[str]:
    """The commits of one branch that stay. Numbers count along the branch's own line; ages look at all it can reach."""
    newest = islice(first_parents(graph, head), retention.keep_versions or 1)
    kept = {commit.graph_commit_id for commit in newest} | {head}
    if retention.older_than is not None:
        since = (now - retention.older_than) * 1e6
        for commit_id in ancestors(graph, head):
            commit = graph.get(commit_id)
            if commit is not None and commit.created_at >= since:
                kept.add(commit_id)
    return kept


def heads_since(graph: CommitGraph, head: str, since: float) -> set[str]:
    """The commits of a branch's line that were its head at some time after `since`, in seconds of the epoch."""
    found: set[str] = set()
    for commit in first_parents(graph, head):
        found.add(commit.graph_commit_id)
        if commit.created_at < since * 1e6:
            break
    return found
