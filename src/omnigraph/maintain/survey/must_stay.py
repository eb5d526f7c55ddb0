"""What must stay: the versions that heads, tags, retained commits, merge bases and live writers need, line by line.

The order of the looks matters. What exists is listed first and what is needed is read afterwards, so whatever comes
into being meanwhile is not on the list. A writer takes its lease before it reads a head, so every head since the oldest
live lease counts as needed, and so does every head since the listing began.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from omnigraph.errors import HistoryGap
from omnigraph.ledger.branches.live_branches import for_live_branches
from omnigraph.ledger.commit.attempts import WRITER_LEASE_PREFIX
from omnigraph.ledger.history.bases_of_heads import bases_of_heads
from omnigraph.ledger.history.complete_log import complete_from
from omnigraph.ledger.history.dag import CommitGraph
from omnigraph.ledger.manifest.manifest import ManifestState
from omnigraph.ledger.manifest.manifest_rows import MANIFEST
from omnigraph.ledger.snapshots import get_commit, of_commit
from omnigraph.ledger.values import BranchRef, TablePin
from omnigraph.maintain.survey.retention import Retention, heads_since, kept_of_branch
from omnigraph.storage.constants import LEASE_CLOCK_SKEW_SECONDS

if TYPE_CHECKING:
    from omnigraph.ledger.store import GraphStore

_WORKING_LEASES = (WRITER_LEASE_PREFIX, "schema-apply-")

Line = tuple[str, str | None]


@dataclass(frozen=True, slots=True)
class Needs:
    """The versions that stay, by (location, line), the commits they belong to, and the keys of the tables."""

    versions: Mapping[Line, frozenset[int]]
    commits: frozenset[str]
    table_keys: Mapping[str, str]
    working_since: float | None

    def needs_line(self, location: str, line: str | None) -> bool:
        """Whether any version of the line is needed."""
        return (location, line) in self.versions

    def needs_table(self, location: str) -> bool:
        """Whether any version of any line is needed."""
        return any(place == location for place, _ in self.versions)


@dataclass(frozen=True, slots=True)
class Heads:
    """The live branches and their newest states at one moment."""

    states: Mapping[str, tuple[BranchRef, ManifestState]]

    @property
    def commits(self) -> list[str]:
        """The commits at the heads."""
        return [state.head.graph_commit_id for _, state in self.states.values()]


def read_heads(store: GraphStore) -> Heads:
    """The heads of every branch as they are now, all in the log."""
    states = {ref.incarnation: (ref, state) for ref, state in for_live_branches(store, store.manifest.read)}
    complete_from(store, [state for _, state in states.values()])
    return Heads(states)


def working_since(store: GraphStore) -> float | None:
    """Since when the oldest live writer has been at work, in seconds of the epoch; None when there is none."""
    leases = [lease for prefix in _WORKING_LEASES for lease in store.leases.list_live(prefix)]
    return min((lease.acquired_at - LEASE_CLOCK_SKEW_SECONDS for lease in leases), default=None)


_MANY = 32
"""From this many commits on their pins are read by one pass over the log instead of one look-up each."""


def collect(store: GraphStore, before: Heads, retention: Retention, now: float) -> Needs:
    """What is needed now. `before` are the heads from before anything was listed."""
    since = working_since(store)
    heads = read_heads(store)
    graph = store.commits.graph()
    certain = set(heads.commits) | set(before.commits) | _tagged(store)
    certain |= bases_of_heads(graph, heads.commits)
    for ref, state in heads.states.values():
        head = state.head.graph_commit_id
        known = before.states.get(ref.incarnation)
        if known is not None:
            certain |= _between(graph, head, known[1].head.graph_commit_id)
        if since is not None:
            certain |= heads_since(graph, head, since)
    kept = set(certain)
    for head in heads.commits:
        kept |= kept_of_branch(graph, head, retention, now)

    found: dict[Line, set[int]] = {}
    keys: dict[str, str] = {}
    for _, state in (*before.states.values(), *heads.states.values()):
        found.setdefault((MANIFEST, state.table.branch), set()).add(state.version)
        _note(found, keys, state.tables.values())
    logged = dict.fromkeys(kept)
    if len(kept) > _MANY:
        for commit_id, known_pins in store.commits.pins_of_many(kept):
            _note(found, keys, known_pins.values())
            commit = get_commit(store, commit_id)
            found.setdefault((MANIFEST, commit.manifest_branch), set()).add(commit.manifest_version)
            logged.pop(commit_id, None)
    for commit_id in sorted(logged):
        pins = _pins(store, commit_id, must_be_known=commit_id in certain)
        if pins is None:
            continue
        _note(found, keys, pins.values())
        commit = get_commit(store, commit_id)
        found.setdefault((MANIFEST, commit.manifest_branch), set()).add(commit.manifest_version)
    versions = {line: frozenset(wanted) for line, wanted in found.items()}
    return Needs(versions, frozenset(kept), {**keys, MANIFEST: MANIFEST}, since)


def _note(found: dict[Line, set[int]], keys: dict[str, str], pins: Iterable[TablePin]) -> None:
    for pin in pins:
        found.setdefault((pin.location, pin.lance_branch), set()).add(pin.version)
        keys[pin.location] = pin.table_key


def _pins(store: GraphStore, commit_id: str, *, must_be_known: bool) -> Mapping[str, TablePin] | None:
    """The pins of a commit. Of one that is only retained they may be unknown: then it could not be read before either.

    For anything that a branch or a tag needs that is a reason to stop before anything is removed.
    """
    pins = store.commits.pins(commit_id)
    if pins is not None:
        return pins
    try:
        return of_commit(store, get_commit(store, commit_id)).tables
    except HistoryGap:
        if must_be_known:
            raise
        return None


def _tagged(store: GraphStore) -> set[str]:
    return {tag.graph_commit_id for tag in store.refs.tags()}


def _between(graph: CommitGraph, head: str, earlier: str) -> set[str]:
    """The commits that were published on a branch after an earlier head of it."""
    found: set[str] = set()
    commit = graph.get(head)
    while commit is not None and commit.graph_commit_id != earlier:
        found.add(commit.graph_commit_id)
        commit = graph.get(commit.parent_commit_id) if commit.parent_commit_id else None
    return found
