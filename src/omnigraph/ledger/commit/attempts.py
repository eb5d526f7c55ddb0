"""One write from its entry to its commit: wait for its turn, heal, prepare on a snapshot, commit, or prepare again.

Run again on a fresh snapshot, a mutation or a merging load means the same as run after the other writer. So a write
that lost a race to another process is prepared again, after a pause of random length, and from the third time on with
the commit window held: then nobody can come between. The next few small writes hold it from the start. An overwrite,
and a write with `if_commit`, was meant for the state its author saw and reports the conflict. A conflict with commits
that changed no data is nobody's business and is always prepared again.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from itertools import count
from typing import Any, TypeVar

from ulid import ULID

from omnigraph.config import settings
from omnigraph.errors import Conflict, LeaseLost, OmniGraphError, RecoveryRequired, TableMoved, WriteInDoubt
from omnigraph.failpoints import declare, failpoint
from omnigraph.ledger import snapshots
from omnigraph.ledger.branches.schema_lock import refuse_while_schema_is_applied
from omnigraph.ledger.commit.intents import TableWrite, WriteIntent
from omnigraph.ledger.commit.phases import WriteUnresolved, commit_write, give_back_both, prepare_line
from omnigraph.ledger.commit.queue import EVERYTHING, Footprint
from omnigraph.ledger.commit.recheck import SchemaMoved, check_if_commit
from omnigraph.ledger.commit.taken_over import TakenOver, settle
from omnigraph.ledger.commit.window import Window
from omnigraph.ledger.manifest.manifest import ManifestState
from omnigraph.ledger.parts import GraphParts
from omnigraph.ledger.recovery.recover import heal
from omnigraph.ledger.values import BranchRef, GraphCommit, Snapshot, TablePin, WriterKind
from omnigraph.storage.layout.compaction import StagedCompaction
from omnigraph.storage.leases.leases import Lease
from omnigraph.storage.values import StagedWrite, TableVersion

DATA_ATTEMPTS = 8
"""How often a write is prepared before its conflict is reported. The later attempts hold the window, so it never is,
unless somebody writes without one."""

HOLD_AFTER = 2
"""After so many lost races a write is prepared with the commit window held."""

LAYOUT_ATTEMPTS = 100
"""How often a write is prepared when only layout or schema moved under it: more than maintenance could ever cause."""

WRITER_LEASE_PREFIX = "writer-"
"""Leases under this prefix say that somebody alive may be about to publish files that nothing refers to yet."""

Staged = TypeVar("Staged", StagedWrite, StagedCompaction)

_logger = logging.getLogger("omnigraph.ledger")

declare("write.leased", "The writer's lease is held; nothing is read or staged")
declare("write.prepared", "Everything is staged and no window is entered: only files that nothing refers to")


class RetryPolicy(Enum):
    """What a write does when another writer changed data under it."""

    PREPARE_AGAIN = "prepare again"
    SURFACE = "surface the conflict"


class WriteSession:
    """What one attempt at a write has made so far, so that a failure leaves nothing behind.

    Safe to share between threads. `prepare` gets one: it forks through `line`, hands every staged write to `keep`, and
    builds its intent with `intent`.
    """

    def __init__(self, store: GraphParts, branch: BranchRef, actor_id: str | None) -> None:
        self.store = store
        self.branch = branch
        self.actor_id = actor_id
        self.operation_id = str(ULID())
        self.graph_commit_id = str(ULID())
        self._lock = threading.Lock()
        self._lines: dict[str, TableVersion] = {}
        self._forks: list[TableVersion] = []
        self._staged: list[StagedWrite | StagedCompaction] = []

    def line(self, pin: TablePin) -> TableVersion:
        """Where to stage a write to this table: the branch's own line, or a fork made now. The same on each call."""
        with self._lock:
            if pin.table_key not in self._lines:
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
        self._staged.append(staged)
        if isinstance(staged, StagedWrite):
            # Here, and not in the commit window, which must stay short.
            self.store.tables.files.note(staged.new_files)
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


Prepare = Callable[[Snapshot, WriteSession], WriteIntent | None]


@dataclass(slots=True)
class _Patience:
    """How many more times a write may be prepared."""

    data: int
    layout: int
    heals: int = 2
    lost: int = 0


class _Touched:
    """A `prepare` that remembers which tables it touched: what the write waits for before it is prepared again."""

    def __init__(self, prepare: Prepare) -> None:
        self._prepare = prepare
        self.footprint = EVERYTHING

    def __call__(self, snapshot: Snapshot, session: WriteSession) -> WriteIntent | None:
        intent = self._prepare(snapshot, session)
        if intent is not None:
            self.footprint = Footprint(intent.published_keys, intent.reads)
        return intent


def run_write(
    store: GraphParts,
    branch_name: str,
    prepare: Prepare,
    *,
    actor: str | None = None,
    retry: RetryPolicy = RetryPolicy.SURFACE,
    if_commit: str | None = None,
    operation: str = "write",
    holds_schema_lock: bool = False,
    footprint: Footprint | None = None,
    has_turn: bool = False,
) -> GraphCommit | None:
    """Run one write on a branch. None when `prepare` found nothing to do (it returns None).

    `prepare` reads and stages, on the snapshot it is given, and may be called several times. `if_commit` makes the
    write fail with `PreconditionFailed` when data changed on the branch since that commit. `operation` names the write
    in messages. `holds_schema_lock` is for the schema apply itself. With a `footprint` the write waits for its turn
    before it is prepared; without, only before it is prepared again. `has_turn`: the caller has waited already.
    """
    store.refuse_if_read_only(operation)
    with ExitStack() as held:
        if footprint is not None and not has_turn:
            held.enter_context(store.queue.turn(branch_name, footprint))
        contended = footprint is not None and store.queue.is_contended(branch_name)
        lease, start = _entered(
            store, branch_name, operation, held, in_schema=holds_schema_lock, with_state=not contended
        )
        failpoint("write.leased")
        touched = _Touched(prepare)
        patience = _Patience(DATA_ATTEMPTS, LAYOUT_ATTEMPTS)
        # Who queues here is as patient with writers of other processes as with those of its own.
        wait = settings().queue_wait_seconds if footprint is not None else None
        if contended:
            patience.lost = HOLD_AFTER
        surface = retry is RetryPolicy.SURFACE or if_commit is not None
        for attempt in count():
            if attempt == 1 and footprint is None and not holds_schema_lock:
                held.enter_context(store.queue.turn(branch_name, touched.footprint))
            try:
                with ExitStack() as window_held:
                    branch, state = start if start is not None else (store.branch(branch_name, operation), None)
                    start = None
                    window = None
                    if patience.lost >= HOLD_AFTER:
                        more = partial(store.queue.more_wait, branch_name)
                        both = partial(give_back_both, store, lease)
                        window = window_held.enter_context(
                            store.windows.enter(branch, None, wait=wait, more_wait=more, give_back=both)
                        )
                        state = None
                    return _attempt(store, branch, state, touched, actor, if_commit, lease, window, wait)
            except TakenOver as lost:
                return settle(store, lost.sidecar, lost.cause)
            except (Conflict, RecoveryRequired) as failure:
                _prepare_again_or_raise(store, failure, surface, patience)
                store.queue.note_lost(branch_name)
            time.sleep(random.uniform(0.0, 0.005) * min(attempt + 1, 8))
    raise AssertionError("unreachable")


@contextmanager
def _writer_lease(store: GraphParts, owner: str) -> Iterator[Lease]:
    """The lease of one write, under a name that no other write has at that time.

    On local disk a name is used again by this handle once its write is over, unless that failed: its sidecar may name
    the lease still.
    """
    try:
        name = store.writer_names.pop()
    except IndexError:
        name = f"{WRITER_LEASE_PREFIX}{ULID()}"
    with store.leases.acquire(name, owner, again=store.root.is_local) as lease:
        yield lease
    if store.root.is_local:
        store.writer_names.append(name)


_Start = tuple[BranchRef, ManifestState]
"""The branch of a write and its state, as they were found when the write was entered."""


def _entered(
    store: GraphParts, branch_name: str, operation: str, held: ExitStack, *, in_schema: bool, with_state: bool
) -> tuple[Lease, _Start | None]:
    """Everything that a write looks at before it is prepared, at once: on an object store one after another takes as
    many round trips. What it starts from is None when it was not asked for, or something was recovered meanwhile."""
    known = branch_name in store.lines
    looks: list[Callable[[], Any]] = [partial(heal, store)]
    if with_state:
        looks.append(partial(store.branch, branch_name, operation))
        if known:
            looks.append(partial(_line_if_there, store, store.lines[branch_name]))
    if not in_schema:
        looks.append(partial(refuse_while_schema_is_applied, store, operation))
    owner = f"{operation} on branch `{branch_name}`"
    # The lease comes first, in this thread: whatever the others meet, it is given back.
    lease, healed, *found = store.at_once(lambda: held.enter_context(_writer_lease(store, owner)), *looks)
    if healed.resolved or not with_state:
        return lease, None
    branch: BranchRef = found[0]
    state: ManifestState | None = found[1] if known else None
    if state is None or state.table.branch != branch.manifest_branch:
        state = store.manifest.read(branch)
    store.lines[branch_name] = branch.manifest_branch
    return lease, (branch, state)


def _line_if_there(store: GraphParts, line: str | None) -> ManifestState | None:
    """The state of the line of the manifest that a branch had when it was last written to. The branch may have been
    deleted, or made anew, since: then there is another line, or none."""
    try:
        return store.manifest.read_line(line)
    except OmniGraphError:
        if line is None:
            raise
        return None


def _attempt(
    store: GraphParts,
    branch: BranchRef,
    state: ManifestState | None,
    prepare: Prepare,
    actor: str | None,
    if_commit: str | None,
    lease: Lease,
    window: Window | None,
    wait: float | None,
) -> GraphCommit | None:
    state = state if state is not None else store.manifest.read(branch)
    if if_commit is not None:
        check_if_commit(store, branch, state, if_commit)
    seen = store.seen_versions.get(branch.incarnation)
    if seen is not None and state.version > seen + 1:
        # Others have published since our last write: they are still at work.
        store.queue.note_company(branch.name)
        if window is not None:
            store.queue.note_lost(branch.name)
    session = WriteSession(store, branch, actor)
    intent: WriteIntent | None = None
    commit: GraphCommit | None = None
    try:
        intent = prepare(snapshots.of_state(branch, state), session)
        failpoint("write.prepared")
        if intent is not None:
            commit = commit_write(store, replace(intent, if_commit=if_commit), lease=lease, window=window, wait=wait)
    except (WriteUnresolved, WriteInDoubt, LeaseLost, TakenOver):
        # Somebody else will finish or undo it, or did, and needs everything that was staged.
        raise
    except BaseException:
        session.abandon()
        raise
    session.abandon(keep=intent if commit is not None else None)
    if intent is not None and commit is not None:
        for committed in store.after_commit:
            committed(intent)
    return commit


def _prepare_again_or_raise(
    store: GraphParts, failure: Conflict | RecoveryRequired, surface: bool, patience: _Patience
) -> None:
    if isinstance(failure, WriteUnresolved | LeaseLost):
        raise failure
    if isinstance(failure, RecoveryRequired):
        patience.heals -= 1
        if failure.operation_id is None or patience.heals <= 0:
            raise failure
        # The unfinished write came to light after this one had healed: look again before giving up.
        if failure.operation_id in heal(store, wait=settings().lease_wait_seconds).waiting:
            raise failure
        return
    patience.lost += 1
    if isinstance(failure, SchemaMoved) or (isinstance(failure, TableMoved) and not failure.data_changed):
        patience.layout -= 1
        if patience.layout <= 0:
            raise failure
        return
    patience.data -= 1
    if surface or patience.data <= 0:
        raise failure
