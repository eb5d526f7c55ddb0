"""A cut: the state of a whole graph at one moment, as the newest version of each line that belongs to it.

What is below the cut never changes, so it can be copied while others go on writing. Writes in flight are above it: the
copy does not have them, and none of their traces.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import BadRequest, Busy, Conflict, HistoryGap, StorageError, StorageKind
from omnigraph.ledger.branches.live_branches import for_live_branches
from omnigraph.ledger.branches.refs import TagRef
from omnigraph.ledger.history.complete_log import known_history
from omnigraph.ledger.history.dag import ancestors
from omnigraph.ledger.history.log_rows import ID, LOG
from omnigraph.ledger.layout import RECOVERIES
from omnigraph.ledger.manifest.manifest import ManifestState, OldLayout
from omnigraph.ledger.manifest.manifest_rows import MANIFEST
from omnigraph.ledger.values import MAIN, BranchRef, GraphCommit, TablePin
from omnigraph.maintain.survey.orphan_forks import branches_held
from omnigraph.storage.lance_errors import TableNotFound

if TYPE_CHECKING:
    from omnigraph.ledger.store import GraphStore

_LOOKS = 50

Line = tuple[str, str | None]


@dataclass(frozen=True, slots=True)
class Cut:
    """The branches and tags with their states, the newest version of each line, and the graph's own records."""

    states: Mapping[BranchRef, ManifestState]
    tags: tuple[TagRef, ...]
    lines: Mapping[Line, int]
    log: pa.Table
    audit: pa.Table | None

    @property
    def pins(self) -> list[TablePin]:
        """What the branches publish."""
        return [pin for state in self.states.values() for pin in state.tables.values()]


def take_cut(store: GraphStore, branches: Collection[str] = (), at: str | None = None) -> Cut:
    """The state of the graph now, `main` and these branches, by default all; or the branch of a commit as it was."""
    for name in branches:
        store.branch(name, "copy")
    for _ in range(_LOOKS):
        states = _states(store)
        with _held_still(store) as is_held:
            states = _states(store) if is_held else states
            log = store.tables.scan_table(store.tables.head(LOG))
            audit = _audit(store)
            tags = store.refs.tags()
            if is_held or _versions(states) == _versions(_states(store)):
                break
    else:
        raise Busy("copy: the graph is written to so often that its branches were never seen at rest; try again later")
    if at is not None:
        states = _as_it_was(store, states, branches, at)
    elif branches:
        states = {ref: state for ref, state in states.items() if ref.name in {MAIN, *branches}}
    kept = None if at is None and not branches else _reachable(store, states)
    if kept is not None:
        log = log.filter(pc.is_in(log[ID], value_set=pa.array(sorted(kept), pa.string())))
        tags = [tag for tag in tags if tag.graph_commit_id in kept]
    return Cut(states, tuple(tags), _lines(store, states, log), log, audit)


@contextmanager
def _held_still(store: GraphStore) -> Iterator[bool]:
    """Hold every branch for the moment of the look. Who may not write there, or not now, looks twice instead."""
    try:
        held = branches_held(store)
        held.__enter__()
    except Busy:
        yield False
        return
    except StorageError as error:
        if error.kind is not StorageKind.CONFIGURATION:
            raise
        yield False
        return
    try:
        yield True
    finally:
        held.__exit__(None, None, None)


def _states(store: GraphStore) -> dict[BranchRef, ManifestState]:
    return dict(for_live_branches(store, store.manifest.read))


def _versions(states: Mapping[BranchRef, ManifestState]) -> dict[str, int]:
    return {ref.incarnation: state.version for ref, state in states.items()}


def commit_at(store: GraphStore, branches: Collection[str], at: str) -> GraphCommit:
    """The commit that `at` names; times and manifest versions are those of the one branch that is named, or `main`."""
    if len(branches) > 1:
        raise BadRequest("copy: `at` is about one branch; name one, or leave `at` out")
    commit = store.snapshot(at, branch=next(iter(branches), MAIN), operation="copy").head
    ref = store.refs.get(commit.branch)
    if ref is None or ref.incarnation != commit.incarnation:
        raise BadRequest(
            f"copy: commit {commit.graph_commit_id} was made on branch `{commit.branch}`, which is gone. Make a branch "
            "from the commit, and copy that",
            graph_commit_id=commit.graph_commit_id,
        )
    return commit


def _as_it_was(
    store: GraphStore, states: Mapping[BranchRef, ManifestState], branches: Collection[str], at: str
) -> dict[BranchRef, ManifestState]:
    """The branch of a commit as it was then, and `main` at the newest of its commits that this one was made from."""
    commit = commit_at(store, branches, at)
    main = next(ref for ref in states if ref.name == MAIN)
    ref = next((ref for ref in states if ref.incarnation == commit.incarnation), None)
    if ref is None:
        raise Conflict(f"copy: branch `{commit.branch}` was deleted while it was about to be copied")
    if ref == main:
        return {main: _state_of(store, commit)}
    graph = known_history(store, states[ref])
    made_from = (graph.get(commit_id) for commit_id in ancestors(graph, commit.graph_commit_id))
    of_main = [one for one in made_from if one is not None and one.incarnation == main.incarnation]
    newest = max(of_main, key=lambda one: one.manifest_version)
    return {main: _state_of(store, newest), ref: _state_of(store, commit)}


def _state_of(store: GraphStore, commit: GraphCommit) -> ManifestState:
    try:
        return store.manifest.read_line(commit.manifest_branch, commit.manifest_version)
    except OldLayout as error:
        raise HistoryGap(
            f"copy: commit {commit.graph_commit_id} is from before the graph was migrated; choose a newer one",
            graph_commit_id=commit.graph_commit_id,
        ) from error
    except TableNotFound as error:
        raise HistoryGap(
            f"copy: the state of commit {commit.graph_commit_id} has been removed by cleanup; choose a newer one",
            graph_commit_id=commit.graph_commit_id,
        ) from error


def _reachable(store: GraphStore, states: Mapping[BranchRef, ManifestState]) -> set[str]:
    return {
        commit_id
        for state in states.values()
        for commit_id in ancestors(known_history(store, state), state.head.graph_commit_id)
    }


def _lines(store: GraphStore, states: Mapping[BranchRef, ManifestState], log: pa.Table) -> dict[Line, int]:
    """The newest version of each line that a branch or a commit of the log names."""
    found: dict[Line, int] = {(MANIFEST, state.table.branch): state.version for state in states.values()}

    def note(pins: Collection[TablePin]) -> None:
        for pin in pins:
            line = (pin.location, pin.lance_branch)
            found[line] = max(pin.version, found.get(line, 0))

    for state in states.values():
        note(state.tables.values())
    for _, pins in store.commits.pins_of_many(log[ID].to_pylist()):
        note(pins.values())
    return found


def _audit(store: GraphStore) -> pa.Table | None:
    try:
        return store.tables.scan_table(store.tables.head(RECOVERIES))
    except TableNotFound:
        return None
