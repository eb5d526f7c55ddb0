"""One write from its entry to its commit: wait for its turn, heal, prepare on a snapshot, commit, or prepare again.

Run again on a fresh snapshot, a mutation or a merging load means the same as run after the other writer. So a write
that lost a race to another process is prepared again: a small one in the window that it has waited for, a large one
after a pause of random length, and from the third time on with the commit window held. Then nobody can come between.
The next few small writes hold it from the start, and have their files written before their turn comes. An overwrite,
and a write with `if_commit`, was meant for the state its author saw and reports the conflict. A conflict with commits
that changed no data is nobody's business and is always prepared again.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from itertools import count
from typing import Any

from ulid import ULID

from omnigraph.config import settings
from omnigraph.errors import Conflict, LeaseLost, OmniGraphError, RecoveryRequired, TableMoved, WriteInDoubt
from omnigraph.failpoints import declare, failpoint
from omnigraph.ledger import snapshots
from omnigraph.ledger.branches.schema_lock import refuse_while_schema_is_applied
from omnigraph.ledger.commit.intents import WriteIntent
from omnigraph.ledger.commit.phases import WriteUnresolved, commit_write, give_back_both
from omnigraph.ledger.commit.queue import EVERYTHING, Footprint
from omnigraph.ledger.commit.recheck import SchemaMoved, check_if_commit
from omnigraph.ledger.commit.taken_over import TakenOver, settle
from omnigraph.ledger.commit.window import Window
from omnigraph.ledger.commit.write_session import WriteSession
from omnigraph.ledger.manifest.manifest import ManifestState
from omnigraph.ledger.manifest.publish import place
from omnigraph.ledger.parts import GraphParts
from omnigraph.ledger.recovery.recover import heal
from omnigraph.ledger.values import BranchRef, GraphCommit, Snapshot
from omnigraph.storage.leases.leases import Lease
from omnigraph.storage.staging.written_rows import WrittenRows

__all__ = ["WRITER_LEASE_PREFIX", "Prepare", "RetryPolicy", "WriteSession", "run_write"]

DATA_ATTEMPTS = 8
"""How often a write is prepared before its conflict is reported. The later attempts hold the window, so it never is,
unless somebody writes without one."""

HOLD_AFTER = 2
"""After so many lost races a write is prepared with the commit window held."""

LAYOUT_ATTEMPTS = 100
"""How often a write is prepared when only layout or schema moved under it: more than maintenance could ever cause."""

WRITER_LEASE_PREFIX = "writer-"
"""Leases under this prefix say that somebody alive may be about to publish files that nothing refers to yet."""

_logger = logging.getLogger("omnigraph.ledger")

declare("write.leased", "The writer's lease is held; nothing is read or staged")
declare("write.prepared", "Everything is staged and no window is entered: only files that nothing refers to")


class RetryPolicy(Enum):
    """What a write does when another writer changed data under it."""

    PREPARE_AGAIN = "prepare again"
    SURFACE = "surface the conflict"


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
    ahead: bool = False,
) -> GraphCommit | None:
    """Run one write on a branch. None when `prepare` found nothing to do (it returns None).

    `prepare` reads and stages, on the snapshot it is given, and may be called several times. `if_commit` makes the
    write fail with `PreconditionFailed` when data changed on the branch since that commit. `operation` names the write
    in messages. `holds_schema_lock` is for the schema apply itself. With a `footprint` the write waits for its turn
    before it is prepared; without, only before it is prepared again. `has_turn`: the caller has waited already.
    `ahead`: it may be prepared once more than needed, while another process has the window, to have its files ready.
    """
    store.refuse_if_read_only(operation)
    with ExitStack() as held:
        if footprint is not None and not has_turn:
            held.enter_context(store.queue.turn(branch_name, footprint))
        contended = footprint is not None and store.queue.is_contended(branch_name)
        accompanied = footprint is not None and store.queue.is_accompanied(branch_name)
        lease, start = _entered(
            store, branch_name, operation, held, in_schema=holds_schema_lock, with_state=not contended
        )
        failpoint("write.leased")
        written = held.enter_context(_files_of_one_write(store))
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
                    # A lease that was passed on to this process's next writer is not kept for long.
                    left = accompanied and store.windows.is_left(branch)
                    hold = patience.lost >= HOLD_AFTER or left
                    line = _PlaceInLine(store, branch, lease, window_held, wait, accompanied or hold)
                    if hold and ahead and store.windows.must_wait(branch):
                        _prepare_ahead(store, branch, touched, actor, written)
                    enter = line.enter if hold or footprint is not None else None
                    window = line.enter() if hold else None
                    attempted = partial(_attempt, store, branch, touched, actor, if_commit, lease, wait, written)
                    try:
                        commit = attempted(None if hold else state, window, enter)
                    except TableMoved as moved:
                        if hold or line.window is None:
                            raise
                        # It has waited for its turn, and has it: nobody comes between while it is prepared again.
                        _prepare_again_or_raise(store, moved, surface, patience)
                        store.queue.note_lost(branch_name)
                        commit = attempted(None, line.window, None)
                return commit
            except TakenOver as lost:
                written.forget()
                return settle(store, lost.sidecar, lost.cause)
            except (Conflict, RecoveryRequired) as failure:
                _prepare_again_or_raise(store, failure, surface, patience)
                store.queue.note_lost(branch_name)
            time.sleep(random.uniform(0.0, 0.005) * min(attempt + 1, 8))
    raise AssertionError("unreachable")


class _PlaceInLine:
    """How a write gets the commit window before, or instead of, leaving that to its commit."""

    def __init__(
        self,
        store: GraphParts,
        branch: BranchRef,
        lease: Lease,
        held: ExitStack,
        wait: float | None,
        accompanied: bool,
    ) -> None:
        self.window: Window | None = None
        self._store = store
        self._branch = branch
        self._lease = lease
        self._held = held
        self._wait = wait
        self._accompanied = accompanied

    def enter(self) -> Window:
        """Wait for the window, and hold it until the attempt is over."""
        queue, name = self._store.queue, self._branch.name
        self.window = self._held.enter_context(
            self._store.windows.enter(
                self._branch,
                None,
                wait=self._wait,
                more_wait=partial(queue.others, name) if self._accompanied else lambda: 0,
                give_back=self._give_back,
            )
        )
        return self.window

    def _give_back(self, window: Window) -> None:
        waited_for = self._store.queue.others(self._branch.name) > 0
        give_back_both(self._store, self._lease, window, waited_for=waited_for)


def _prepare_ahead(
    store: GraphParts, branch: BranchRef, prepare: Prepare, actor: str | None, written: WrittenRows
) -> None:
    """Make the files of a write while another process has the window, on the last state that is known.

    The write is prepared again when it has the window, on the state that it finds there. What is wrong with it is told
    then; mostly it comes to the same rows, and their files are there.
    """
    state = store.manifest.last_known(branch)
    if state is None:
        return
    session = WriteSession(store, branch, actor, written, ahead=True)
    try:
        prepare(snapshots.of_state(branch, state), session)
    except Exception as error:
        _logger.debug("a write was not prepared ahead: %s", error)
    finally:
        session.abandon()


@contextmanager
def _files_of_one_write(store: GraphParts) -> Iterator[WrittenRows]:
    """The files that all attempts at one write share. Those that none of them has committed are removed at the end."""
    written = WrittenRows()
    try:
        yield written
    except (WriteUnresolved, WriteInDoubt, LeaseLost):
        # Somebody else will finish or undo it, or did, and needs everything that was staged.
        raise
    except BaseException:
        _remove_unused(store, written)
        raise
    _remove_unused(store, written)


def _remove_unused(store: GraphParts, written: WrittenRows) -> None:
    for staged in written.unused():
        try:
            store.tables.abandon(staged)
        except (OmniGraphError, OSError) as error:
            _logger.info("files of a write to %s stay for cleanup: %s", staged.location, error)


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
    prepare: Prepare,
    actor: str | None,
    if_commit: str | None,
    lease: Lease,
    wait: float | None,
    written: WrittenRows,
    state: ManifestState | None,
    window: Window | None,
    enter: Callable[[], Window] | None,
) -> GraphCommit | None:
    """Prepare a write and commit it, in the window that is held, in the one that `enter` gets, or else in its own."""
    known = store.manifest.last_known(branch)
    state = state if state is not None else store.manifest.read(branch)
    if if_commit is not None:
        check_if_commit(store, branch, state, if_commit)
    session = WriteSession(store, branch, actor, written)
    intent: WriteIntent | None = None
    commit: GraphCommit | None = None
    try:
        intent = prepare(snapshots.of_state(branch, state), session)
        failpoint("write.prepared")
        if intent is not None:
            intent = replace(intent, if_commit=if_commit)
            if window is not None and known is not None and _moved(known, state, intent):
                # Prepared on what was known, it would have lost: others are at work on its tables still.
                store.queue.note_lost(branch.name)
            if window is None and enter is not None:
                window = enter()
            commit = commit_write(store, intent, lease=lease, window=window, wait=wait)
    except (WriteUnresolved, WriteInDoubt, LeaseLost, TakenOver):
        # Somebody else will finish or undo it, or did, and needs everything that was staged.
        raise
    except BaseException:
        session.abandon()
        raise
    session.abandon(keep=intent if commit is not None else None)
    if intent is not None and commit is not None:
        written.committed(staged for write in intent.writes for staged in write.commits)
    if intent is not None and commit is not None:
        for committed in store.after_commit:
            committed(intent)
    return commit


def _moved(known: ManifestState, state: ManifestState, intent: WriteIntent) -> bool:
    """Whether a table that a write leans on has moved from one state to another."""
    return known is not state and any(
        place(known.tables.get(key)) != place(state.tables.get(key)) for key in intent.expected
    )


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
    # Whether data changed is asked where something hangs on it. The history has to be read for that, and who was the
    # first to lose would read it in the window, with everybody waiting.
    matters = surface or patience.data <= 1
    layout_only = isinstance(failure, TableMoved) and matters and not failure.data_changed
    if isinstance(failure, SchemaMoved) or layout_only:
        patience.layout -= 1
        if patience.layout <= 0:
            raise failure
        return
    patience.data -= 1
    if surface or patience.data <= 0:
        raise failure
