"""The four phases by which a prepared write becomes one commit of the graph.

Inside the commit window: check that nothing the write leaned on has moved; Phase A puts the sidecar; Phase B commits
each table, strictly and tagged; Phase C publishes the manifest and logs the commit; Phase D deletes the sidecar. From
Phase A on the write goes to its end: an interrupt is deferred, and a failure is resolved here, while the window is
still held, by the same rules by which recovery resolves the sidecar of a dead writer.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial

from ulid import ULID

from omnigraph.errors import InternalError, LeaseLost, RecoveryRequired
from omnigraph.failpoints import declare, failpoint
from omnigraph.ledger.commit.drift import check_heads, check_not_blocked, own_lines
from omnigraph.ledger.commit.held_interrupts import deferred_interrupts
from omnigraph.ledger.commit.intents import TableCommits, TableWrite, WriteIntent, sidecar_of
from omnigraph.ledger.commit.recheck import check_premises
from omnigraph.ledger.commit.taken_over import TakenOver, settle
from omnigraph.ledger.commit.window import Window
from omnigraph.ledger.manifest.manifest import ManifestState
from omnigraph.ledger.manifest.publish import CommitDraft, Publication, place, publish
from omnigraph.ledger.parts import GraphParts
from omnigraph.ledger.recovery.evidence import commits_above
from omnigraph.ledger.recovery.resolve import refresh_schema_text, resolve
from omnigraph.ledger.recovery.sidecars import CONTENT_PRESERVING_KINDS, StoredSidecar
from omnigraph.ledger.values import BranchRef, GraphCommit, TablePin, WriterKind
from omnigraph.storage.leases.leases import Lease
from omnigraph.storage.values import StagedWrite, TableVersion

__all__ = ["TableCommits", "TableWrite", "WriteIntent", "WriteUnresolved", "commit_write", "prepare_line"]

_logger = logging.getLogger("omnigraph.ledger")

declare("write.premises_hold", "In the window, every premise was checked; the sidecar is not put yet")
declare("write.sidecar_put", "Phase A is done: the sidecar is there, no table has moved")
declare("write.table_committed", "Phase B: one table has just been committed (hit once per table)")
declare("write.tables_committed", "Phase B is done: every table is committed, nothing is published")
declare("write.published", "Phase C is done: the manifest is published, the sidecar is still there")
declare("write.sidecar_deleted", "Phase D is done: the window is still held")


LOGGED_SOON = frozenset({WriterKind.MUTATION, WriterKind.LOAD, WriterKind.OPTIMIZE})
"""Writers whose commits may be logged after they are acknowledged: nothing but history leans on them. What other
processes conclude from merges and schemas, they conclude from the log. An optimize would log everything that waits
first, with writers waiting for it."""


FRESH_SECONDS = 0.25
"""For so long what an object store answered, that the lease is taken and the sidecar put, need not be asked for again.
Nobody takes over from a writer whose lease has seconds to go."""


class WriteUnresolved(RecoveryRequired):
    """A write failed after Phase A and its writer could not resolve it: its sidecar stays for the next open.

    That may finish it, so writing it again at once could write it twice.
    """

    retryable = False


def prepare_line(store: GraphParts, branch: BranchRef, pin: TablePin) -> TableVersion:
    """Where a write to this table builds: the pinned version when the branch owns its line, else a fork from it.

    A fork is nothing until a publish names it, so making one needs no window: its name is unique, and one that is never
    published is an orphan that `cleanup` takes.
    """
    pinned = TableVersion(pin.location, pin.lance_branch, pin.version)
    if pin.owner == branch.incarnation:
        return pinned
    return store.tables.create_fork(pinned, f"f-{ULID()}")


def commit_write(
    store: GraphParts,
    intent: WriteIntent,
    *,
    lease: Lease | None = None,
    window: Window | None = None,
    wait: float | None = None,
) -> GraphCommit | None:
    """Commit a prepared write; the commit that was published, or None when nothing of it moved anything.

    `lease` is the lease of the writer, which its sidecar names, and which is given back together with the window where
    that saves a round trip; `window` is the commit window, if it is held already: then whoever holds it settles what
    became of a write that was taken over (`TakenOver`), after leaving it. Otherwise it is waited for, `wait` seconds or
    as the settings say. Before Phase A nothing has moved: `TableMoved`, `SchemaMoved`, `PreconditionFailed`,
    `RecoveryRequired`. After it, an error means that the write was undone, unless it says
    otherwise (`RecoveryRequired`, `WriteInDoubt`).
    """
    if window is not None:
        return _commit_in(store, window, intent, lease.name if lease else None)
    schema = intent.schema_digest is not None
    try:
        give_back = partial(give_back_both, store, lease)
        more_wait = partial(store.queue.others_in_company, intent.branch.name)
        with store.windows.enter(
            intent.branch, intent.guarded_keys, schema=schema, wait=wait, more_wait=more_wait, give_back=give_back
        ) as entered:
            return _commit_in(store, entered, intent, lease.name if lease else None)
    except TakenOver as lost:
        return settle(store, lost.sidecar, lost.cause)


def give_back_both(store: GraphParts, writer: Lease | None, window: Window, *, waited_for: bool = True) -> None:
    """End the window, then give its lease back and, on an object store, the writer's lease with it: its work is done.

    In this order: whoever has the window next, and finds a sidecar whose owner is gone, takes it for one of the dead.
    Unless somebody of this process waits for the window (`waited_for`), nobody need wait until the store has answered.
    """
    if writer is None or store.root.is_local:
        window.end()
        window.lease.release()
    elif waited_for:
        window.end()
        store.at_once(window.lease.release, writer.release)
    else:
        in_order: list[Callable[[], None]] = [window.end]
        window.lease.release_later(in_order.append)
        writer.release_later(in_order.append)
        store.later(partial(_all_of, in_order))


def _all_of(works: Sequence[Callable[[], None]]) -> None:
    """One after the other, and the rest also where one fails."""
    with ExitStack() as rest:
        for work in reversed(works):
            rest.callback(work)


def _commit_in(store: GraphParts, window: Window, intent: WriteIntent, lease: str | None) -> GraphCommit | None:
    window.end()
    if intent.on_left_out is not None:
        intent = _without_moved(store, intent, intent.on_left_out)
        if not intent.writes:
            return None
    own = own_lines(intent)
    ref, current, *newest = store.at_once(
        partial(store.refs.get, intent.branch.name),
        partial(store.manifest.read, intent.branch),
        *(partial(store.tables.head, pin.location, pin.lance_branch) for pin in own),
    )
    seen = store.seen_versions.get(intent.branch.incarnation)
    if seen is not None and current.version > seen + 1:
        # Others have published since our last write: they are still at work.
        store.queue.note_company(intent.branch.name)
    check_premises(store, intent, ref, current)
    check_not_blocked(store, intent.branch, intent.published_keys)
    check_heads(store, window, intent, current, dict(zip(own, (table.version for table in newest))))
    failpoint("write.premises_hold")
    with deferred_interrupts():
        if not intent.moves:
            window.check()
            return _publish(store, window, intent, current, {}, told_by_sidecar=False)
        return _commit_phases(store, window, intent, current, lease)


def _without_moved(store: GraphParts, intent: WriteIntent, left_out: Callable[[str], None]) -> WriteIntent:
    """The intent without the tables that another writer published since it was prepared."""
    current = store.manifest.read(intent.branch)
    kept = []
    for write in intent.writes:
        if place(current.tables.get(write.table_key)) == place(write.pin):
            kept.append(write)
        else:
            left_out(write.table_key)
    return replace(intent, writes=tuple(kept))


def _commit_phases(
    store: GraphParts, window: Window, intent: WriteIntent, current: ManifestState, lease: str | None
) -> GraphCommit | None:
    fresh = _Fresh(window)
    stored = _put_sidecar(store, intent, current, lease)
    try:
        failpoint("write.sidecar_put")
        reached = _commit_tables(store, window, intent, stored, fresh)
        failpoint("write.tables_committed")
        if not reached and not _publishes_more(intent):
            _delete_sidecar(store, intent.operation_id)
            return None
        checks = _still_ours(store, window, stored)
        commit = _publish(store, window, intent, current, reached, told_by_sidecar=True, checks=checks)
        failpoint("write.published")
        refresh_schema_text(store, stored.sidecar)
    except BaseException as failure:
        return _resolve_own(store, window, stored, failure)
    if store.root.is_local:
        _delete_sidecar(store, intent.operation_id)
    else:
        # The write stands: its caller need not wait for one more round trip.
        store.sidecars.note_over(intent.operation_id)
        window.endings.append(partial(_delete_sidecar, store, intent.operation_id))
    return commit


class _Fresh:
    """Whether the sidecar was put, and the lease seen, so lately that a look at them would tell nothing new.

    Only before the first commit: between two of them there is more time, and more to lose.
    """

    def __init__(self, window: Window) -> None:
        self._window = window
        self._steady, self._wall = time.monotonic(), time.time()
        self._first = True

    def is_known(self) -> bool:
        """Asked once before each commit."""
        first, self._first = self._first, False
        steady, wall = time.monotonic() - self._steady, time.time() - self._wall
        just_now = steady < FRESH_SECONDS and abs(wall) < FRESH_SECONDS
        return first and just_now and self._window.lease.seen_within(FRESH_SECONDS)


def _put_sidecar(store: GraphParts, intent: WriteIntent, current: ManifestState, lease: str | None) -> StoredSidecar:
    """Phase A. If it fails the write is over and nothing has moved; what may have been stored all the same goes."""
    try:
        return store.sidecars.put(sidecar_of(intent, current.head, lease))
    except Exception:
        try:
            store.sidecars.delete(intent.operation_id)
        except Exception as error:
            _logger.warning("the sidecar of %s may have been left behind: %s", intent.operation_id, error)
        raise


def _commit_tables(
    store: GraphParts, window: Window, intent: WriteIntent, stored: StoredSidecar, fresh: _Fresh
) -> dict[str, TablePin]:
    """Phase B: the new pins of the tables that moved."""
    reached: dict[str, TablePin] = {}
    for write in sorted(intent.writes, key=lambda write: write.table_key):
        if not write.moves:
            continue
        commits = _Commits(store, window, write, stored, fresh)
        for staged in write.commits:
            commits.commit(staged)
        if write.apply is not None:
            write.apply(commits)
        if commits.line.version > write.line.version:
            reached[write.table_key] = write.pin_at(commits.line.version, intent.branch.incarnation)
        failpoint("write.table_committed")
    return reached


class _Commits:
    """The commits of one table in Phase B; see `TableCommits`."""

    def __init__(
        self, store: GraphParts, window: Window, write: TableWrite, stored: StoredSidecar, fresh: _Fresh
    ) -> None:
        window.covers(write.table_key)
        self.line = write.line
        self.operation_id = stored.sidecar.operation_id
        self._store = store
        self._window = window
        self._write = write
        self._stored = stored
        self._fresh = fresh

    def commit(self, staged: StagedWrite) -> TableVersion:
        if staged.base != self.line:
            raise InternalError(
                f"a commit to {self._write.table_key} was staged on {staged.base} and the table's line is at "
                f"{self.line}"
            )
        self._check()
        self.line = self._store.tables.commit_staged(staged, self.operation_id, looked=self.line == self._write.line)
        return self.line

    def untagged(self, work: Callable[[TableVersion], TableVersion], *, strict: bool = False) -> TableVersion:
        if self._stored.sidecar.kind not in CONTENT_PRESERVING_KINDS:
            raise InternalError(
                f"a {self._stored.sidecar.kind.value} may not make commits without its tag: recovery could not "
                "tell them from somebody else's"
            )
        self._check()
        reached = work(self.line)
        if strict and self._store.tables.count(reached) != self._store.tables.count(self.line):
            raise InternalError(f"{self._write.table_key} got or lost rows while only its layout was to change")
        for landed in commits_above(self._store, self.line, reached.version) if not strict else ():
            if landed.operation_id != self.operation_id and not landed.preserves_content:
                raise InternalError(
                    f"{self._write.table_key} got content in version {landed.version} while only its layout was "
                    "to change"
                )
        self.line = reached
        return reached

    def _check(self) -> None:
        if not self._fresh.is_known():
            check_still_ours(self._store, self._window, self._stored)


def check_still_ours(store: GraphParts, window: Window, stored: StoredSidecar) -> None:
    """Fail if the window or the sidecar is somebody else's by now: this process was paused for too long."""
    store.at_once(*_still_ours(store, window, stored))


def _still_ours(store: GraphParts, window: Window, stored: StoredSidecar) -> Sequence[Callable[[], object]]:
    return (window.check, partial(store.sidecars.check_ours, stored))


def _publish(
    store: GraphParts,
    window: Window,
    intent: WriteIntent,
    current: ManifestState,
    reached: dict[str, TablePin],
    *,
    told_by_sidecar: bool,
    checks: Sequence[Callable[[], object]] = (),
) -> GraphCommit:
    """Phase C. `checks` are the last looks whether the window and the sidecar are still held; without them, the caller
    has looked."""
    new = {write.table_key for write in intent.writes if write.pin is None}
    draft = CommitDraft(
        graph_commit_id=intent.graph_commit_id,
        parent_commit_id=current.head.graph_commit_id,
        merged_parent_commit_id=intent.merged_parent_commit_id,
        actor_id=intent.actor_id,
        created_at=time.time_ns() // 1000,
        kind=intent.kind,
        changes_data=intent.changes_data,
        operations=intent.operations,
        about=intent.about,
        batches=intent.batches,
    )
    publication = Publication(
        commit=draft,
        updates=(*(pin for key, pin in reached.items() if key not in new), *intent.repinned),
        registered=(*(pin for key, pin in reached.items() if key in new), *intent.registered),
        tombstones=intent.tombstones,
        renamed=intent.renamed,
        schema_digest=intent.schema_digest,
    )
    return publish(
        store,
        intent.branch,
        publication,
        expected=intent.expected,
        told_by_sidecar=told_by_sidecar,
        known=current,
        log_soon=intent.kind in LOGGED_SOON,
        checks=checks,
    )


def _publishes_more(intent: WriteIntent) -> bool:
    """Whether there is something to publish beside tables that moved."""
    more = (intent.registered, intent.repinned, intent.renamed, intent.tombstones)
    return any(more) or intent.schema_digest is not None or intent.merged_parent_commit_id is not None


def _delete_sidecar(store: GraphParts, operation_id: str) -> None:
    """Phase D. The write is durable by now, so a failure is told and not raised: the next heal retires the sidecar.

    On an object store it is part of leaving the window, after the caller has its answer and before the leases are given
    back.
    """
    try:
        store.sidecars.delete(operation_id)
    except Exception as error:
        _logger.warning(
            "the write %s is published, but its sidecar could not be deleted; the next write retires it: %s",
            operation_id,
            error,
        )
    failpoint("write.sidecar_deleted")


def _resolve_own(store: GraphParts, window: Window, stored: StoredSidecar, failure: BaseException) -> GraphCommit:
    """Finish or undo a write that failed after Phase A, before its window is left. Returns the commit if it stands."""
    operation_id = stored.sidecar.operation_id
    if isinstance(failure, LeaseLost):
        # Somebody else holds the window, or the sidecar, by now: it is theirs to resolve.
        raise TakenOver(stored.sidecar, failure)
    try:
        outcome = resolve(store, window, stored, restore=True)
    except LeaseLost:
        raise TakenOver(stored.sidecar, failure) from failure
    except Exception as second:
        raise WriteUnresolved(
            f"the write {operation_id} failed on the way ({failure}) and could not be resolved ({second}). Reopen "
            "the graph for writing: that finishes it or undoes it.",
            operation_id,
        ) from failure
    if outcome.refused is not None:
        raise WriteUnresolved(
            f"the write {operation_id} failed on the way ({failure}) and could not be undone: {outcome.refused}. "
            "Nothing of it is visible; run `omnigraph repair`.",
            operation_id,
        ) from failure
    if outcome.commit is not None and isinstance(failure, Exception):
        # Everything had landed, so it was finished: to report a failure would make the caller write it twice.
        _logger.warning("the write %s met an error and was completed all the same: %s", operation_id, failure)
        return outcome.commit
    raise failure
