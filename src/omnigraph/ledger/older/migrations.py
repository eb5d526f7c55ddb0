"""The internal migration: older layouts of `__manifest` are walked forward, one step each, when a graph is opened for
writing.

Each step is idempotent, and its changes to a line are one strict commit that also moves the line's stamp; the main line
comes last. So a crash leaves a graph that the next open continues with, and two processes that migrate at once both
succeed: who loses a commit looks again and finds the work done. Reads never migrate.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping

import pyarrow as pa
from ulid import ULID

from omnigraph.errors import Conflict, OmniGraphError
from omnigraph.failpoints import declare, failpoint
from omnigraph.ledger.history.log_rows import LOG, LogEntry, row_of
from omnigraph.ledger.history.log_rows import SCHEMA as LOG_SCHEMA
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
from omnigraph.ledger.older.legacy import RUN_PREFIX, LegacyGraph
from omnigraph.ledger.parts import GraphParts
from omnigraph.ledger.values import MAIN, GraphCommit
from omnigraph.storage.lance_errors import TableExists, TableNotFound
from omnigraph.storage.values import StagedWrite, TableVersion

_ATTEMPTS = 20
_OPERATION = "internal-migration"
_INERT_DATASETS = ("_graph_runs.lance", "_graph_run_actors.lance")

declare("migrate.line", "One more line of the manifest is migrated by a step; main comes last")
declare("migrate.refs", "v3 to v4: the ref objects are made, the commit log and the lines are not migrated")
declare("migrate.log", "v3 to v4: the commit log is converted, the lines are not migrated")


def migrate(store: GraphParts) -> None:
    """Bring the graph to the current internal schema version. Does nothing, at the cost of one look, when it is."""
    stamp = store.manifest.stamp()
    refuse_newer(stamp)
    while stamp < CURRENT:
        STEPS[stamp](store)
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
    graph = LegacyGraph(store.objects, store.tables, store.schemas)
    store.schemas.put(graph.schema.source, graph.schema.catalog)
    # The ref of main comes last of the refs: with it, the ref objects become the authority on what exists.
    for ref in reversed(graph.branches()):
        store.refs.create(ref, graph_id=str(ULID()) if ref.name == MAIN else None)
    failpoint("migrate.refs")
    _convert_log(store, graph)
    failpoint("migrate.log")

    def change(line: TableVersion) -> StagedWrite:
        state = graph.read(line, tuple(store.tables.scan_table(line).to_pylist()), 3)
        rows = [*(table_row(pin) for pin in state.tables.values()), head_row(state.head)]
        return store.tables.stage_overwrite(line, to_table(rows), SCHEMA)

    _for_each_line(store, CURRENT, change)


STEPS: Mapping[int, Callable[[GraphParts], None]] = {1: _mark_primary_key, 2: _drop_runs, 3: _one_row_per_table}


def _for_each_line(store: GraphParts, target: int, change: Callable[[TableVersion], StagedWrite]) -> None:
    names = [fork.name for fork in store.tables.list_forks(MANIFEST) if not fork.name.startswith(RUN_PREFIX)]
    for name in [*names, None]:
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
    except OmniGraphError:
        # Another process deletes it too: what counts is that it is gone.
        if name in _run_branches(store):
            raise


def _convert_log(store: GraphParts, graph: LegacyGraph) -> None:
    """The log in today's columns, with the pins of every commit whose state can still be read."""
    for _ in range(_ATTEMPTS):
        try:
            head = store.tables.head(LOG)
        except TableNotFound:
            with contextlib.suppress(TableExists):
                store.tables.create(LOG, LOG_SCHEMA, rows=_log_rows(store, graph))
            continue
        if "pins" in store.tables.schema(head).names:
            return
        with contextlib.suppress(Conflict):
            store.tables.commit_staged(
                store.tables.stage_overwrite(head, _log_rows(store, graph), LOG_SCHEMA), _OPERATION
            )
    raise Conflict("other processes keep changing this graph's commit log while it is being migrated; open it again")


def _log_rows(store: GraphParts, graph: LegacyGraph) -> pa.Table:
    commits = {commit.graph_commit_id: commit for commit in graph.commits()}
    for ref in graph.branches():
        head = graph.head(ref.manifest_branch, store.tables.head(MANIFEST, ref.manifest_branch).version)
        commits.setdefault(head.graph_commit_id, head)
    rows, pins_of, depths = [], dict[str, Pins | None](), dict[str, int | None]()
    for commit in sorted(commits.values(), key=lambda commit: (commit.manifest_version, commit.created_at)):
        parent = commit.parent_commit_id or ""
        pins_of[commit.graph_commit_id] = _pins_at(store, graph, commit)
        entry = LogEntry(commit, pins_of[commit.graph_commit_id], pins_of.get(parent))
        row = row_of(entry, depths.get(parent))
        depths[commit.graph_commit_id] = row["pins_depth"]
        rows.append(row)
    return pa.Table.from_pylist(rows, schema=LOG_SCHEMA)


def _pins_at(store: GraphParts, graph: LegacyGraph, commit: GraphCommit) -> Pins | None:
    line = TableVersion(MANIFEST, commit.manifest_branch, commit.manifest_version)
    try:
        return graph.read(line, tuple(store.tables.scan_table(line).to_pylist()), 3).tables
    except TableNotFound:
        return None
