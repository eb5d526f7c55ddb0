"""Optimize: compact, build and extend indexes, and publish all tables that changed in one commit. Changes no data.

The heavy part runs outside the commit window. A table that a writer moved meanwhile is left out and reported; nothing
to do means no commit. A branch works on the tables it owns: those it inherits are the business of their owner. Only a
table that needs a compaction and has many rows that no index covers gets its indexes in a second commit, so that no
writer waits for an index build.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from omnigraph.config import settings
from omnigraph.diagnostics import did_you_mean
from omnigraph.errors import Busy, NotFound
from omnigraph.failpoints import declare, failpoint
from omnigraph.ledger.branches.schema_lock import refuse_while_schema_is_applied
from omnigraph.ledger.commit.attempts import WRITER_LEASE_PREFIX, RetryPolicy, WriteSession, run_write
from omnigraph.ledger.commit.intents import TableWrite, WriteIntent
from omnigraph.ledger.commit.queue import Footprint
from omnigraph.ledger.values import MAIN, GraphCommit, Snapshot, TablePin, WriterKind
from omnigraph.maintain.optimize.bookkeeping import compact_internal
from omnigraph.maintain.optimize.declared_indexes import DeclaredIndex, declared_indexes
from omnigraph.maintain.optimize.harmless_drift import DRIFT_NEEDS_REPAIR, settle_drift
from omnigraph.maintain.optimize.table_layout import (
    TableLayout,
    commit_indexes_in_window,
    needs_work,
    pinned,
    prepare,
    prepare_in_window,
    stage_missing_indexes,
)
from omnigraph.maintain.optimize.workers import Workers, local_workers
from omnigraph.maintain.recovered import refuse_pending_recovery
from omnigraph.schema.catalog import GraphType
from omnigraph.schema.types import Scalar, ScalarType
from omnigraph.storage.layout.compaction import LANCE_COMPACTS_BLOBS, CompactionOptions
from omnigraph.write.progress import ProgressCallback, ProgressReporter

if TYPE_CHECKING:
    from omnigraph.ledger.store import GraphStore

MOVED_BY_WRITER = "MovedByWriter"
BLOBS_UNSUPPORTED = "BlobColumnsUnsupportedByLance"

_logger = logging.getLogger("omnigraph.maintain")

declare("optimize.prepared", "Tables are compacted and segments are built; nothing is committed")


@dataclass(frozen=True, slots=True)
class TableReport:
    """What maintenance did to one table. `skipped` says why nothing was done where something should have been."""

    table_key: str
    fragments_removed: int
    fragments_added: int
    indexes_built: tuple[str, ...]
    pending_indexes: tuple[str, ...]
    committed: bool
    skipped: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data."""
        return {
            "table_key": self.table_key,
            "fragments_removed": self.fragments_removed,
            "fragments_added": self.fragments_added,
            "indexes_built": list(self.indexes_built),
            "pending_indexes": list(self.pending_indexes),
            "committed": self.committed,
            "skipped": self.skipped,
        }


@dataclass(frozen=True, slots=True)
class MaintenanceResult:
    """What an optimize or an index build did. `commit` is the last one that it made, None when there was none."""

    branch: str
    tables: tuple[TableReport, ...]
    commit: GraphCommit | None
    engine: str

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data, the same on the command line and over HTTP."""
        return {
            "branch": self.branch,
            "tables": [table.to_json() for table in self.tables],
            "commit": self.commit.to_json() if self.commit else None,
            "engine": self.engine,
        }


def optimize(
    store: GraphStore,
    branch: str = MAIN,
    *,
    tables: Collection[str] | None = None,
    actor: str | None = None,
    workers: Workers | None = None,
    options: CompactionOptions | None = None,
    progress: ProgressCallback | None = None,
) -> MaintenanceResult:
    """Compact and index the tables of a branch (or only `tables`), in one commit."""
    refuse_pending_recovery(store, "optimize")
    refuse_while_schema_is_applied(store, "optimize")
    _refuse_unknown(store, branch, tables or ())
    chosen = workers or local_workers()
    run = _Run(store, branch, actor, chosen, options, tables, True, WriterKind.OPTIMIZE, progress)
    with chosen.guarded():
        return run.result()


def compact_table(
    store: GraphStore,
    branch: str,
    table_key: str,
    options: CompactionOptions,
    actor: str,
    *,
    wanted: Callable[[TablePin], bool],
) -> bool:
    """Compact little of one table that is being written to; False when a writer came first.

    Writers wait for two commits, one after the other: the rows are rewritten, and the segments of indexes built,
    before. `wanted` is asked again when its turn has come: another process may have compacted the table meanwhile. True
    also when one is about to: all that write to a table notice a long tail at the same time.
    """
    incarnation = store.branch(branch).incarnation
    # As the lease of a writer it also keeps cleanup away from the files that are made outside the window.
    name = f"{WRITER_LEASE_PREFIX}compacts-{incarnation}-{table_key}"
    try:
        lease = store.leases.acquire(name, f"tail compaction on branch `{branch}`", wait=0.0)
    except Busy:
        return True
    with lease:
        pin = store.snapshot(branch=branch).tables.get(table_key)
        if pin is None or pin.owner != incarnation or not wanted(pin):
            return True
        return _compact_table(store, branch, pin, options, actor, wanted)


def _compact_table(
    store: GraphStore,
    branch: str,
    seen: TablePin,
    options: CompactionOptions,
    actor: str,
    wanted: Callable[[TablePin], bool],
) -> bool:
    table_key = seen.table_key
    layout = TableLayout(table_key)
    left_out: list[str] = []
    ahead = store.tables.stage_compaction(pinned(seen), options, spare_first=True)

    def prepare_one(base: Snapshot, session: WriteSession) -> WriteIntent | None:
        pin = base.tables.get(table_key)
        if pin is None or pin.owner != session.branch.incarnation or not wanted(pin):
            return None
        write = prepare_in_window(store, pin, ahead, layout, options)
        intent = session.intent(WriterKind.OPTIMIZE, base, [write], changes_data=False)
        return replace(intent, on_left_out=left_out.append)

    footprint = Footprint(frozenset({table_key}))
    try:
        commit = run_write(store, branch, prepare_one, actor=actor, operation="optimize", footprint=footprint)
    finally:
        if ahead is not None and layout.staged is not ahead:
            store.tables.abandon(ahead)
    if commit is not None:
        _index_table(store, branch, table_key, actor)
    return not left_out


def _index_table(store: GraphStore, branch: str, table_key: str, actor: str) -> None:
    """Cover what a compaction brought together. If a writer is in the way it is left to the next one."""
    base = store.snapshot(branch=branch)
    pin, type_ = base.tables.get(table_key), store.catalog(base.schema_digest).table(table_key)
    staged = None
    if pin is not None and type_ is not None:
        staged = stage_missing_indexes(store, pinned(pin), declared_indexes(type_))
    if staged is None:
        return
    left_out: list[str] = []

    def prepare_one(base: Snapshot, session: WriteSession) -> WriteIntent | None:
        pin = base.tables.get(table_key)
        if pin is None or pin.owner != session.branch.incarnation:
            return None
        write = commit_indexes_in_window(store, pin, staged)
        if write is None:
            return None
        intent = session.intent(WriterKind.OPTIMIZE, base, [write], changes_data=False)
        return replace(intent, on_left_out=left_out.append)

    footprint = Footprint(frozenset({table_key}))
    commit = run_write(store, branch, prepare_one, actor=actor, operation="optimize", footprint=footprint)
    if commit is None:
        store.tables.abandon(staged)


def _refuse_unknown(store: GraphStore, branch: str, tables: Collection[str]) -> None:
    """A misspelt table is an error: doing nothing would look like success."""
    known = store.snapshot(branch=branch).tables
    for key in tables:
        if key not in known:
            hint = did_you_mean(key, known)
            raise NotFound(
                f"optimize: branch `{branch}` has no table `{key}`{f'; {hint}' if hint else ''}", table_key=key
            )


def ensure_indices(
    store: GraphStore,
    branch: str = MAIN,
    *,
    actor: str | None = None,
    workers: Workers | None = None,
    progress: ProgressCallback | None = None,
) -> MaintenanceResult:
    """Build the declared indexes that are missing and extend those that no longer cover everything, in one commit."""
    kind = WriterKind.ENSURE_INDICES
    return _Run(store, branch, actor, workers or local_workers(), None, None, False, kind, progress).result()


class _Run:
    """One run over the tables of a branch: prepare, commit, and once more for indexes that were left."""

    def __init__(
        self,
        store: GraphStore,
        branch: str,
        actor: str | None,
        workers: Workers,
        options: CompactionOptions | None,
        only: Collection[str] | None,
        compact: bool,
        kind: WriterKind,
        progress: ProgressCallback | None,
    ) -> None:
        self._store = store
        self._branch = branch
        self._actor = actor
        self._workers = workers
        self._options = options
        self._only = frozenset(only) if only is not None else None
        self._compact = compact
        self._kind = kind
        self._progress = ProgressReporter(kind.value.lower(), progress)
        self._reports: dict[str, TableLayout] = {}
        self._suspicious: frozenset[str] = frozenset()

    def result(self) -> MaintenanceResult:
        settled: GraphCommit | None = None
        published: frozenset[str] = frozenset()
        if self._compact:
            branch = self._store.branch(self._branch, self._kind.value.lower())
            settled, published, self._suspicious = settle_drift(self._store, branch, self._only)
        commit = self._round(self._kind, self._compact) or settled
        left = [key for key, report in self._reports.items() if report.indexes_left]
        if left:
            self._only = frozenset(left)
            commit = self._round(WriterKind.ENSURE_INDICES, compact=False) or commit
        for key in published & self._reports.keys():
            self._reports[key].committed = True
        if self._compact and self._only is None:
            for one in compact_internal(self._store, self._store.branch(self._branch)):
                compacted = TableLayout(one.location, one.fragments_removed, one.fragments_added, committed=True)
                self._reports[one.location] = compacted
        self._progress.tell("done", finished=True)
        reports = tuple(_report(self._reports[key]) for key in sorted(self._reports))
        return MaintenanceResult(self._branch, reports, commit, self._workers.engine)

    def _round(self, kind: WriterKind, compact: bool) -> GraphCommit | None:
        left_out: set[str] = set()

        def prepare_all(base: Snapshot, session: WriteSession) -> WriteIntent | None:
            left_out.clear()
            writes = self._prepare(base, session, compact)
            if not writes:
                return None
            failpoint("optimize.prepared")
            intent = session.intent(kind, base, writes, changes_data=False)
            return replace(intent, on_left_out=left_out.add)

        commit = run_write(
            self._store,
            self._branch,
            prepare_all,
            actor=self._actor,
            retry=RetryPolicy.SURFACE,
            operation=kind.value.lower(),
        )
        for key in left_out:
            self._leave_out(key)
        if commit is not None:
            for report in self._reports.values():
                report.committed = report.committed or bool(report.fragments_removed or report.indexes_built)
        return commit

    def _leave_out(self, key: str) -> None:
        """A writer was faster on this table: report it, and clear away what was prepared for it."""
        staged = self._reports[key].staged
        if staged is not None:
            self._store.tables.abandon(staged)
        self._reports[key] = TableLayout(key, skipped=MOVED_BY_WRITER)

    def _prepare(self, base: Snapshot, session: WriteSession, compact: bool) -> list[TableWrite]:
        catalog = self._store.catalog(base.schema_digest)
        wanted: list[tuple[str, tuple[DeclaredIndex, ...]]] = []
        for type_ in catalog.types():
            key = type_.table_key
            owned = base.pin(key).owner == session.branch.incarnation
            if not owned or (self._only is not None and key not in self._only):
                continue
            declared = declared_indexes(type_)
            self._reports[key] = TableLayout(key, skipped=self._reason_to_skip(type_))
            if self._reports[key].skipped:
                _logger.warning("%s on branch `%s` is skipped: %s", key, self._branch, self._reports[key].skipped)
                continue
            if needs_work(self._store, base.pin(key), declared, self._options_for(base.pin(key)), compact):
                wanted.append((key, declared))

        def one(entry: tuple[str, tuple[DeclaredIndex, ...]]) -> TableWrite | None:
            key, declared = entry
            self._progress.tell(f"{key}")
            return prepare(
                self._store,
                session,
                base.pin(key),
                declared,
                self._reports[key],
                self._workers,
                self._options_for(base.pin(key)),
                compact,
            )

        return [write for write in _in_parallel(one, wanted) if write is not None]

    def _options_for(self, pin: TablePin) -> CompactionOptions:
        return self._options or self._workers.options_for(pin.row_count)

    def _reason_to_skip(self, type_: GraphType) -> str | None:
        if type_.table_key in self._suspicious:
            return DRIFT_NEEDS_REPAIR
        has_blobs = any(property_.type == ScalarType(Scalar.BLOB) for property_ in type_.properties)
        return BLOBS_UNSUPPORTED if has_blobs and not LANCE_COMPACTS_BLOBS else None


def _in_parallel(
    work: Callable[[tuple[str, tuple[DeclaredIndex, ...]]], TableWrite | None],
    entries: list[tuple[str, tuple[DeclaredIndex, ...]]],
) -> Iterable[TableWrite | None]:
    if len(entries) < 2:
        return [work(entry) for entry in entries]
    with ThreadPoolExecutor(min(settings().maintenance_concurrency, len(entries)), "omnigraph-maintain") as pool:
        return list(pool.map(work, entries))


def _report(layout: TableLayout) -> TableReport:
    return replace(
        TableReport(layout.table_key, 0, 0, (), (), layout.committed, layout.skipped),
        fragments_removed=layout.fragments_removed,
        fragments_added=layout.fragments_added,
        indexes_built=tuple(layout.indexes_built),
        pending_indexes=tuple(layout.pending_indexes),
    )
