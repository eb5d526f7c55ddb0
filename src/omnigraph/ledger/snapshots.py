"""Snapshots: from what a caller names (branch, commit, tag, manifest version, time) to pinned tables and their schema.

Opening one reads the manifest and no table. When `cleanup` has removed the manifest version of a commit, the pins
recorded with the commit in the log stand in for it.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pyarrow as pa

from omnigraph.choices import Target
from omnigraph.diagnostics import did_you_mean
from omnigraph.errors import BadRequest, BranchNotFound, HistoryGap, NotFound
from omnigraph.ledger.branches.names import SHORTEST_PREFIX, is_commit_id, is_commit_prefix, refuse_system_name
from omnigraph.ledger.history.complete_log import complete, known_history
from omnigraph.ledger.history.dag import first_parents
from omnigraph.ledger.manifest.manifest import ManifestState
from omnigraph.ledger.parts import GraphParts
from omnigraph.ledger.values import MAIN, BranchRef, GraphCommit, Snapshot, TablePin
from omnigraph.schema.catalog import Catalog, GraphType
from omnigraph.schema.ids.given_ids import NoId, id_form
from omnigraph.storage.lance_errors import TableNotFound
from omnigraph.storage.values import TableVersion
from omnigraph.times import looks_like_time, moment_of, shown

LISTED_COMMITS = 5
"""How many commits the error about an ambiguous prefix lists."""


def resolve(store: GraphParts, target: Target = None, branch: str = MAIN, operation: str = "snapshot") -> Snapshot:
    """The snapshot that `target` names. `operation` is what a refusal says was tried.

    None is the head of `branch`, a number a manifest version of it, a datetime the newest commit of it that is not
    later. A text is the name of a branch or a tag, a commit id or the beginning of one, a manifest version written out,
    or a time: ISO text, or `2 hours ago`.
    """
    if target is None:
        return of_branch(store, store.branch(branch, operation))
    if isinstance(target, int) and not isinstance(target, bool):
        return of_version(store, store.branch(branch, operation), target)
    if isinstance(target, datetime):
        return of_time(store, store.branch(branch, operation), moment_of(target, operation))
    if not isinstance(target, str):
        raise BadRequest(
            f"{operation}: a target is a branch, a tag, a commit id, a manifest version or a time, not "
            f"{type(target).__name__}"
        )
    if is_commit_id(target):
        return of_commit(store, get_commit(store, target.upper()))
    refuse_system_name(target, operation)
    ref = store.refs.get(target)
    if ref is not None:
        return of_branch(store, ref)
    tag = store.refs.tag(target)
    if tag is not None:
        return of_commit(store, get_commit(store, tag.graph_commit_id))
    if target.isdigit():
        return of_version(store, store.branch(branch, operation), int(target))
    if looks_like_time(target):
        return of_time(store, store.branch(branch, operation), moment_of(target, operation))
    commit = commit_beginning_with(store, target)
    if commit is not None:
        return of_commit(store, commit)
    known = [*store.refs.names(), *(tag.name for tag in store.refs.tags())]
    hint = _suggestion(target, known) or _shortness(store, target)
    raise NotFound(f"`{target}` is no branch, tag or commit of this graph{hint}", target=target)


def _shortness(store: GraphParts, target: str) -> str:
    """A word to whoever wrote too little of a commit id."""
    begins = bool(target) and any(one.startswith(target.upper()) for one in store.commits.graph().ids())
    return f"; of a commit id write {SHORTEST_PREFIX} characters or more" if begins else ""


def commit_beginning_with(store: GraphParts, prefix: str) -> GraphCommit | None:
    """The one commit whose id begins so; None when there is none, or when this cannot be the beginning of an id."""
    if not is_commit_prefix(prefix):
        return None
    wanted = prefix.upper()
    found = [one for one in store.commits.graph().ids() if one.startswith(wanted)]
    if not found:
        # The log may lag behind the manifest.
        complete(store)
        found = [one for one in store.commits.graph().ids() if one.startswith(wanted)]
    if len(found) > 1:
        commits = [get_commit(store, one) for one in sorted(found)[:LISTED_COMMITS]]
        listed = ", ".join(
            f"{c.graph_commit_id} ({c.kind.value} on {c.branch}, {shown(c.created_at)})" for c in commits
        )
        more = f" and {len(found) - LISTED_COMMITS} more" if len(found) > LISTED_COMMITS else ""
        raise BadRequest(
            f"`{prefix}` is the beginning of {len(found)} commits: {listed}{more}; write more of the one you mean",
            target=prefix,
        )
    return get_commit(store, found[0]) if found else None


def of_time(store: GraphParts, ref: BranchRef, moment: int) -> Snapshot:
    """The newest state of a branch that was published not after a moment."""
    head = store.manifest.read(ref)
    oldest = head.head
    for commit in first_parents(known_history(store, head), head.head.graph_commit_id):
        if commit.created_at <= moment:
            return of_commit(store, commit)
        oldest = commit
    raise NotFound(
        f"branch `{ref.name}` has no commit at or before {shown(moment)}: its first one, {oldest.graph_commit_id}, is "
        f"of {shown(oldest.created_at)} (UTC)",
        branch=ref.name,
        target=shown(moment),
    )


def of_branch(store: GraphParts, ref: BranchRef) -> Snapshot:
    """The newest state of a branch."""
    try:
        return of_state(ref, store.manifest.read(ref))
    except TableNotFound:
        if store.refs.get(ref.name) != ref:
            raise BranchNotFound(f"branch `{ref.name}` was deleted", branch=ref.name) from None
        raise


def of_state(ref: BranchRef, state: ManifestState) -> Snapshot:
    """A manifest state as a snapshot of a branch."""
    return Snapshot(ref, state.version, state.head, state.schema_digest, state.tables)


def of_version(store: GraphParts, ref: BranchRef, version: int) -> Snapshot:
    """A manifest version of a branch. Versions from before the branch was made are those of its source."""
    if version < 1:
        raise BadRequest(f"a manifest version is a number from 1 on, not {version}")
    try:
        return of_state(ref, store.manifest.read(ref, version))
    except TableNotFound:
        head = store.manifest.read(ref)
    if version > head.version:
        raise NotFound(
            f"branch `{ref.name}` has no manifest version {version}: its newest is {head.version}", branch=ref.name
        )
    for commit in first_parents(known_history(store, head), head.head.graph_commit_id):
        if commit.manifest_version <= version:
            return of_commit(store, commit)
    raise NotFound(f"branch `{ref.name}` has no manifest version {version}", branch=ref.name)


def of_commit(store: GraphParts, commit: GraphCommit) -> Snapshot:
    """The state that a commit published, whatever became of its branch."""
    ref = BranchRef(commit.branch, commit.incarnation, commit.manifest_branch)
    try:
        state = store.manifest.read_line(commit.manifest_branch, commit.manifest_version)
        if state.head.graph_commit_id == commit.graph_commit_id:
            return of_state(ref, state)
    except TableNotFound:
        pass
    pins = store.commits.pins(commit.graph_commit_id)
    if pins is None:
        raise HistoryGap(
            f"the state of commit {commit.graph_commit_id} has been removed by cleanup",
            graph_commit_id=commit.graph_commit_id,
        )
    return Snapshot(ref, commit.manifest_version, commit, commit.schema_digest, pins)


def get_commit(store: GraphParts, commit_id: str) -> GraphCommit:
    """A commit by its id or the beginning of it; `NotFound` when the graph has none."""
    if not is_commit_id(commit_id):
        begun = commit_beginning_with(store, commit_id)
        if begun is not None:
            return begun
    found = store.commits.get(commit_id)
    if found is None:
        # The log may lag behind the manifest: the commit can be a head that nobody has logged yet.
        complete(store)
        found = store.commits.get(commit_id)
    if found is None:
        raise NotFound(f"this graph has no commit {commit_id}", graph_commit_id=commit_id)
    return found


def entity_row(
    store: GraphParts, type_name: str, entity_id: Any, at: Target = None, branch: str = MAIN
) -> tuple[GraphType, pa.Table]:
    """The row of one node or edge by type and id at a target, or no row, and its type. Reads one row of one table.

    `type_name` is the name of a node or edge type, or a table key (`edge:Knows`). `entity_id` is the id, or the value
    of the key: a date, a number, a list of the key's parts. Blobs come as Lance's descriptors.
    """
    snapshot = resolve(store, at, branch, "entity")
    catalog = store.catalog(snapshot.schema_digest)
    graph_type = find_type(catalog, type_name)
    wanted = _taken_id(catalog, graph_type, entity_id)
    pin = snapshot.tables.get(graph_type.table_key)
    if pin is None:
        return graph_type, pa.table({})
    try:
        table = table_of(pin)
        return graph_type, store.tables.row_of_id(table, wanted, place=store.tables.place_of_id(table, wanted))
    except TableNotFound:
        raise _removed(pin, snapshot) from None


def entity_place(
    store: GraphParts, type_name: str, entity_id: Any, at: Target = None, branch: str = MAIN, operation: str = "entity"
) -> tuple[GraphType, TableVersion, int] | None:
    """Where the row of one node or edge lies: its type, table and stable row id; None when there is no such row."""
    snapshot = resolve(store, at, branch, operation)
    catalog = store.catalog(snapshot.schema_digest)
    graph_type = find_type(catalog, type_name)
    pin = snapshot.tables[graph_type.table_key]
    wanted = _taken_id(catalog, graph_type, entity_id)
    try:
        found = store.tables.take_ids(table_of(pin), [wanted], ["id"], with_row_id=True)
    except TableNotFound:
        raise _removed(pin, snapshot) from None
    return (graph_type, table_of(pin), found["_rowid"][0].as_py()) if found.num_rows else None


def _removed(pin: TablePin, snapshot: Snapshot) -> HistoryGap:
    return HistoryGap(
        f"the version of {pin.table_key} at commit {snapshot.head.graph_commit_id} has been removed by cleanup",
        graph_commit_id=snapshot.head.graph_commit_id,
    )


def _taken_id(catalog: Catalog, graph_type: GraphType, given: Any) -> str:
    try:
        return id_form(catalog, graph_type).take(given)
    except NoId as problem:
        why = f": {problem}" if str(problem) else ""
        raise BadRequest(f"{given!r} is no id of a {graph_type.name}{why}") from None


def find_type(catalog: Catalog, name: str) -> GraphType:
    """The type of that name or table key; `NotFound` with a suggestion otherwise."""
    found = catalog.table(name) or catalog.node(name) or catalog.edge(name)
    if found is None:
        raise NotFound(
            f"the schema has no type `{name}`{_suggestion(name, [t.name for t in catalog.types()])}", type=name
        )
    return found


def table_of(pin: TablePin) -> TableVersion:
    """The table version that a pin names, for the storage layer."""
    return TableVersion(pin.location, pin.lance_branch, pin.version)


def _suggestion(name: str, known: list[str]) -> str:
    hint = did_you_mean(name, known)
    return f"; {hint}" if hint else ""
