"""Completing the commit log from the manifest: every head that was ever published has its commit in the log, once.

A commit's head row says on which line and at which version it was published, so the version before it on that line
holds its parent. Walking back from a branch's head until a commit that the log knows finds what a crash left out.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor

from omnigraph.errors import Busy, Conflict, LeaseLost, StorageError
from omnigraph.ledger.history.commit_log import ParentNotLogged
from omnigraph.ledger.history.dag import CommitGraph
from omnigraph.ledger.history.log_rows import LogEntry
from omnigraph.ledger.history.publish_marks import PublishMark
from omnigraph.ledger.manifest.manifest import ManifestState
from omnigraph.ledger.manifest.manifest_rows import files_of
from omnigraph.ledger.manifest.stamp import CURRENT
from omnigraph.ledger.parts import GraphParts
from omnigraph.ledger.values import BranchRef
from omnigraph.storage.lance_errors import TableNotFound

_READERS = 8
_NEAR = 32
_logger = logging.getLogger("omnigraph.ledger")


def complete(store: GraphParts) -> int:
    """Complete the log for every branch; how many commits were missing. A read-only handle only takes note of them."""
    refs = store.refs.list()
    if len(refs) <= 1:
        states = [state for ref in refs if (state := _head(store, ref)) is not None]
    else:
        with ThreadPoolExecutor(min(_READERS, len(refs)), thread_name_prefix="omnigraph-heads") as readers:
            states = [state for state in readers.map(lambda ref: _head(store, ref), refs) if state is not None]
    return complete_from(store, states)


def complete_branch(store: GraphParts, branch: BranchRef) -> int:
    """Complete the log for one branch."""
    return complete_from(store, [store.manifest.read(branch)])


def complete_from(store: GraphParts, states: Iterable[ManifestState]) -> int:
    """Complete the log for these states and everything before them."""
    known = store.commits.knows([state.head.graph_commit_id for state in states])
    added = 0
    for state in states:
        if state.head.graph_commit_id in known or state.stamp < CURRENT:
            continue
        entries = _complete_to(store, state)
        known.update(entry.commit.graph_commit_id for entry in entries)
        added += len(entries)
    return added


def _complete_to(store: GraphParts, state: ManifestState) -> list[LogEntry]:
    """Put the commits into the log that lead to a state; those that were missing."""
    entries, gap = _missing_before(store, state)
    if store.read_only:
        store.commits.overlay(entries)
    else:
        store.commits.append(entries, after_gap=gap)
    return entries


def complete_marked(store: GraphParts, marks: Iterable[PublishMark]) -> None:
    """Complete the log of the branches that marks name, and remove the marks of those who are no longer at work."""
    for mark in marks:
        _complete_named(store, mark.branch)
        if mark.branch is None:
            store.publish_marks.remove(mark.graph_commit_id)
            continue
        # Whoever put the mark holds the window of its branch, and removes the mark itself if it is alive.
        with contextlib.suppress(Busy, LeaseLost), store.windows.enter(mark.branch, (), wait=0.0):
            _complete_named(store, mark.branch)
            store.publish_marks.remove(mark.graph_commit_id)


def _complete_named(store: GraphParts, named: BranchRef | None) -> None:
    """Complete the log of a branch. One that is deleted was completed then; when none is named, all are completed."""
    if named is None:
        complete(store)
        return
    ref = store.refs.get(named.name)
    state = _head(store, ref) if ref is not None and ref.incarnation == named.incarnation else None
    complete_from(store, [state] if state is not None else [])


def known_history(store: GraphParts, state: ManifestState) -> CommitGraph:
    """The commit DAG, with this state's own commit in it even when the log lags behind the manifest."""
    graph = store.commits.graph()
    if state.head.graph_commit_id not in graph:
        complete_from(store, [state])
        graph = store.commits.graph()
    return graph


def record(store: GraphParts, branch: BranchRef, entries: Sequence[LogEntry]) -> bool:
    """Log commits that were just published on a branch; whether that worked.

    They are durable already, so trouble with the log is told and not raised.
    """
    try:
        try:
            store.commits.append(entries)
        except ParentNotLogged:
            _complete_to(store, store.manifest.read(branch))
    except (Conflict, StorageError) as error:
        _logger.warning(
            "commit %s is published but not in the commit log yet; the next write or open completes it: %s",
            entries[-1].commit.graph_commit_id,
            error,
        )
        return False
    return True


def record_soon(store: GraphParts, branch: BranchRef, entry: LogEntry) -> bool:
    """Log a commit that was just published on `main` together with those that follow shortly; see `unlogged`."""
    with_others = store.queue.is_accompanied(branch.name)
    store.unlogged.add(entry, lambda entries: record(store, branch, entries), with_others=with_others)
    return True


def _missing_before(store: GraphParts, state: ManifestState) -> tuple[list[LogEntry], bool]:
    """The commits from this state back to one that the log knows, oldest first; and whether history broke off."""
    found: list[LogEntry] = []
    current: ManifestState | None = state
    gap = False
    last = store.commits.logged_last()
    while current is not None and current.stamp == CURRENT:
        commit = current.head
        if commit.graph_commit_id in last:
            # What comes after one of the last is one of them too, or is not in the log: no need to search all of it.
            return found[::-1], False
        loaded = store.commits.is_loaded(commit.graph_commit_id)
        if loaded or (len(found) >= _NEAR and store.commits.knows([commit.graph_commit_id])):
            break
        before = _before(store, current)
        gap = before is None and commit.parent_commit_id is not None
        files = {**files_of(current.rows), **store.tables.files.manifest(current.table)}
        found.append(LogEntry(commit, current.tables, before.tables if before else None, files))
        current = before
    known = store.commits.knows([entry.commit.graph_commit_id for entry in found])
    return [entry for entry in found[::-1] if entry.commit.graph_commit_id not in known], gap


def _before(store: GraphParts, state: ManifestState) -> ManifestState | None:
    """The newest state before this one's commit, on the line where it was published; None when it is gone."""
    commit = state.head
    version = commit.manifest_version - 1
    while version > 0:
        try:
            before = store.manifest.read_line(commit.manifest_branch, version)
        except TableNotFound:
            return None
        if before.head.graph_commit_id == commit.parent_commit_id:
            return before
        # A version that is no commit (a stamp, an index) repeats the head of the one before it.
        if before.head.graph_commit_id != commit.graph_commit_id:
            return None
        version -= 1
    return None


def _head(store: GraphParts, ref: BranchRef) -> ManifestState | None:
    try:
        return store.manifest.read(ref)
    except TableNotFound:
        if store.refs.get(ref.name) != ref:
            return None
        raise
