"""The change feed: one block per commit along first parents, with a cursor that survives restarts.

A cursor is bound to the graph, to the incarnation of the branch and to the filter; used elsewhere it is refused, since
it would skip or repeat changes without anybody noticing. History that `cleanup` has removed is a typed gap.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Collection, Iterator
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

import orjson

from omnigraph.errors import BadRequest, HistoryGap, NotFound, StaleCursor
from omnigraph.ledger.branches.names import is_commit_id
from omnigraph.ledger.history.complete_log import known_history
from omnigraph.ledger.history.dag import first_parents
from omnigraph.ledger.snapshots import of_commit, resolve
from omnigraph.ledger.values import BranchRef, GraphCommit, Snapshot
from omnigraph.merge.changes import EntityChange
from omnigraph.merge.diff import DiffFilter, changed_tables, diff, find_type_ids, is_there
from omnigraph.merge.schema_history import accepted_schemas
from omnigraph.storage.lance_errors import TableNotFound
from omnigraph.times import looks_like_time, since_text

if TYPE_CHECKING:
    from omnigraph.ledger.store import GraphStore

BEGINNING = "beginning"
NOW = "now"
_CURSOR_FORMAT = 1


@dataclass(frozen=True, slots=True)
class CommitChanges:
    """One commit with its changes against its first parent, and the cursor that goes on after it."""

    commit: GraphCommit
    changes: CommitChangeSet
    cursor: str


@dataclass(frozen=True, slots=True)
class CommitChangeSet:
    """What one commit changed: iterate as often as needed; nothing is kept."""

    store: GraphStore
    commit: GraphCommit
    only: DiffFilter | None = None

    def __iter__(self) -> Iterator[EntityChange]:
        return commit_changes(self.store, self.commit, self.only)


@dataclass(frozen=True, slots=True)
class Page:
    """A stretch of the feed, and where the next one starts: keep `cursor`, also when there was nothing new."""

    blocks: tuple[CommitChanges, ...]
    cursor: str

    def __iter__(self) -> Iterator[CommitChanges]:
        return iter(self.blocks)

    def __len__(self) -> int:
        return len(self.blocks)


@dataclass(frozen=True, slots=True)
class _Cursor:
    format: int
    graph: str
    incarnation: str
    filter: str
    after: str | None


def changes(
    store: GraphStore,
    branch: BranchRef,
    since: str | datetime = BEGINNING,
    *,
    only: DiffFilter | None = None,
    limit: int | None = None,
) -> Page:
    """The commits of a branch after `since`: a cursor, a commit, a tag, a time, `beginning` or `now`; at most `limit`.

    Delivery is at least once and in order: a caller that keeps the cursor of the last block it has dealt with misses
    nothing.
    """
    wanted = only or DiffFilter()
    if limit is not None and limit < 1:
        raise BadRequest("the limit of a page of changes is at least 1")
    after, fresh = commits_since(store, branch, since_text(since), wanted)
    fresh = fresh[:limit]
    last = fresh[-1].graph_commit_id if fresh else after
    wanted = readable(store, branch, fresh, wanted)
    return Page(tuple(_blocks(store, branch, fresh, wanted)), cursor_after(store, branch, last, wanted))


def commits_since(
    store: GraphStore, branch: BranchRef, since: str, only: DiffFilter
) -> tuple[str | None, list[GraphCommit]]:
    """The commit that `since` means, None for the beginning, and the commits of the branch after it, oldest first."""
    state = store.manifest.read(branch)
    graph = known_history(store, state)
    line = first_parents(graph, state.head.graph_commit_id)
    after = _after(store, branch, since, only, state.head.graph_commit_id)
    return after, _newer(line, after, branch)


def readable(
    store: GraphStore, branch: BranchRef, commits: list[GraphCommit], only: DiffFilter, *, all_of_them: bool = False
) -> DiffFilter:
    """The filter with which the changes of these commits are read. `HistoryGap` when the first of them are gone.

    With `all_of_them` each is looked at: what a tag keeps may stand before what is gone.
    """
    if only.types:
        head = store.manifest.read(branch).head
        only = replace(only, type_ids=_type_ids(store, head, commits, only.types))
    with_parent = [commit for commit in commits if commit.parent_commit_id is not None]
    for commit in with_parent if all_of_them else with_parent[:1]:
        _refuse_gap(store, commit, only)
    return only


def cursor_after(store: GraphStore, branch: BranchRef, after: str | None, only: DiffFilter) -> str:
    """The cursor that goes on after a commit, None for the beginning, under a filter."""
    cursor = _Cursor(_CURSOR_FORMAT, store.graph_id, branch.incarnation, _digest(only), after)
    return base64.urlsafe_b64encode(orjson.dumps(asdict(cursor))).decode().rstrip("=")


def _type_ids(store: GraphStore, head: GraphCommit, page: list[GraphCommit], names: Collection[str]) -> frozenset[str]:
    """The types behind names that they have now, have on this page or had at any time: a filter outlives drops."""
    before = store.commits.get(page[0].parent_commit_id or "") if page else None
    commits = [head, *page, *([before] if before else [])]
    catalogs = [store.catalog(digest) for digest in dict.fromkeys(commit.schema_digest for commit in commits)]
    try:
        return find_type_ids(names, catalogs)
    except NotFound:
        return find_type_ids(names, [*catalogs, *accepted_schemas(store)])


def _refuse_gap(store: GraphStore, commit: GraphCommit, only: DiffFilter) -> None:
    """`HistoryGap` when what a commit changed is gone."""
    before, after = _states(store, commit)
    for pair in changed_tables(store, before, after, only):
        for side, state in ((pair.left, before), (pair.right, after)):
            if side.table is not None and not is_there(store, side.table):
                raise _gap(state.head.graph_commit_id)


def commit_changes(store: GraphStore, commit: GraphCommit, only: DiffFilter | None = None) -> Iterator[EntityChange]:
    """What one commit changed against its first parent. The first commit of a graph changed nothing: it was empty."""
    if commit.parent_commit_id is None:
        return
    before, after = _states(store, commit)
    try:
        yield from diff(store, before, after, only)
    except (HistoryGap, TableNotFound) as error:
        gone = error.details.get("graph_commit_id") if isinstance(error, HistoryGap) else None
        raise _gap(gone or commit.graph_commit_id) from error


def _states(store: GraphStore, commit: GraphCommit) -> tuple[Snapshot, Snapshot]:
    """The states before and after a commit; a gap when one cannot be read any more."""
    assert commit.parent_commit_id is not None
    parent = store.commits.get(commit.parent_commit_id)
    if parent is None:
        raise _gap(commit.parent_commit_id)
    try:
        return of_commit(store, parent), of_commit(store, commit)
    except HistoryGap as error:
        raise _gap(error.details["graph_commit_id"]) from error


def _blocks(
    store: GraphStore, branch: BranchRef, commits: list[GraphCommit], only: DiffFilter
) -> Iterator[CommitChanges]:
    for commit in commits:
        cursor = cursor_after(store, branch, commit.graph_commit_id, only)
        yield CommitChanges(commit, CommitChangeSet(store, commit, only), cursor)


def _newer(line: Iterator[GraphCommit], after: str | None, branch: BranchRef) -> list[GraphCommit]:
    """The commits after `after`, oldest first. Walks back no further than to it."""
    fresh: list[GraphCommit] = []
    for commit in line:
        if commit.graph_commit_id == after:
            return fresh[::-1]
        fresh.append(commit)
    if after is None:
        return fresh[::-1]
    raise StaleCursor(
        f"commit {after} is not on the line of branch `{branch.name}`: the feed cannot go on from it. Start again from "
        "`beginning`, `now`, or a commit of this branch.",
        graph_commit_id=after,
    )


def _after(store: GraphStore, branch: BranchRef, since: str, only: DiffFilter, head: str) -> str | None:
    if since == BEGINNING:
        return None
    if since == NOW:
        return head
    if is_commit_id(since) and store.commits.get(since.upper()) is not None:
        return since.upper()
    cursor = _decode(store, branch, since, only)
    if cursor is not None:
        return cursor.after
    try:
        return resolve(store, since, branch.name, "changes").head.graph_commit_id
    except NotFound:
        if looks_like_time(since):
            return None  # before there was anything: all of it has come since
        raise StaleCursor(
            f"`{since[:40]}` is neither a cursor nor a commit, tag or time of this graph; use `beginning` or `now` to "
            "start"
        ) from None


def _decode(store: GraphStore, branch: BranchRef, text: str, only: DiffFilter) -> _Cursor | None:
    """The cursor that a text is, None when it is none. One that is of no use here is refused."""
    try:
        data: Any = orjson.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
        cursor = _Cursor(**data)
    except (binascii.Error, ValueError, TypeError):
        return None
    if cursor.format != _CURSOR_FORMAT:
        raise StaleCursor("the cursor was made by another version of OmniGraph; start again from `beginning` or `now`")
    if cursor.graph != store.graph_id:
        raise StaleCursor("the cursor belongs to another graph")
    if cursor.incarnation != branch.incarnation:
        raise StaleCursor(
            f"the cursor belongs to another branch than `{branch.name}`, or to one of that name that was deleted"
        )
    if cursor.filter != _digest(only):
        raise StaleCursor("the cursor was made with another filter; use the same one, or start again")
    return cursor


def _digest(only: DiffFilter) -> str:
    parts = [sorted(only.kinds), sorted(only.types), sorted(only.ops)]
    return hashlib.sha256(orjson.dumps(parts)).hexdigest()[:16]


def _gap(commit_id: str) -> HistoryGap:
    return HistoryGap(
        f"the state of commit {commit_id} has been removed by cleanup, so what it changed cannot be told. Take a fresh "
        "copy (export) and go on from `now`.",
        graph_commit_id=commit_id,
    )
