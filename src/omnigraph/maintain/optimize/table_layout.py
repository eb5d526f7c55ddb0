"""Work on the layout of one table: compaction and indexes, prepared outside the commit window, committed inside.

Compaction keeps the coverage of indexes that covered what it rewrote, so only fragments that no index covered before
are missing afterwards. When those hold few rows their segments are built right after the compaction, inside the window;
when they hold many, they are left to a second round, so that writers never wait for an index build.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from omnigraph.ledger.commit.attempts import WriteSession
from omnigraph.ledger.commit.intents import TableCommits, TableWrite
from omnigraph.ledger.history.recorded_files import recorded_files
from omnigraph.ledger.values import TablePin
from omnigraph.maintain.optimize.declared_indexes import DeclaredIndex
from omnigraph.maintain.optimize.workers import Workers
from omnigraph.storage.layout.compaction import CompactionOptions, StagedCompaction, staged_compaction
from omnigraph.storage.layout.indexes import index_name
from omnigraph.storage.values import StagedWrite, TableVersion

if TYPE_CHECKING:
    from omnigraph.ledger.store import GraphStore

ROWS_INDEXED_IN_THE_WINDOW = 100_000
"""Uncovered rows up to which an index is extended while writers wait: a few tenths of a second."""


@dataclass
class TableLayout:
    """What happened to one table; filled in while the work goes on."""

    table_key: str
    fragments_removed: int = 0
    fragments_added: int = 0
    indexes_built: list[str] = field(default_factory=list)
    pending_indexes: list[str] = field(default_factory=list)
    committed: bool = False
    skipped: str | None = None
    indexes_left: bool = False
    staged: StagedCompaction | None = None


def pinned(pin: TablePin) -> TableVersion:
    """The table version that a pin names."""
    return TableVersion(pin.location, pin.lance_branch, pin.version)


def needs_work(
    store: GraphStore,
    pin: TablePin,
    declared: tuple[DeclaredIndex, ...],
    options: CompactionOptions | None,
    compact: bool,
) -> bool:
    """Whether anything is to be done; reads metadata only. A table without rows needs nothing."""
    if not pin.row_count:
        return False
    if compact and store.tables.plan_compaction(pinned(pin), options):
        return True
    if any(_missing(store, pinned(pin), index) for index in declared):
        return True
    return not compact and bool(_damaged(store, pinned(pin), declared))


def prepare(
    store: GraphStore,
    session: WriteSession,
    pin: TablePin,
    declared: tuple[DeclaredIndex, ...],
    report: TableLayout,
    workers: Workers,
    options: CompactionOptions | None,
    compact: bool,
) -> TableWrite | None:
    """Do the heavy part and return what is left to commit; None when there is nothing to do."""
    line = session.line(pin)
    compaction = None
    if compact:
        work = store.tables.plan_compaction(line, options)
        compaction = staged_compaction(line, workers.compact(work)) if work else None
    if compaction is not None:
        report.fragments_removed, report.fragments_added = compaction.fragments_removed, compaction.fragments_added
        report.staged = compaction

        def compacted(commits: TableCommits) -> None:
            commits.untagged(lambda _: store.tables.commit_compaction(compaction))
            _drop_lost_indexes(store, commits)
            _extend(store, commits, declared, report)

        return _write(pin, line, compacted)
    # Whoever asks for indexes alone gets whole ones; to read all of them is too much for each compaction.
    damaged = [] if compact else _damaged(store, line, declared)
    missing = [index for index in declared if index in damaged or _missing(store, line, index)]
    if not missing:
        report.pending_indexes = _pending(store, line, declared)
        return None

    # Built now: committing the segments is all that is left for the window.
    built = {
        index: workers.index(
            store.tables.plan_index(
                line, index.column, index.kind, workers.parts, index.settings, anew=index in damaged
            )
        )
        for index in missing
    }

    def commit(commits: TableCommits) -> None:
        for index, segments in built.items():
            commits.commit(store.tables.stage_index_segments(commits.line, index.column, index.kind, segments))
            report.indexes_built.append(_name(index))
        report.pending_indexes = _pending(store, commits.line, declared)

    return _write(pin, line, commit)


def prepare_in_window(
    store: GraphStore,
    pin: TablePin,
    ahead: StagedCompaction | None,
    report: TableLayout,
    options: CompactionOptions,
) -> TableWrite:
    """For little work on a table that is being written to: no writer is faster. `ahead` was compacted outside; what no
    longer fits the table is done again in the window."""

    def apply(commits: TableCommits) -> None:
        fitting = store.tables.stage_compaction_again(ahead, commits.line) if ahead is not None else None
        staged = fitting or store.tables.stage_compaction(commits.line, options)
        if staged is None:
            return
        report.fragments_removed, report.fragments_added = staged.fragments_removed, staged.fragments_added
        report.staged = ahead if fitting is not None else staged
        commits.untagged(lambda _: store.tables.commit_compaction(staged), strict=True)
        _drop_lost_indexes(store, commits)

    return _write(pin, pinned(pin), apply)


def stage_missing_indexes(
    store: GraphStore, table: TableVersion, declared: tuple[DeclaredIndex, ...]
) -> StagedWrite | None:
    """Segments for what no index of a table covers, if that is little."""
    missing = [index for index in declared if _missing(store, table, index)]
    if not missing or _uncovered_rows(store, table, missing) > ROWS_INDEXED_IN_THE_WINDOW:
        return None
    return store.tables.stage_indexes(table, [(one.column, one.kind, one.settings) for one in missing])


def commit_indexes_in_window(store: GraphStore, pin: TablePin, staged: StagedWrite) -> TableWrite | None:
    """Segments that were built outside, for the table as it is now; None when they do not fit it any more."""
    again = store.tables.stage_indexes_again(pinned(pin), staged)
    if again is None:
        return None
    return _write(pin, pinned(pin), lambda commits: _commit_indexes(commits, again))


def _commit_indexes(commits: TableCommits, staged: StagedWrite) -> None:
    commits.commit(staged)


def _write(pin: TablePin, line: TableVersion, apply: Callable[[TableCommits], None]) -> TableWrite:
    return TableWrite(pin.table_key, pin.type_id, pin.location, pin, line, pin.row_count, apply=apply)


def _drop_lost_indexes(store: GraphStore, commits: TableCommits) -> None:
    """On a fork a compaction can leave indexes whose files are not found: without them look-ups scan, and work."""
    if commits.line.branch is None:
        return
    for name in store.tables.lost_indexes(commits.line):
        staged = store.tables.stage_drop_index(commits.line, name)
        if staged is not None:
            commits.commit(staged)


def _extend(store: GraphStore, commits: TableCommits, declared: tuple[DeclaredIndex, ...], report: TableLayout) -> None:
    """After a compaction: cover what no index covered, if that is little."""
    missing = [index for index in declared if _missing(store, commits.line, index)]
    if missing and _uncovered_rows(store, commits.line, missing) > ROWS_INDEXED_IN_THE_WINDOW:
        report.indexes_left = True
        return
    # In one commit: each takes as long as a small write, and writers wait.
    staged = store.tables.stage_indexes(commits.line, [(one.column, one.kind, one.settings) for one in missing])
    if staged is not None:
        commits.commit(staged)
        report.indexes_built += [_name(index) for index in missing]
    report.pending_indexes = _pending(store, commits.line, declared)


def _missing(store: GraphStore, table: TableVersion, index: DeclaredIndex) -> bool:
    state = store.tables.index_state(table, index.column, index.kind, index.settings)
    return not state.is_complete and state.trainable


def _damaged(store: GraphStore, table: TableVersion, declared: tuple[DeclaredIndex, ...]) -> list[DeclaredIndex]:
    """Indexes that are there and cannot be read, or are not what was published."""
    names = store.tables.damaged_indexes(table, recorded_files(store))
    return [index for index in declared if index_name(index.column, index.kind) in names]


def _pending(store: GraphStore, table: TableVersion, declared: tuple[DeclaredIndex, ...]) -> list[str]:
    """Indexes that cannot be built yet: vectors that are too few to train on."""
    return [
        _name(index)
        for index in declared
        if not store.tables.index_state(table, index.column, index.kind, index.settings).is_complete
    ]


def _name(index: DeclaredIndex) -> str:
    return f"{index.column} ({index.kind.name.lower()})"


def _uncovered_rows(store: GraphStore, table: TableVersion, missing: list[DeclaredIndex]) -> int:
    rows = {fragment.id: fragment.rows for fragment in store.tables.fragments(table)}
    return max(
        sum(
            rows[f]
            for f in store.tables.index_state(table, index.column, index.kind, index.settings).uncovered_fragments
        )
        for index in missing
    )
