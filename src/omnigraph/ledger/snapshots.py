"""Snapshots: from what a caller names (branch, commit, tag, manifest version) to pinned tables and their schema.

Opening one reads the manifest and no table. When `cleanup` has removed the manifest version of a commit, the pins
recorded with the commit in the log stand in for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from omnigraph.diagnostics import did_you_mean
from omnigraph.errors import BadRequest, HistoryGap, NotFound
from omnigraph.ledger.completion import known_history
from omnigraph.ledger.history import first_parents
from omnigraph.ledger.manifest import ManifestState
from omnigraph.ledger.names import is_commit_id, refuse_system_name
from omnigraph.ledger.values import MAIN, BranchRef, GraphCommit, Snapshot, TablePin
from omnigraph.schema.arrow import shown_columns
from omnigraph.schema.catalog import Catalog, GraphType
from omnigraph.schema.given_ids import NoId, id_form
from omnigraph.storage.lance_errors import TableNotFound
from omnigraph.storage.values import TableVersion

if TYPE_CHECKING:
    from omnigraph.ledger.store import GraphStore

Target = str | int | None


def resolve(store: GraphStore, target: Target = None, branch: str = MAIN) -> Snapshot:
    """The snapshot that `target` names.

    None is the head of `branch`, a number a manifest version of it, a text the name of a branch or a tag, a commit id,
    or a manifest version written out.
    """
    if target is None:
        return of_branch(store, store.branch(branch))
    if isinstance(target, int):
        return of_version(store, store.branch(branch), target)
    if is_commit_id(target):
        return of_commit(store, get_commit(store, target.upper()))
    refuse_system_name(target, "snapshot")
    ref = store.refs.get(target)
    if ref is not None:
        return of_branch(store, ref)
    tag = store.refs.tag(target)
    if tag is not None:
        return of_commit(store, get_commit(store, tag.graph_commit_id))
    if target.isdigit():
        return of_version(store, store.branch(branch), int(target))
    known = [*store.refs.names(), *(tag.name for tag in store.refs.tags())]
    raise NotFound(f"`{target}` is no branch, tag or commit of this graph{_suggestion(target, known)}", target=target)


def of_branch(store: GraphStore, ref: BranchRef) -> Snapshot:
    """The newest state of a branch."""
    try:
        return of_state(ref, store.manifest.read(ref))
    except TableNotFound:
        if store.refs.get(ref.name) != ref:
            raise NotFound(f"branch `{ref.name}` was deleted", branch=ref.name) from None
        raise


def of_state(ref: BranchRef, state: ManifestState) -> Snapshot:
    """A manifest state as a snapshot of a branch."""
    return Snapshot(ref, state.version, state.head, state.schema_digest, state.tables)


def of_version(store: GraphStore, ref: BranchRef, version: int) -> Snapshot:
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


def of_commit(store: GraphStore, commit: GraphCommit) -> Snapshot:
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


def get_commit(store: GraphStore, commit_id: str) -> GraphCommit:
    """A commit by its id; `NotFound` when the graph has none."""
    found = store.commits.get(commit_id)
    if found is None:
        # The log may lag behind the manifest: the commit can be a head that nobody has logged yet.
        store.complete_log()
        found = store.commits.get(commit_id)
    if found is None:
        raise NotFound(f"this graph has no commit {commit_id}", graph_commit_id=commit_id)
    return found


def entity(
    store: GraphStore, type_name: str, entity_id: Any, at: Target = None, branch: str = MAIN
) -> dict[str, Any] | None:
    """One node or edge by type and id at a target, or None. Reads the manifest and one row of one table.

    `type_name` is the name of a node or edge type, or a table key (`edge:Knows`). `entity_id` is the id, or the value
    of the key: a date, a number, a list of the key's parts. Blobs come as Lance's descriptors.
    """
    snapshot = resolve(store, at, branch)
    catalog = store.catalog(snapshot.schema_digest)
    graph_type = find_type(catalog, type_name)
    wanted = _taken_id(catalog, graph_type, entity_id)
    pin = snapshot.tables.get(graph_type.table_key)
    if pin is None:
        return None
    try:
        rows = store.tables.take_ids(table_of(pin), [wanted])
    except TableNotFound:
        raise HistoryGap(
            f"the version of {pin.table_key} at commit {snapshot.head.graph_commit_id} has been removed by cleanup",
            graph_commit_id=snapshot.head.graph_commit_id,
        ) from None
    shown = shown_columns(graph_type)
    found = rows.rename_columns([shown.get(name, name) for name in rows.column_names]).to_pylist()
    return found[0] if found else None


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
