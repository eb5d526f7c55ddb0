"""The invariants of page 04, checked after a crash: whatever died where, this must hold once the graph was reopened."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from typing import Any

from omnigraph.config import settings
from omnigraph.ledger.snapshots import table_of
from omnigraph.ledger.store import GraphStore, open_store
from omnigraph.ledger.values import BranchRef
from omnigraph.storage.constants import LEASE_CLOCK_SKEW_SECONDS, LOCKS_DIRECTORY

Rows = list[tuple[Any, ...]]
GraphContent = dict[str, dict[str, Rows]]
"""Every row of every table of every branch."""


def observe(store: GraphStore) -> GraphContent:
    """What a reader of each branch sees, sorted."""
    return {ref.name: _content(store, ref) for ref in store.refs.list()}


def check_invariants(
    uri: str,
    before: GraphContent,
    after: GraphContent | None,
    *,
    next_write: Callable[[GraphStore], object] | None = None,
) -> str:
    """Reopen the graph at `uri` after a crash and check everything that must hold; "before" or "after".

    `before` and `after` are what all branches showed before the write, and would show after it (None: the write could
    not succeed). `next_write` is run at the end and must change something.
    """
    pending = open_store(uri, read_only=True).sidecars.list()
    store = open_store(uri)
    check_pins_are_heads(store)
    seen = observe(store)
    outcome = "before" if seen == before else "after"
    assert seen in (before, after), "the graph shows something between the state before and the state after"
    check_history(store)
    _check_audit(store, pending)
    assert store.sidecars.list() == []
    _check_no_lease_is_left(store)
    _check_second_reopen_changes_nothing(uri, store)
    if next_write is not None:
        next_write(store)
        assert observe(store) != seen, "the next write changed nothing"
        check_pins_are_heads(store)
        check_history(store)
        assert store.sidecars.list() == []
        _check_no_lease_is_left(store)
    return outcome


def check_pins_are_heads(store: GraphStore) -> None:
    """Pin = HEAD for every line that its branch owns, and row counts are those of the tables."""
    for ref in store.refs.list():
        for pin in store.manifest.read(ref).tables.values():
            if pin.owner == ref.incarnation:
                head = store.tables.head(pin.location, pin.lance_branch)
                assert head.version == pin.version, f"{pin.table_key} on {ref.name}: HEAD {head.version}, {pin}"
            assert store.tables.count(table_of(pin)) == pin.row_count, pin


def check_history(store: GraphStore) -> None:
    """Every manifest version of every branch has its commit, once, with the right parent, branch and pins."""
    ids: Counter[str] = Counter()
    for ref in store.refs.list():
        start = ref.source_manifest_version or 0
        parent = store.manifest.read(ref, start).head.graph_commit_id if start else None
        head = store.manifest.read(ref)
        for version in range(start + 1, head.version + 1):
            state = store.manifest.read(ref, version)
            commit = state.head
            assert (commit.branch, commit.incarnation) == (ref.name, ref.incarnation)
            assert (commit.manifest_branch, commit.manifest_version) == (ref.manifest_branch, version)
            assert commit.parent_commit_id == parent
            assert store.commits.get(commit.graph_commit_id) == commit
            assert store.commits.pins(commit.graph_commit_id) == state.tables
            ids[commit.graph_commit_id] += 1
            parent = commit.graph_commit_id
    assert set(ids.values()) <= {1}
    logged = Counter(commit.graph_commit_id for commit in store.commits.graph())
    assert set(logged.values()) <= {1}
    assert ids.keys() <= logged.keys()


def _content(store: GraphStore, ref: BranchRef) -> dict[str, Rows]:
    found: dict[str, Rows] = {}
    for key, pin in store.manifest.read(ref).tables.items():
        rows = store.tables.scan_table(table_of(pin)).to_pylist()
        found[key] = sorted((tuple(row.values()) for row in rows), key=repr)
    return found


def _check_audit(store: GraphStore, pending: list[str]) -> None:
    """Exactly one row for each sidecar that was there before the reopen, and never two for one operation."""
    rows = Counter(record.operation_id for record in store.audit.list())
    assert set(rows.values()) <= {1}
    assert set(pending) <= rows.keys()
    known = store.commits.graph()
    for record in store.audit.list():
        assert record.graph_commit_id in known


def _check_no_lease_is_left(store: GraphStore) -> None:
    """On local disk a lease ends with its process; on an object store the one of a dead process has to run out."""
    seconds = 0.0 if store.root.is_local else settings().lease_seconds + LEASE_CLOCK_SKEW_SECONDS + 1
    deadline = time.monotonic() + seconds
    while store.leases.list_live():
        assert time.monotonic() < deadline, store.leases.list_live()
        time.sleep(0.1)


def _check_second_reopen_changes_nothing(uri: str, store: GraphStore) -> None:
    before = _all_objects(store)
    again = open_store(uri)
    assert _all_objects(again) == before


def _all_objects(store: GraphStore) -> list[tuple[str, int]]:
    found = [(entry.path, entry.size) for entry in store.objects.list("")]
    return [entry for entry in found if not entry[0].startswith(f"{LOCKS_DIRECTORY}/")]
