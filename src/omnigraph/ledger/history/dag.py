"""The commit DAG: ancestors, merge bases, the order of a log. Pure: commits go in, answers come out.

A commit's generation is one more than the largest of its parents'. Walking by generation, newest first, meets every
child before its parents, so a walk can stop as soon as nothing undecided is left: its cost follows the distance
between two commits, not the length of the history.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from enum import IntFlag
from itertools import chain, repeat
from typing import Protocol

from omnigraph.ledger.values import GraphCommit


class _Seen(IntFlag):
    LEFT = 1
    RIGHT = 2
    STALE = 4


class CommitRows(Protocol):
    """Commits in bulk, by position: the DAG needs ids and parents at once, the rest of a commit when it is read."""

    ids: Sequence[str]
    first_parents: Sequence[str | None]
    merged_parents: Sequence[str | None]

    def commit(self, position: int) -> GraphCommit:
        """The commit at that position."""


class CommitGraph:
    """The commits known so far, by id. Grows; a commit never changes. Parents may be unknown (history that is gone)."""

    def __init__(self, commits: Iterable[GraphCommit] = ()) -> None:
        self._parents: dict[str, tuple[str | None, str | None]] = {}
        self._commits: dict[str, GraphCommit] = {}
        self._rows: dict[str, tuple[CommitRows, int]] = {}
        self._generations: dict[str, int] = {}
        self._unknown_parents: set[str] = set()
        for commit in commits:
            self.add(commit)

    def __len__(self) -> int:
        return len(self._parents)

    def __contains__(self, commit_id: str) -> bool:
        return commit_id in self._parents

    def __iter__(self) -> Iterator[GraphCommit]:
        return (commit for commit_id in tuple(self._parents) if (commit := self.get(commit_id)) is not None)

    def ids(self) -> tuple[str, ...]:
        """The ids of all known commits."""
        return tuple(self._parents)

    def get(self, commit_id: str) -> GraphCommit | None:
        """The commit of that id, if it is known."""
        found = self._commits.get(commit_id)
        if found is None and commit_id in self._rows:
            rows, position = self._rows[commit_id]
            found = self._commits[commit_id] = rows.commit(position)
        return found

    def add(self, commit: GraphCommit) -> bool:
        """Take a commit in; False when it is known already."""
        commit_id = commit.graph_commit_id
        if commit_id in self._parents:
            return False
        self._commits[commit_id] = commit
        self._take_in({commit_id: (commit.parent_commit_id, commit.merged_parent_commit_id)})
        return True

    def add_rows(self, rows: CommitRows) -> None:
        """Take many commits in at once; those that are known already stay as they are."""
        parents = dict(zip(rows.ids, zip(rows.first_parents, rows.merged_parents)))
        places = dict(zip(rows.ids, zip(repeat(rows), range(len(rows.ids)))))
        for known in parents.keys() & self._parents.keys():
            del parents[known], places[known]
        self._rows.update(places)
        self._take_in(parents)

    def _take_in(self, parents: Mapping[str, tuple[str | None, str | None]]) -> None:
        self._parents.update(parents)
        if not self._unknown_parents.isdisjoint(parents):
            # Their children came first: generations were counted without them.
            self._generations.clear()
        self._unknown_parents.difference_update(parents)
        named = chain.from_iterable(parents.values())
        self._unknown_parents.update(one for one in named if one is not None and one not in self._parents)

    def parents(self, commit_id: str) -> tuple[str, ...]:
        """The known parents of a commit, first parent first."""
        both = self._parents.get(commit_id, (None, None))
        return tuple(parent for parent in both if parent is not None and parent in self._parents)

    def generation(self, commit_id: str) -> int:
        """One more than the largest generation of the parents; 1 for a root."""
        known = self._generations
        if commit_id in known:
            return known[commit_id]
        stack = [commit_id]
        while stack:
            current = stack[-1]
            missing = [p for p in self.parents(current) if p not in known]
            if missing:
                stack.extend(missing)
                continue
            known[current] = 1 + max((known[p] for p in self.parents(current)), default=0)
            stack.pop()
        return known[commit_id]


def ancestors(graph: CommitGraph, commit_id: str) -> set[str]:
    """The commit and everything it was made from, as far as it is known."""
    found = {commit_id} if commit_id in graph else set()
    queue = list(found)
    while queue:
        for parent in graph.parents(queue.pop()):
            if parent not in found:
                found.add(parent)
                queue.append(parent)
    return found


def is_ancestor(graph: CommitGraph, older: str, newer: str) -> bool:
    """Whether `newer` was made from `older`; a commit is its own ancestor."""
    if older not in graph or newer not in graph:
        return False
    floor = graph.generation(older)
    seen = {newer}
    queue = [newer]
    while queue:
        current = queue.pop()
        if current == older:
            return True
        for parent in graph.parents(current):
            if parent not in seen and graph.generation(parent) >= floor:
                seen.add(parent)
                queue.append(parent)
    return False


def merge_bases(graph: CommitGraph, left: str, right: str) -> tuple[str, ...]:
    """The best common ancestors of two commits: common ancestors that no other common ancestor was made from.

    Usually one. After a criss-cross there are several; then the newest comes first (by generation, time, id), so that
    everybody picks the same.
    """
    if left not in graph or right not in graph:
        return ()
    seen: dict[str, _Seen] = {}
    queue: list[tuple[int, str]] = []

    def mark(commit_id: str, flags: _Seen) -> None:
        before = seen.get(commit_id)
        if before is None:
            heapq.heappush(queue, (-graph.generation(commit_id), commit_id))
        seen[commit_id] = flags if before is None else before | flags

    mark(left, _Seen.LEFT)
    mark(right, _Seen.RIGHT)
    common: list[str] = []
    undecided = {left, right}
    while undecided:
        _, current = heapq.heappop(queue)
        undecided.discard(current)
        flags = seen[current]
        if flags & _Seen.LEFT and flags & _Seen.RIGHT:
            if not flags & _Seen.STALE:
                common.append(current)
            flags |= _Seen.STALE
        for parent in graph.parents(current):
            mark(parent, flags)
            if seen[parent] & _Seen.STALE:
                undecided.discard(parent)
            else:
                undecided.add(parent)
    return tuple(sorted(common, key=lambda c: _newest_first(graph, c)))


def log(
    graph: CommitGraph, head: str, keep: Callable[[GraphCommit], bool] | None = None, limit: int | None = None
) -> list[GraphCommit]:
    """Everything reachable from `head`, newest first, children always before their parents."""
    if head not in graph:
        return []
    waiting = _children_left(graph, head)
    ready = [(_by_time(graph, head), head)]
    out: list[GraphCommit] = []
    while ready and (limit is None or len(out) < limit):
        _, current = heapq.heappop(ready)
        commit = graph.get(current)
        if commit is not None and (keep is None or keep(commit)):
            out.append(commit)
        for parent in set(graph.parents(current)):
            waiting[parent] -= 1
            if not waiting[parent]:
                heapq.heappush(ready, (_by_time(graph, parent), parent))
    return out


def first_parents(graph: CommitGraph, head: str) -> Iterator[GraphCommit]:
    """The line of a branch: the head, its first parent, and so on to the root or to where history is gone."""
    commit = graph.get(head)
    while commit is not None:
        yield commit
        commit = graph.get(commit.parent_commit_id) if commit.parent_commit_id else None


def changed_data_since(graph: CommitGraph, head: str, since: str) -> bool:
    """Whether any commit between `since` and `head`, merged ones included, changed data. True when it is unknown."""
    if not is_ancestor(graph, since, head):
        return True
    known = ancestors(graph, since)
    queue, seen = [head], {head}
    while queue:
        current = queue.pop()
        commit = graph.get(current)
        if current in known or commit is None:
            continue
        if commit.changes_data:
            return True
        for parent in graph.parents(current):
            if parent not in seen:
                seen.add(parent)
                queue.append(parent)
    return False


def made_from(graph: CommitGraph, commit_ids: Collection[str]) -> set[str]:
    """These commits and every known commit that was made from one of them, in one pass over the DAG."""
    children: dict[str, list[str]] = {}
    for commit_id in graph.ids():
        for parent in graph.parents(commit_id):
            children.setdefault(parent, []).append(commit_id)
    found = {commit_id for commit_id in commit_ids if commit_id in graph}
    queue = list(found)
    while queue:
        for child in children.get(queue.pop(), ()):
            if child not in found:
                found.add(child)
                queue.append(child)
    return found


def _children_left(graph: CommitGraph, head: str) -> dict[str, int]:
    waiting: dict[str, int] = {}
    for commit_id in ancestors(graph, head):
        for parent in set(graph.parents(commit_id)):
            waiting[parent] = waiting.get(parent, 0) + 1
    return waiting


def _by_time(graph: CommitGraph, commit_id: str) -> tuple[int, int, str]:
    commit = graph.get(commit_id)
    created = commit.created_at if commit else 0
    return -created, -graph.generation(commit_id), commit_id


def _newest_first(graph: CommitGraph, commit_id: str) -> tuple[int, int, str]:
    commit = graph.get(commit_id)
    return -graph.generation(commit_id), -(commit.created_at if commit else 0), commit_id
