"""The internal migration: older layouts of `__manifest` are walked forward, one step each, when a graph is opened for
writing.

Each step is idempotent, and its changes to a line are one strict commit that also moves the line's stamp; the main line
comes last. So a crash leaves a graph that the next open continues with, and two processes that migrate at once both
succeed: who loses a commit looks again and finds the work done. Reads never migrate.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Mapping
from dataclasses import replace

import pyarrow as pa
from ulid import ULID

from omnigraph.errors import Conflict, OmniGraphError, StorageError
from omnigraph.failpoints import declare, failpoint
from omnigraph.ledger.history.log_rows import LOG, LogEntry, row_of
from omnigraph.ledger.history.log_rows import SCHEMA as LOG_SCHEMA
from omnigraph.ledger.history.rebuild_log import note_lost
from omnigraph.ledger.manifest.manifest import ManifestState
from omnigraph.ledger.manifest.manifest_rows import (
    KEY_COLUMN,
    MANIFEST,
    PRIMARY_KEY,
    SCHEMA,
    head_row,
    table_row,
    to_table,
)
from omnigraph.ledger.manifest.pins import Pins
from omnigraph.ledger.manifest.stamp import CURRENT, STAMP_KEY, read_stamp, refuse_newer
from omnigraph.ledger.older.legacy import RUN_PREFIX, LegacyGraph, branch_lines
from omnigraph.ledger.older.old_log import ACTORS
from omnigraph.ledger.older.old_recoveries import convert_audit, convert_sidecars
from omnigraph.ledger.parts import GraphParts
from omnigraph.ledger.values import MAIN, SCHEMA_APPLY_LOCK, GraphCommit
from omnigraph.storage.lance_errors import TableExists, TableNotFound
from omnigraph.storage.values import StagedWrite, TableVersion

_logger = logging.getLogger("omnigraph.ledger")

_ATTEMPTS = 20
_OPERATION = "internal-migration"
_INERT_DATASETS = ("_graph_runs.lance", "_graph_run_actors.lance")

declare("migrate.line", "One more line of the manifest is migrated by a step; main comes last")
declare("migrate.refs", "v3 to v4: the ref objects are made, the commit log and the lines are not migrated")
declare("migrate.log", "v3 to v4: the commit log is converted, the lines are not migrated")
declare("migrate.audit", "v3 to v4: the recovery audit is converted, sidecars and lines are not")
declare("migrate.sidecars", "v3 to v4: the sidecars of unfinished writes are converted, the lines are not migrated")


def migrate(store: GraphParts) -> None:
    """Bring the graph to the current internal schema version. Does nothing, at the cost of one look, when it is."""
    stamp = store.manifest.stamp()
    refuse_newer(stamp)
    while stamp < CURRENT:
        before = stamp
        try:
            STEPS[stamp](store)
        except StorageError:
            # Another process that has come to the end of the step removes what nobody needs behind it.
            if store.manifest.stamp() == before:
                raise
        stamp = store.manifest.stamp()
    store.manifest.forget()


def _mark_primary_key(store: GraphParts) -> None:
    """v1 to v2: `object_id` is marked as the unenforced primary key."""

    def change(line: TableVersion) -> StagedWrite:
        return store.tables.stage_schema_metadata(line, {STAMP_KEY: "2"}, {KEY_COLUMN: PRIMARY_KEY})

    _for_each_line(store, 2, change)


def _drop_runs(store: GraphParts) -> None:
    """v2 to v3: Lance branches of runs and the datasets that recorded them go."""
    for name in _run_branches(store):
        _drop_run_branch(store, name)
    for dataset in _INERT_DATASETS:
        store.objects.delete_prefix(dataset)
    _for_each_line(store, 3, lambda line: store.tables.stage_schema_metadata(line, {STAMP_KEY: "3"}))


def _one_row_per_table(store: GraphParts) -> None:
    """v3 to v4: ref objects, the commit log with pins, and on each line current rows with a `graph_head`."""
    _drop_schema_lock(store)
    graph = LegacyGraph(store.objects, store.tables, store.schemas)
    log = _log_rows(store, graph)
    for schema in graph.schemas.values():
        store.schemas.put(schema.source, schema.catalog)
    # The ref of main comes last of the refs: with it, the ref objects become the authority on what exists.
    for ref in reversed(graph.branches()):
        store.refs.create(ref, graph_id=str(ULID()) if ref.name == MAIN else None)
    note_lost(store, graph.unknown_parents())
    failpoint("migrate.refs")
    _convert_log(store, log)
    failpoint("migrate.log")
    _until_done(lambda: convert_audit(store, graph), "recovery audit")
    failpoint("migrate.audit")
    convert_sidecars(store, graph)
    failpoint("migrate.sidecars")

    def change(line: TableVersion) -> StagedWrite:
        state = graph.state(line)
        rows = [*(table_row(pin) for pin in state.tables.values()), head_row(state.head)]
        return store.tables.stage_overwrite(line, to_table(rows), SCHEMA)

    _for_each_line(store, CURRENT, change)
    _drop_inert(store)


STEPS: Mapping[int, Callable[[GraphParts], None]] = {1: _mark_primary_key, 2: _drop_runs, 3: _one_row_per_table}


def _for_each_line(store: GraphParts, target: int, change: Callable[[TableVersion], StagedWrite]) -> None:
    for name in [*(fork.name for fork in branch_lines(store.tables)), None]:
        _bring_line_to(store, name, target, change)
        failpoint("migrate.line")


def _bring_line_to(
    store: GraphParts, name: str | None, target: int, change: Callable[[TableVersion], StagedWrite]
) -> None:
    for _ in range(_ATTEMPTS):
        line = store.tables.head(MANIFEST, name)
        if read_stamp(store.tables.schema(line)) >= target:
            return
        # A conflict means that another process is at it too: the next look finds its work done.
        with contextlib.suppress(Conflict):
            store.tables.commit_staged(change(line), _OPERATION)
    raise Conflict("other processes keep changing this graph's manifest while it is being migrated; open it again")


def _run_branches(store: GraphParts) -> list[str]:
    """The Lance branches of runs, children before their parents."""
    forks = {f.name: f for f in store.tables.list_forks(MANIFEST) if f.name.startswith(RUN_PREFIX)}

    def depth(name: str) -> int:
        parent = forks[name].parent_branch
        return 1 + depth(parent) if parent in forks and parent is not None else 0

    return sorted(forks, key=lambda name: (-depth(name), name))


def _drop_run_branch(store: GraphParts, name: str) -> None:
    try:
        store.tables.delete_fork(MANIFEST, name)
    except OmniGraphError as error:
        # Another process may delete it too. A branch that was made from it needs it; then it stays, as a branch.
        if name in _run_branches(store):
            _logger.warning("the run `%s` of an older program stays, as a branch: %s", name, error.message)


def _drop_schema_lock(store: GraphParts) -> None:
    """The lock of a schema change was a line of the manifest; whoever held it is gone."""
    with contextlib.suppress(OmniGraphError):
        store.tables.delete_fork(MANIFEST, SCHEMA_APPLY_LOCK)


def _drop_inert(store: GraphParts) -> None:
    """What the log has taken in: its own lines, and the actors. What stays costs nothing but its bytes."""
    with contextlib.suppress(OmniGraphError):
        for fork in sorted(store.tables.list_forks(LOG), key=lambda fork: -len(fork.name)):
            with contextlib.suppress(OmniGraphError):
                store.tables.delete_fork(LOG, fork.name)
        store.objects.delete_prefix(ACTORS)


def _convert_log(store: GraphParts, rows: pa.Table) -> None:
    """The log in today's columns, with the pins of every commit whose state can still be read."""

    def convert() -> bool:
        try:
            head = store.tables.head(LOG)
        except TableNotFound:
            with contextlib.suppress(TableExists):
                store.tables.create(LOG, LOG_SCHEMA, rows=rows)
            return False
        if "pins" in store.tables.schema(head).names:
            return True
        with contextlib.suppress(Conflict):
            store.tables.commit_staged(store.tables.stage_overwrite(head, rows, LOG_SCHEMA), _OPERATION)
        return False

    _until_done(convert, "commit log")


def _until_done(work: Callable[[], bool], what: str) -> None:
    """Try again after a commit that was lost: another process is at it too, and the next look finds its work done."""
    for _ in range(_ATTEMPTS):
        if work():
            return
    raise Conflict(f"other processes keep changing this graph's {what} while it is being migrated; open it again")


def _log_rows(store: GraphParts, graph: LegacyGraph) -> pa.Table:
    commits = {commit.graph_commit_id: commit for commit in graph.commits()}
    for ref in graph.branches():
        head = graph.head(ref.manifest_branch, store.tables.head(MANIFEST, ref.manifest_branch).version)
        commits.setdefault(head.graph_commit_id, head)
    rows, pins_of, depths = [], dict[str, Pins | None](), dict[str, int | None]()
    for commit in sorted(commits.values(), key=lambda commit: (commit.manifest_version, commit.created_at)):
        parent = commit.parent_commit_id or ""
        state = _state_at(graph, commit)
        pins_of[commit.graph_commit_id] = state.tables if state is not None else None
        if state is not None:
            commit = replace(commit, schema_digest=state.schema_digest)
        entry = LogEntry(commit, pins_of[commit.graph_commit_id], pins_of.get(parent))
        row = row_of(entry, depths.get(parent))
        depths[commit.graph_commit_id] = row["pins_depth"]
        rows.append(row)
    return pa.Table.from_pylist(rows, schema=LOG_SCHEMA)


def _state_at(graph: LegacyGraph, commit: GraphCommit) -> ManifestState | None:
    try:
        return graph.state(TableVersion(MANIFEST, commit.manifest_branch, commit.manifest_version))
    except TableNotFound:
        return None
