"""Draws the commit DAG as text, newest first, one column per open line of history."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from omnigraph.ledger.values import GraphCommit
from omnigraph.times import shown


def draw(commits: Sequence[GraphCommit]) -> Iterator[str]:
    """One line per commit: `*` in the commit's column, `|` for the other open lines, then what the commit is."""
    known = {c.graph_commit_id for c in commits}
    lanes: list[str] = []
    for commit in commits:
        if commit.graph_commit_id not in lanes:
            lanes.append(commit.graph_commit_id)
        column = lanes.index(commit.graph_commit_id)
        marks = ["*" if index == column else "|" for index in range(len(lanes))]
        yield f"{' '.join(marks)}  {_describe(commit)}"
        parents = [p for p in (commit.parent_commit_id, commit.merged_parent_commit_id) if p and p in known]
        lanes = _advance(lanes, column, parents)


def _advance(lanes: list[str], column: int, parents: list[str]) -> list[str]:
    """Replace the commit's lane by its parents, leaving out lanes that somebody else holds already."""
    before, after = lanes[:column], lanes[column + 1 :]
    fresh = [p for p in parents if p not in before and p not in after]
    return before + fresh + after


def _describe(commit: GraphCommit) -> str:
    actor = f" by {commit.actor_id}" if commit.actor_id else ""
    return f"{commit.graph_commit_id}  {shown(commit.created_at)}  {commit.kind.value} on {commit.branch}{actor}"
