"""What one attempt at a write makes on its way, so that whatever is not published can be cleared away."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

from ulid import ULID

from omnigraph.errors import OmniGraphError
from omnigraph.ledger.commit.intents import TableWrite, WriteIntent
from omnigraph.ledger.commit.phases import prepare_line
from omnigraph.ledger.parts import GraphParts
from omnigraph.ledger.values import BranchRef, Snapshot, TablePin, WriterKind
from omnigraph.storage.layout.compaction import StagedCompaction
from omnigraph.storage.staging.written_rows import WrittenRows
from omnigraph.storage.values import StagedWrite, TableVersion

Staged = TypeVar("Staged", StagedWrite, StagedCompaction)

_logger = logging.getLogger("omnigraph.ledger")


class NeedsFork(Exception):
    """A write that is prepared ahead would have to make a line of its own, which only its real attempt may."""


class WriteSession:
    """What one attempt at a write has made so far, so that a failure leaves nothing behind.

    Safe to share between threads. `prepare` gets one: it forks through `line`, hands every staged write to `keep`, and
    builds its intent with `intent`. `written` are the files that all attempts at the write share; `ahead`: this one
    makes files only, for the one that is committed.
    """

    def __init__(
        self,
        store: GraphParts,
        branch: BranchRef,
        actor_id: str | None,
        written: WrittenRows | None = None,
        *,
        ahead: bool = False,
    ) -> None:
        self.store = store
        self.branch = branch
        self.actor_id = actor_id
        self.operation_id = str(ULID())
        self.graph_commit_id = str(ULID())
        self.written = written
        self._ahead = ahead
        self._lock = threading.Lock()
        self._lines: dict[str, TableVersion] = {}
        self._forks: list[TableVersion] = []
        self._staged: list[StagedWrite | StagedCompaction] = []

    def line(self, pin: TablePin) -> TableVersion:
        """Where to stage a write to this table: the branch's own line, or a fork made now. The same on each call."""
        with self._lock:
            if pin.table_key not in self._lines:
                if self._ahead and pin.owner != self.branch.incarnation:
                    raise NeedsFork
                line = prepare_line(self.store, self.branch, pin)
                self._lines[pin.table_key] = line
                if line.branch != pin.lance_branch:
                    self._forks.append(line)
            return self._lines[pin.table_key]

    def fork(self, pin: TablePin) -> TableVersion:
        """A line that starts at this version, whoever owns it."""
        fork = self.store.tables.create_fork(TableVersion(pin.location, pin.lance_branch, pin.version), f"f-{ULID()}")
        with self._lock:
            self._forks.append(fork)
        return fork

    def keep(self, staged: Staged, *, carried: bool = False) -> Staged:
        """Note staged work, so that its files go if the write fails; not those of work that its maker carried over
        from one attempt to the next, and removes itself."""
        if carried:
            return staged
        if isinstance(staged, StagedWrite):
            # Here, and not in the commit window, which must stay short.
            self.store.tables.files.note(staged.new_files)
            if self.written is not None and self.written.keep(staged):
                return staged
        self._staged.append(staged)
        return staged

    def table_write(self, pin: TablePin, staged: StagedWrite, *, carried: bool = False) -> TableWrite:
        """A staged change of one published table, with the row count it leads to."""
        self.keep(staged, carried=carried)
        return TableWrite(
            table_key=pin.table_key,
            type_id=pin.type_id,
            location=pin.location,
            pin=pin,
            line=staged.base,
            row_count=pin.row_count + staged.rows_added - staged.rows_deleted,
            commits=(staged,),
        )

    def intent(
        self,
        kind: WriterKind,
        base: Snapshot,
        writes: Sequence[TableWrite],
        *,
        reads: Sequence[str] | frozenset[str] = (),
        changes_data: bool = True,
        merged_parent_commit_id: str | None = None,
    ) -> WriteIntent:
        """The intent of this attempt; use `dataclasses.replace` for what only few writers need."""
        return WriteIntent(
            operation_id=self.operation_id,
            kind=kind,
            branch=self.branch,
            base=base,
            actor_id=self.actor_id,
            graph_commit_id=self.graph_commit_id,
            writes=tuple(writes),
            reads=frozenset(reads),
            changes_data=changes_data,
            merged_parent_commit_id=merged_parent_commit_id,
        )

    def abandon(self, *, keep: WriteIntent | None = None) -> None:
        """Remove files and forks that will not be published: all, or those that `keep` does not name. Best effort."""
        kept = {write.line for write in keep.writes} if keep else set()
        for pin in (*keep.repinned, *keep.registered) if keep else ():
            kept.add(TableVersion(pin.location, pin.lance_branch, pin.version))
        kept_staged = {id(staged) for write in keep.writes for staged in write.commits} if keep else set()
        for staged in self._staged:
            if id(staged) not in kept_staged and staged.base not in self._forks:
                self._best_effort(partial(self.store.tables.abandon, staged))
        for fork in self._forks:
            if fork not in kept and fork.branch is not None:
                self._best_effort(partial(self.store.tables.delete_fork, fork.location, fork.branch))

    def _best_effort(self, work: Callable[[], object]) -> None:
        try:
            work()
        except (OmniGraphError, OSError) as error:
            _logger.info("leftovers of the write %s stay for cleanup: %s", self.operation_id, error)
