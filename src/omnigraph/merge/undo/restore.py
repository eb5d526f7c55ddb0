"""Restore: the state of a branch becomes that of an older commit, whatever happened between.

No row is looked at. A table whose older version lies on the line that the branch writes to is put back by one small
commit of that line; for any other a branch makes a fresh fork, or points at the main line. Only where the main line
would have to point into a branch's fork are rows brought over. The schema of that time comes back with its tables.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from ulid import ULID

from omnigraph.choices import Target
from omnigraph.errors import BadRequest, Conflict
from omnigraph.failpoints import declare, failpoint
from omnigraph.ledger.branches.names import refuse_system_name
from omnigraph.ledger.branches.schema_lock import hold_schema_lock
from omnigraph.ledger.commit.attempts import RetryPolicy, WriteSession, run_write
from omnigraph.ledger.commit.intents import TableWrite, WriteIntent
from omnigraph.ledger.history.held_history import history_held, refuse_removed
from omnigraph.ledger.manifest.publish import place
from omnigraph.ledger.snapshots import resolve, table_of
from omnigraph.ledger.values import MAIN, Snapshot, TablePin, WriterKind
from omnigraph.merge.compare.schema_view import pin_of, reads_as_stored, viewed
from omnigraph.merge.decide.conflicts import Resolutions
from omnigraph.merge.decide.three_way import merge_table
from omnigraph.merge.diff import Diff, DiffFilter
from omnigraph.merge.placement import IN_PROCESS, Placement
from omnigraph.merge.stage.made_tables import made_table
from omnigraph.merge.stage.stage import stage_table
from omnigraph.merge.undo.undo_result import UndoOutcome, UndoResult
from omnigraph.schema.catalog import GraphType
from omnigraph.storage.values import TableVersion

if TYPE_CHECKING:
    from omnigraph.ledger.store import GraphStore

declare("restore.staged", "The tables of a restore are staged, or forked; the commit window is not entered")


def restore(
    store: GraphStore,
    to: Target,
    branch: str = MAIN,
    *,
    dry_run: bool = False,
    actor: str | None = None,
    placement: Placement = IN_PROCESS,
    before_schema: Callable[[], object] | None = None,
) -> UndoResult:
    """Make the state of a commit, a tag or a time the state of a branch again, in one commit.

    `before_schema` is asked before another schema comes back.
    """
    if to is None:
        raise BadRequest("restore: name a commit, a tag or a time to go back to")
    wanted = resolve(store, to, branch, "restore")
    about = wanted.head.graph_commit_id
    current = store.snapshot(branch=branch, operation="restore")
    if before_schema is not None and current.schema_digest != wanted.schema_digest:
        before_schema()
    return put_back(store, "restore", WriterKind.RESTORE, wanted, about, branch, dry_run, actor, placement)


def put_back(
    store: GraphStore,
    operation: str,
    kind: WriterKind,
    wanted: Snapshot,
    about: str,
    branch: str,
    dry_run: bool,
    actor: str | None,
    placement: Placement,
) -> UndoResult:
    """Make a state that of a branch. `operation` and `kind` say what it is part of."""
    refuse_system_name(branch, operation)
    current = store.snapshot(branch=branch, operation=operation)
    if dry_run:
        refuse_removed(store, wanted, operation)
        diff = Diff(store, current, wanted, DiffFilter.of(None, None, None), placement)
        counts = tuple(diff.summary())
        changed = bool(counts) or current.schema_digest != wanted.schema_digest
        outcome = UndoOutcome.DONE if changed else UndoOutcome.NOTHING_TO_DO
        return UndoResult(
            operation, about, branch, outcome, None, counts, dry_run=True, engine=placement.engine, changes=diff
        )
    store.refuse_if_read_only(operation)

    def prepare(base: Snapshot, session: WriteSession) -> WriteIntent | None:
        if base.schema_digest != wanted.schema_digest and not changes_schema:
            raise Conflict(f"{operation}: the schema of `{branch}` was changed meanwhile; try again", branch=branch)
        moves = _moves(store, session, base, wanted, placement)
        digest = wanted.schema_digest if base.schema_digest != wanted.schema_digest else None
        if moves.is_empty and digest is None:
            return None
        failpoint("restore.staged")
        intent = session.intent(kind, base, moves.writes, reads=frozenset(base.tables))
        return replace(
            intent,
            repinned=tuple(moves.repinned),
            registered=tuple(moves.registered),
            renamed=tuple(moves.renamed),
            tombstones=tuple(moves.tombstones),
            schema_digest=digest,
            about=about,
        )

    with ExitStack() as held:
        held.enter_context(history_held(store, operation))
        refuse_removed(store, wanted, operation)
        changes_schema = current.schema_digest != wanted.schema_digest
        if changes_schema:
            held.enter_context(hold_schema_lock(store, str(ULID())))
        commit = run_write(
            store,
            branch,
            prepare,
            actor=actor,
            retry=RetryPolicy.PREPARE_AGAIN,
            operation=operation,
            holds_schema_lock=changes_schema,
        )
    outcome = UndoOutcome.NOTHING_TO_DO if commit is None else UndoOutcome.DONE
    return UndoResult(operation, about, branch, outcome, commit, engine=placement.engine)


@dataclass
class _Moves:
    """What a restore does to the tables of a branch."""

    writes: list[TableWrite] = field(default_factory=list)
    repinned: list[TablePin] = field(default_factory=list)
    registered: list[TablePin] = field(default_factory=list)
    renamed: list[tuple[str, str]] = field(default_factory=list)
    tombstones: list[str] = field(default_factory=list)

    @property
    def is_empty(self) -> bool:
        return not (self.writes or self.repinned or self.registered or self.renamed or self.tombstones)


def _moves(
    store: GraphStore, session: WriteSession, current: Snapshot, wanted: Snapshot, placement: Placement
) -> _Moves:
    moves = _Moves()
    before = {pin.type_id: pin for pin in current.tables.values()}
    after = {pin.type_id: pin for pin in wanted.tables.values()}
    moves.tombstones += [pin.table_key for type_id, pin in before.items() if type_id not in after]
    moves.renamed += [
        (old.table_key, after[type_id].table_key)
        for type_id, old in before.items()
        if type_id in after and old.table_key != after[type_id].table_key
    ]
    for type_id, new in after.items():
        old = before.get(type_id)
        if old is not None and place(old) == place(new):
            continue
        if session.branch.name != MAIN:
            _put_back_on_branch(store, session, moves, old, new)
        elif new.lance_branch is None:
            _put_back_on_main(store, session, moves, old, new)
        else:
            _bring_rows(store, session, moves, current, wanted, old, new, placement)
    return moves


def _put_back_on_main(
    store: GraphStore, session: WriteSession, moves: _Moves, old: TablePin | None, new: TablePin
) -> None:
    """`main` owns every main line: an older version of one is put back on it."""
    line = table_of(old) if old is not None and old.location == new.location else store.tables.head(new.location)
    if line.version == new.version:
        store.tables.files.published_before(line)
        (moves.registered if old is None else moves.repinned).append(replace(new, owner=session.branch.incarnation))
    else:
        moves.writes.append(_put_back(store, session, line, old, new))


def _put_back_on_branch(
    store: GraphStore, session: WriteSession, moves: _Moves, old: TablePin | None, new: TablePin
) -> None:
    """A branch puts its own line back, points at the main line, or starts a line of its own at the older version."""
    own = old is not None and old.owner == session.branch.incarnation
    if old is not None and own and (old.location, old.lance_branch) == (new.location, new.lance_branch):
        moves.writes.append(_put_back(store, session, table_of(old), old, new))
        return
    if new.lance_branch is not None:
        fork = session.fork(new)
        new = replace(new, lance_branch=fork.branch, version=fork.version, owner=session.branch.incarnation)
    (moves.registered if old is None else moves.repinned).append(new)


def _put_back(
    store: GraphStore, session: WriteSession, line: TableVersion, old: TablePin | None, new: TablePin
) -> TableWrite:
    staged = session.keep(store.tables.stage_restore(line, new.version))
    return TableWrite(new.table_key, new.type_id, new.location, old, line, new.row_count, (staged,))


def _bring_rows(
    store: GraphStore,
    session: WriteSession,
    moves: _Moves,
    current: Snapshot,
    wanted: Snapshot,
    old: TablePin | None,
    new: TablePin,
    placement: Placement,
) -> None:
    """The main line never points into a branch's fork: the rows that differ are written to it.

    Where the columns were other ones too, or the type is gone, a new table gets all rows of that time.
    """
    catalog = store.catalog(wanted.schema_digest)
    type_ = catalog.table(new.table_key)
    assert type_ is not None
    seen, (now, then) = viewed(store, catalog, wanted.schema_digest, (current, wanted))
    _, stored = pin_of(store, current, type_)
    if old is None or stored is None or not reads_as_stored(seen, [table_of(old)]) or not _as_nullable(stored, type_):
        made = made_table(store, session, type_, new, placement)
        (moves.registered if old is None else moves.repinned).append(made)
        return
    merged = merge_table(store, type_, [now], then, now, Resolutions(), placement)
    if merged is not None:
        staged = session.keep(stage_table(store, session.line(old), merged, placement))
        place = (new.table_key, new.type_id, old.location, old, staged.base)
        moves.writes.append(TableWrite(*place, new.row_count, (staged,)))


def _as_nullable(left: GraphType, right: GraphType) -> bool:
    """Whether columns take a null in one state of a type where they do in the other."""
    return {p.id: p.nullable for p in left.properties} == {p.id: p.nullable for p in right.properties}
