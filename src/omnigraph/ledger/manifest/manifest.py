"""Reading `__manifest`: what a branch publishes at one of its versions.

A version never changes, so states are cached by (line, version) and shared by threads. Reading the newest state of a
line costs one look at the line and, when it moved, one scan of as many rows as there are tables, whatever the length
of the history. Where an earlier state is known only what was published since is scanned, or not even that when who
published it has told.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from omnigraph.config import settings
from omnigraph.errors import StorageError, StorageKind
from omnigraph.ledger.manifest import manifest_rows as rows_of
from omnigraph.ledger.manifest.arrivals import Arrivals
from omnigraph.ledger.manifest.manifest_rows import MANIFEST, Row
from omnigraph.ledger.manifest.stamp import CURRENT, read_stamp, refuse_newer
from omnigraph.ledger.manifest.told_publishes import ToldPublishes
from omnigraph.ledger.values import BranchRef, GraphCommit, StreamBatch, TablePin
from omnigraph.storage.lance_errors import TableNotFound
from omnigraph.storage.tables import TableStore
from omnigraph.storage.told_files import ToldFiles
from omnigraph.storage.values import TableVersion

_NEWEST_ROWS = 65_536
"""Rows of the newest states of lines that are kept: the heads of a thousand branches of a small graph stay known."""

_OLDER_ROWS = 4_096
"""Rows of older states that are kept whatever their number: those of the last few seconds, until they are logged. What
is kept of a small graph beyond that adds up to gigabytes over the commits of a day."""


@dataclass(frozen=True, slots=True)
class ManifestState:
    """What one version of one line of the manifest says."""

    table: TableVersion
    stamp: int
    head: GraphCommit
    tables: Mapping[str, TablePin]
    rows: tuple[Row, ...]

    @property
    def version(self) -> int:
        """The version of the manifest."""
        return self.table.version

    @property
    def schema_digest(self) -> str:
        """The schema that this state was published with."""
        return self.head.schema_digest

    @property
    def batches(self) -> tuple[StreamBatch, ...]:
        """The last batch of each stream that loads into the branch."""
        return tuple(StreamBatch(stream, batch) for stream, batch in rows_of.streams_of(self.rows).items())

    def last_batch(self, stream: str) -> int | None:
        """The last batch of a stream that the branch has."""
        return rows_of.streams_of(self.rows).get(stream)

    def has_batch(self, batch: StreamBatch) -> bool:
        """Whether the branch has this batch of a stream, or a later one, which comes only after it."""
        last = self.last_batch(batch.stream)
        return last is not None and last >= batch.batch


class OldLayout(TableNotFound):
    """A version from before the graph was migrated: its state is told by the pins in the commit log."""


LegacyReader = Callable[[TableVersion, tuple[Row, ...], int], ManifestState]


class Manifest:
    """The manifest of one graph. `legacy` reads lines whose stamp is older than ours, as they are."""

    def __init__(self, tables: TableStore, legacy: LegacyReader | None = None) -> None:
        self._tables = tables
        self._legacy = legacy
        self._states: OrderedDict[TableVersion, ManifestState] = OrderedDict()
        self._last: OrderedDict[str | None, ManifestState] = OrderedDict()
        self._rows = self._newest_rows = 0
        self._told = ToldPublishes(ToldFiles(tables.root))
        self.arrivals = Arrivals()
        self._lock = threading.Lock()

    def read(self, branch: BranchRef, version: int | None = None) -> ManifestState:
        """The state of a branch, the newest by default. `TableNotFound` when that version is gone."""
        return self.read_line(branch.manifest_branch, version)

    def read_line(self, lance_branch: str | None, version: int | None = None) -> ManifestState:
        """The state of one line, the newest by default."""
        if version is None:
            return self.at(self._tables.head(MANIFEST, lance_branch))
        return self.at(TableVersion(MANIFEST, lance_branch, version))

    def at(self, table: TableVersion) -> ManifestState:
        """The state at exactly this version."""
        found = self._known(table)
        if found is None:
            self.arrivals.wait(table)
            found = self._known(table)
        return found if found is not None else self.remember(self._load(table))

    def _known(self, table: TableVersion) -> ManifestState | None:
        with self._lock:
            found = self._states.get(table)
            if found is not None:
                self._states.move_to_end(table)
                return found
            newest = self._last.get(table.branch)
            if newest is not None and newest.table == table:
                self._last.move_to_end(table.branch)
                return newest
        return None

    def last_known(self, branch: BranchRef) -> ManifestState | None:
        """The newest state of a branch that was ever seen here, without a look at it."""
        with self._lock:
            return self._last.get(branch.manifest_branch)

    def kept(self) -> int:
        """How many states are held."""
        with self._lock:
            return len(self._states.keys() | {state.table for state in self._last.values()})

    def stamp(self, lance_branch: str | None = None) -> int:
        """The internal schema stamp of a line as it is now."""
        return read_stamp(self._tables.schema(self._tables.head(MANIFEST, lance_branch)))

    def remember(self, state: ManifestState) -> ManifestState:
        """Keep a state that is known without reading it, such as the one that was just published."""
        with self._lock:
            if state.stamp == CURRENT:
                before = self._last.pop(state.table.branch, None)
                self._newest_rows += len(state.rows) - (len(before.rows) if before else 0)
                self._last[state.table.branch] = state
                while self._newest_rows > _NEWEST_ROWS and len(self._last) > 1:
                    self._newest_rows -= len(self._last.popitem(last=False)[1].rows)
            before = self._states.pop(state.table, None)
            self._rows += len(state.rows) - (len(before.rows) if before else 0)
            self._states[state.table] = state
            while len(self._states) > max(1, settings().manifest_cache) and self._rows > _OLDER_ROWS:
                self._rows -= len(self._states.popitem(last=False)[1].rows)
        return state

    def tell(self, before: ManifestState, after: ManifestState, files: Iterable[str]) -> None:
        """Tell other processes of a publish, which brought these files."""
        known = {row[rows_of.KEY_COLUMN]: row for row in before.rows}
        changed = [row for row in after.rows if known.get(row[rows_of.KEY_COLUMN]) != row]
        self._told.tell(before.table, after.table, changed, self._tables.ids_in(files))

    def forget(self) -> None:
        """Drop every cached state, after old versions were removed."""
        with self._lock:
            self._states.clear()
            self._last.clear()
            self._rows = self._newest_rows = 0

    def _load(self, table: TableVersion) -> ManifestState:
        stamp = read_stamp(self._tables.schema(table))
        refuse_newer(stamp)
        if stamp == CURRENT:
            known = self._last.get(table.branch)
            return self._told_since(known, table) or state_of(
                table, self._rows_since(known, table) or self._scan(table)
            )
        rows = self._scan(table)
        if self._legacy is None:
            raise OldLayout(
                f"{table} has the layout of an older program; its commits are in the log", StorageKind.NOT_FOUND
            )
        return self._legacy(table, rows, stamp)

    def _told_since(self, known: ManifestState | None, table: TableVersion) -> ManifestState | None:
        """The state of a version from an earlier one and what others have told of the publishes since."""
        told = self._told.since(known.table, table) if known is not None else None
        if known is None or told is None:
            return None
        state = known
        rows = {row[rows_of.KEY_COLUMN]: row for row in known.rows}
        for publish in told:
            rows |= {row[rows_of.KEY_COLUMN]: row for row in publish.rows}
            self._tables.note_ids(publish.ids)
            # Those between are kept too: their commits have to be logged.
            state = self.remember(state_of(table.at(publish.version), tuple(rows.values())))
        return state

    def _rows_since(self, known: ManifestState | None, table: TableVersion) -> tuple[Row, ...] | None:
        """The rows of a version from those of another one of its line; None when they do not tell.

        A publish writes what it changes into a new fragment, and the number of a fragment is not used again. So a row
        is in a fragment that the known version does not have, or it is a known one, unless that was deleted without a
        successor: then there are more rows here than the version counts.
        """
        if known is None:
            return None
        fragments = self._tables.fragments(table)
        there = {fragment.id for fragment in fragments}
        rows = {row[rows_of.KEY_COLUMN]: row for row in known.rows if _fragment(row) in there}
        fresh = sorted(there - {_fragment(row) for row in known.rows})
        for row in self._scan(table, fresh) if fresh else ():
            rows[row[rows_of.KEY_COLUMN]] = row
        return tuple(rows.values()) if len(rows) == sum(fragment.rows for fragment in fragments) else None

    def _scan(self, table: TableVersion, fragments: Sequence[int] | None = None) -> tuple[Row, ...]:
        found = self._tables.scan_table(table, fragments=fragments, with_row_id=True, with_row_address=True)
        return tuple(found.to_pylist())


def _fragment(row: Row) -> int:
    """The fragment that a row was read from."""
    return int(row["_rowaddr"]) >> 32


def state_of(table: TableVersion, rows: tuple[Row, ...]) -> ManifestState:
    """The state that a line's current rows describe."""
    try:
        return ManifestState(table, CURRENT, rows_of.head_of(rows, table), rows_of.pins_of(rows), rows)
    except (ValueError, TypeError, KeyError, AttributeError) as cause:
        raise StorageError(
            f"{table} is damaged: its rows cannot be understood ({type(cause).__name__}). Put it back from a copy; "
            "other branches and older commits can be read, and `omnigraph salvage` takes out what can be",
            StorageKind.PERMANENT,
            path=table.location,
        ) from cause
