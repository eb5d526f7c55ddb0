"""The commit log: one row per commit of any branch, so that history is quick to read.

The log is derived: the commit in a branch's `graph_head` row is the truth, and whatever a crash kept out of the log is
put in by the next open or write (`completion`). Rows are appended parents first and never change. All branches share
the log, so appends race: each is a strict commit, and the loser reads the tail again.

It stays small: the last fragment is rewritten until it has a few hundred rows, and old versions are removed on the way.
It is loaded at most once per process, and then only what is new.
"""

from __future__ import annotations

import logging
import random
import threading
import time
import zlib
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.config import settings
from omnigraph.errors import Conflict, StorageError
from omnigraph.failpoints import declare, failpoint
from omnigraph.ledger.history.dag import CommitGraph
from omnigraph.ledger.history.dag import log as ordered_log
from omnigraph.ledger.history.log_rows import (
    COMMIT_COLUMNS,
    ID,
    LOG,
    SCHEMA,
    LogDamaged,
    LogEntry,
    LoggedCommits,
    in_todays_columns,
    log_damaged,
    row_of,
)
from omnigraph.ledger.manifest.pins import Pins, decode_files, decode_pins
from omnigraph.ledger.values import GraphCommit
from omnigraph.storage.lance_errors import TableNotFound
from omnigraph.storage.objects.object_errors import is_passing
from omnigraph.storage.reading.filters import is_in
from omnigraph.storage.staging.written_rows import WrittenRows
from omnigraph.storage.tables import TableStore
from omnigraph.storage.values import StagedWrite, TableVersion

KEPT_LOG_VERSIONS = 8
"""Versions of the log that a prune leaves, for those who are reading one right now."""

LARGEST_TAIL_BYTES = 256 << 10
"""The last fragment is rewritten by each append, so it must not grow large; combined commits have long rows."""

_PINS_CACHE = 256
_RECENT_PINS = 1024
_logger = logging.getLogger("omnigraph.ledger")

NOT_AHEAD = 32
"""After others have appended, so many files are not written ahead: they are likely to append again."""

declare("log.append.before", "A publish has landed and its commit is not in the commit log yet")
declare("log.append.after", "The commit is in the commit log; old versions of the log are not pruned yet")


class ParentNotLogged(Exception):
    """A commit came before its parent: the log has to be completed first."""


@dataclass(frozen=True, slots=True)
class _Tail:
    """The last fragment of one version of the log: where it is and what it holds. `fragment` None starts a new one."""

    head: TableVersion
    fragment: int | None
    rows: pa.Table
    depths: dict[str, int | None]


@contextmanager
def _log_errors() -> Iterator[None]:
    """Tell damage of the log from a store that is in trouble for a while, and say what to do about it."""
    try:
        yield
    except LogDamaged:
        raise
    except (StorageError, zlib.error, ValueError, KeyError, TypeError, IndexError) as error:
        if isinstance(error, StorageError) and is_passing(error):
            raise
        raise log_damaged(error) from error


class CommitLog:
    """The log of one graph. Safe to share between threads."""

    def __init__(self, tables: TableStore) -> None:
        self._tables = tables
        self.before_use: Callable[[], None] = lambda: None
        """Called before the log is read or written: puts commits in that wait to be logged."""
        self._reading = threading.RLock()
        self._appending = threading.RLock()
        self.forget()

    def forget(self) -> None:
        """Read everything anew: the log is another one."""
        with self._appending, self._reading:
            self._graph = CommitGraph()
            self._depths: dict[str, int | None] = {}
            self._unlogged_pins: dict[str, Pins] = {}
            self._pins: OrderedDict[str, Pins] = OrderedDict()
            self._loaded: TableVersion | None = None
            self._loaded_rows = 0
            self._last_id: str | None = None
            self._tail: _Tail | None = None
            self._ahead: WrittenRows | None = None
            self._not_ahead = 0

    def check(self, *, deep: bool = False) -> None:
        """`LogDamaged` when the log, or unless `deep` its tail, cannot be read."""
        self.before_use()
        with _log_errors():
            head = self._tables.head(LOG)
            self._read_tail(head)
            if deep:
                self._tables.scan_table(head)

    def create(self, entry: LogEntry) -> None:
        """Make the log of a new graph, with its first commit."""
        self._tables.create(LOG, SCHEMA, rows=pa.Table.from_pylist([row_of(entry, None)], schema=SCHEMA))

    def append(self, entries: Sequence[LogEntry], *, after_gap: bool = False) -> None:
        """Put commits into the log, parents first. Those that are there already are left alone.

        A commit whose first parent is neither in the log nor earlier in `entries` raises `ParentNotLogged`: somebody
        died before logging it, and `completion` walks back to it. `after_gap` says that it is nowhere to be found.
        """
        if not entries:
            return
        self.before_use()
        failpoint("log.append.before")
        with self._appending:
            landed = self._append_with_retries(entries, after_gap)
        failpoint("log.append.after")
        if landed is not None and landed.version % max(1, settings().commit_log_prune_every) == 0:
            self.prune(landed)

    def write_ahead(self, entry: LogEntry) -> None:
        """Write the file with which a commit will be appended, while it is being published.

        The file is good if nobody appends anything before: the tail is rewritten. Where somebody did, the next few are
        not tried.
        """
        if not self._appending.acquire(blocking=False):
            return
        try:
            tail = self._tail
            if tail is None or entry.commit.parent_commit_id not in tail.depths:
                return
            if self._not_ahead:
                self._not_ahead -= 1
                return
            written = WrittenRows()
            grown, _ = self._grown(tail, [entry])
            written.keep(self._stage(tail, grown, written))
            self._ahead = written
        except (Conflict, StorageError) as error:
            _logger.info("the file of a commit's row in the log was not written ahead: %s", error)
        finally:
            self._appending.release()

    def knows(self, commit_ids: Sequence[str]) -> set[str]:
        """Which of these are in the log. Looks into what is loaded, then the tail, and into the rest only at need."""
        self.before_use()
        found = {one for one in commit_ids if one in self._depths}
        if len(found) == len(set(commit_ids)):
            return found
        return found | self._present(self._read_tail(self._tables.head(LOG)), set(commit_ids) - found)

    def logged_last(self) -> Collection[str]:
        """The commits that were logged last, as of now."""
        return self._read_tail(self._tables.head(LOG)).depths

    def is_loaded(self, commit_id: str) -> bool:
        """Whether a commit is in the log, as far as that is known without a look."""
        return commit_id in self._depths

    def newest_of(self, incarnation: str) -> str | None:
        """The last commit of a branch that the log has, or None. Looks into the tail first, which mostly has it."""
        self.before_use()
        with _log_errors():
            tail = self._read_tail(self._tables.head(LOG))
            own = pc.indices_nonzero(pc.equal(tail.rows["incarnation"], incarnation))
            if len(own):
                return str(tail.rows[ID][own[-1].as_py()])
            if tail.rows.num_rows == self._tables.count(tail.head):
                return None
            rest = self._tables.scan_table(tail.head, columns=[ID], filter=is_in("incarnation", [incarnation]))
            return str(rest[ID][-1]) if rest.num_rows else None

    def get(self, commit_id: str) -> GraphCommit | None:
        """The commit of that id, or None."""
        return self._graph.get(commit_id) or self.graph().get(commit_id)

    def graph(self) -> CommitGraph:
        """The whole DAG as of now: loaded once, then extended by what is new."""
        self.before_use()
        return self._graph_now()

    def _graph_now(self) -> CommitGraph:
        with self._reading, _log_errors():
            for attempt in range(settings().commit_log_retry_budget + 1):
                try:
                    self._load_new(self._tables.head(LOG))
                    break
                except TableNotFound:
                    # The version that was being read has just been pruned: there is a newer one.
                    if attempt == settings().commit_log_retry_budget:
                        raise
            return self._graph

    def log(
        self,
        head: str,
        *,
        actor: str | None = None,
        since: int | None = None,
        until: int | None = None,
        limit: int | None = None,
    ) -> list[GraphCommit]:
        """Everything reachable from `head`, newest first; `since` and `until` are microseconds, ends included."""

        def keep(commit: GraphCommit) -> bool:
            return (
                (actor is None or commit.is_by(actor))
                and (since is None or commit.created_at >= since)
                and (until is None or commit.created_at <= until)
            )

        graph = self.graph()
        with self._reading:
            return ordered_log(graph, head, keep, limit)

    def pins(self, commit_id: str) -> Pins | None:
        """The pins of a commit's snapshot, None when they were never recorded (commits of old graphs)."""
        self.before_use()
        with self._reading, _log_errors():
            cached = self._pins.get(commit_id) or self._unlogged_pins.get(commit_id)
            if cached is not None:
                return cached
            if commit_id not in self._depths:
                self._graph_now()
            chain = self._pins_chain(commit_id)
            if chain is None:
                return None
            stored = self._stored_pins(chain)
            pins: Pins | None = None
            for one in chain:
                pins = decode_pins(stored[one], pins)
                self._remember_pins(one, pins)
            return pins

    def pins_of_many(self, commit_ids: Collection[str]) -> Iterator[tuple[str, Pins]]:
        """The pins of many commits in the order of the log, by one pass over it; those without pins are left out.

        A commit's pins build on its parent's, which came shortly before it, so only the last ones are kept.
        """
        self.before_use()
        recent: OrderedDict[str, Pins] = OrderedDict()
        columns = [ID, "parent_commit_id", "pins_depth", "pins"]
        with _log_errors():
            for batch in self._tables.scan(self._tables.head(LOG), columns=columns):
                for commit_id, parent, depth, data in zip(*(column.to_pylist() for column in batch.columns)):
                    if depth is None:
                        continue
                    base = None if depth == 0 else recent.get(parent) or self.pins(parent)
                    recent[commit_id] = decode_pins(data, base)
                    if len(recent) > _RECENT_PINS:
                        recent.popitem(last=False)
                    if commit_id in commit_ids:
                        yield commit_id, recent[commit_id]

    def files(self) -> dict[str, str]:
        """The checksums of all files that were ever published, as far as commits have recorded them.

        A file of rows never changes, so what it was first published with holds: whoever publishes it again may have
        found it damaged. The number of a version that was lost is given again, so of those the last holds.
        """
        self.before_use()
        found: dict[str, str] = {}
        with _log_errors():
            for batch in self._tables.scan(self._tables.head(LOG), columns=["pins"]):
                for data in batch["pins"].to_pylist():
                    for path, checksum in decode_files(data).items() if data else ():
                        if path.endswith(".manifest"):
                            found[path] = checksum
                        else:
                            found.setdefault(path, checksum)
        return found

    def overlay(self, entries: Sequence[LogEntry]) -> None:
        """Know commits that a read-only handle found missing in the log, without writing them."""
        with self._reading:
            for entry in entries:
                if self._graph.add(entry.commit) and entry.pins is not None:
                    self._unlogged_pins[entry.commit.graph_commit_id] = entry.pins

    def prune(self, head: TableVersion | None = None) -> None:
        """Remove old versions of the log. A failure is logged and costs nothing but space."""
        try:
            newest = head or self._tables.head(LOG)
            versions = [info.version for info in self._tables.versions(LOG, None)]
            old = [version for version in versions if version <= newest.version - KEPT_LOG_VERSIONS]
            if old:
                self._tables.remove_versions(LOG, None, old)
        except StorageError as error:
            # Somebody else may be removing the same ones.
            _logger.warning("old versions of the commit log were not removed: %s", error)

    def _append_with_retries(self, entries: Sequence[LogEntry], after_gap: bool) -> TableVersion | None:
        budget = settings().commit_log_retry_budget
        for attempt in range(budget + 1):
            # Who appended since this tail was read makes the commit fail, and it is read again.
            known = self._tail if attempt == 0 and not self._tables.root.is_local else None
            tail = known or self._read_tail(self._tables.head(LOG))
            missing = self._missing(tail, entries, after_gap)
            if not missing:
                return None
            try:
                tail = self._with_todays_columns(tail)
                return self._append_once(tail, missing)
            except Conflict:
                if attempt == budget:
                    raise
                time.sleep(random.uniform(0.002, 0.01) * min(attempt + 1, 10))
        raise AssertionError("unreachable")

    def _missing(self, tail: _Tail, entries: Sequence[LogEntry], after_gap: bool) -> list[LogEntry]:
        """The entries that are not in the log.

        A commit comes into the log after its parent. So when the parent is in the tail and the commit is not, it is
        not in the log at all; only otherwise the rest of the log has to be searched.
        """
        missing = [e for e in entries if e.commit.graph_commit_id not in tail.depths]
        coming = {e.commit.graph_commit_id for e in missing}
        near = tail.depths.keys() | coming
        far_parents = {e.commit.parent_commit_id for e in missing if e.commit.parent_commit_id not in near}
        if not far_parents:
            return missing
        parents = {parent for parent in far_parents if parent is not None}
        present = self._present(tail, coming | parents)
        missing = [e for e in missing if e.commit.graph_commit_id not in present]
        unlogged = parents & {e.commit.parent_commit_id for e in missing} - present
        if unlogged and not after_gap:
            raise ParentNotLogged(f"the commit log lacks the parent {min(unlogged)}")
        return missing

    def _append_once(self, tail: _Tail, entries: Sequence[LogEntry]) -> TableVersion:
        grown, depths = self._grown(tail, entries)
        # Used once: what a conflict has abandoned must not be found again.
        ahead, self._ahead = self._ahead, None
        staged = self._stage(tail, grown, ahead)
        for unused in ahead.unused() if ahead is not None else ():
            if unused.new_files != staged.new_files:
                self._not_ahead = NOT_AHEAD
                self._tables.abandon(unused)
        try:
            landed = self._tables.commit_staged(staged, entries[-1].commit.graph_commit_id, looked=True)
        except Conflict:
            self._tables.abandon(staged)
            raise
        self._tail = self._tail_at(landed, grown.combine_chunks(), depths)
        return landed

    def _grown(self, tail: _Tail, entries: Sequence[LogEntry]) -> tuple[pa.Table, dict[str, int | None]]:
        """The rows of the tail with those of more commits, and how deep the pins of each are."""
        depths = dict(tail.depths)
        rows = []
        for entry in entries:
            parent = entry.commit.parent_commit_id
            parent_depth = depths.get(parent, self._depths.get(parent)) if parent else None
            row = row_of(entry, parent_depth)
            depths[entry.commit.graph_commit_id] = row["pins_depth"]
            rows.append(row)
        added = pa.Table.from_pylist(rows, schema=SCHEMA)
        return (pa.concat_tables([tail.rows, added]) if tail.fragment is not None else added), depths

    def _stage(self, tail: _Tail, grown: pa.Table, written: WrittenRows | None) -> StagedWrite:
        if tail.fragment is None:
            return self._tables.stage_append(tail.head, grown, written=written)
        return self._tables.stage_replace_fragments(tail.head, [tail.fragment], grown, written=written)

    def _with_todays_columns(self, tail: _Tail) -> _Tail:
        """The tail of a log that has all columns: those that a log from before does not have are added."""
        there = self._tables.schema(tail.head).names
        new = [SCHEMA.field(name) for name in SCHEMA.names if name not in there]
        if not new:
            return tail
        return self._read_tail(self._tables.commit_staged(self._tables.stage_add_columns(tail.head, new), "columns"))

    def _read_tail(self, head: TableVersion) -> _Tail:
        known = self._tail
        if known is not None and known.head == head:
            return known
        fragments = self._tables.fragments(head)
        if not fragments:
            return _Tail(head, None, SCHEMA.empty_table(), {})
        found = self._tables.scan_table(head, fragments=[fragments[-1].id])
        rows = in_todays_columns(found, SCHEMA.names).cast(SCHEMA)
        depths = dict(zip(rows[ID].to_pylist(), rows["pins_depth"].to_pylist()))
        self._tail = self._tail_at(head, rows, depths)
        return self._tail

    def _tail_at(self, head: TableVersion, rows: pa.Table, depths: dict[str, int | None]) -> _Tail:
        own = {one: depths[one] for one in rows[ID].to_pylist()}
        if rows.num_rows >= settings().commit_log_tail_rows or rows.nbytes >= LARGEST_TAIL_BYTES:
            return _Tail(head, None, rows, own)
        return _Tail(head, self._tables.fragments(head)[-1].id, rows, own)

    def _present(self, tail: _Tail, commit_ids: set[str]) -> set[str]:
        """Which of these are in the log: in its tail, or else found by a scan of the ids."""
        found = commit_ids & tail.depths.keys()
        if found == commit_ids or tail.rows.num_rows == self._tables.count(tail.head):
            return found
        rest = self._tables.scan_table(tail.head, columns=[ID], filter=is_in(ID, sorted(commit_ids - found)))
        return found | set(rest[ID].to_pylist())

    def _load_new(self, head: TableVersion) -> None:
        if head == self._loaded:
            return
        # The last row that is known is read again: if it is not where it was, the log was rewritten and all is read.
        overlap = self._loaded_rows - 1 if self._loaded_rows else 0
        rows = self._commits_of(head, overlap or None)
        if self._loaded_rows and (not rows.num_rows or rows[ID][0].as_py() != self._last_id):
            self._graph, self._depths, overlap = CommitGraph(), {}, 0
            rows = self._commits_of(head)
        if rows.num_rows:
            logged = LoggedCommits(rows)
            self._graph.add_rows(logged)
            self._depths.update(zip(logged.ids, logged.depths))
            self._last_id = logged.ids[-1]
        for commit_id in self._unlogged_pins.keys() & self._depths.keys():
            del self._unlogged_pins[commit_id]
        self._loaded, self._loaded_rows = head, overlap + rows.num_rows

    def _commits_of(self, head: TableVersion, offset: int | None = None) -> pa.Table:
        there = set(self._tables.schema(head).names)
        columns = [name for name in COMMIT_COLUMNS if name in there]
        return in_todays_columns(self._tables.scan_table(head, columns=columns, offset=offset), COMMIT_COLUMNS)

    def _pins_chain(self, commit_id: str) -> list[str] | None:
        """The commits whose pins build on each other, from the last whole set to this commit."""
        chain: list[str] = []
        current: str | None = commit_id
        while current is not None:
            depth = self._depths.get(current)
            commit = self._graph.get(current)
            if depth is None or commit is None:
                return None
            chain.append(current)
            if depth == 0:
                return chain[::-1]
            current = commit.parent_commit_id
        return None

    def _stored_pins(self, chain: Sequence[str]) -> dict[str, bytes]:
        head = self._tables.head(LOG)
        found = self._tables.scan_table(head, columns=[ID, "pins"], filter=is_in(ID, chain))
        return dict(zip(found[ID].to_pylist(), found["pins"].to_pylist()))

    def _remember_pins(self, commit_id: str, pins: Pins) -> None:
        self._pins[commit_id] = pins
        self._pins.move_to_end(commit_id)
        while len(self._pins) > _PINS_CACHE:
            self._pins.popitem(last=False)
