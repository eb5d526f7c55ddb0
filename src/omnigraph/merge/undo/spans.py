"""Which commits an undo is about: one commit and the state before it, or a range `a..b`, which is what came after `a`
up to `b`, along first parents."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from omnigraph.errors import BadRequest
from omnigraph.ledger.history.dag import CommitGraph, ancestors, first_parents
from omnigraph.ledger.snapshots import get_commit, of_commit, resolve
from omnigraph.ledger.values import GraphCommit, Snapshot, WriterKind

if TYPE_CHECKING:
    from omnigraph.ledger.store import GraphStore


@dataclass(frozen=True, slots=True)
class Span:
    """The states before and after the commits, and how a commit says what it is about."""

    before: Snapshot
    after: Snapshot
    about: str


def span_of(store: GraphStore, given: str, branch: str, operation: str) -> Span:
    """The span that a caller names: a commit by any target, or `a..b`."""
    if not isinstance(given, str):
        raise BadRequest(f"{operation}: a commit is named by its id or a range `a..b`, not by {type(given).__name__}")
    first, dots, last = given.partition("..")
    if not dots:
        return _one(store, resolve(store, given, branch, operation), operation)
    if not first or not last:
        raise BadRequest(f"{operation}: a range is `a..b`: the commits after a, up to b; `{given}` lacks one of them")
    before, after = (resolve(store, end, branch, operation) for end in (first, last))
    start, end = before.head.graph_commit_id, after.head.graph_commit_id
    line = (commit.graph_commit_id for commit in first_parents(store.commits.graph(), end))
    if start == end or start not in line:
        raise BadRequest(
            f"{operation}: {start} is not among the commits that {end} was made from one after the other, so "
            f"`{given}` is no range; name the older commit first"
        )
    return Span(before, after, f"{start}..{end}")


def _one(store: GraphStore, after: Snapshot, operation: str) -> Span:
    commit = after.head
    if commit.parent_commit_id is None:
        raise BadRequest(
            f"{operation}: {commit.graph_commit_id} is the first commit of the graph: there is nothing before it"
        )
    return Span(of_commit(store, get_commit(store, commit.parent_commit_id)), after, commit.graph_commit_id)


def taken_back_by(graph: CommitGraph, undo: GraphCommit) -> set[str]:
    """The commits that a revert or a restore took back."""
    if undo.about is None:
        return set()
    first, dots, last = undo.about.partition("..")
    if undo.kind is WriterKind.RESTORE:
        return ancestors(graph, undo.parent_commit_id or "") - ancestors(graph, first)
    if not dots:
        return {first}
    found = set()
    for commit in first_parents(graph, last):
        if commit.graph_commit_id == first:
            break
        found.add(commit.graph_commit_id)
    return found
