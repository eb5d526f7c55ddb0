"""The publisher: one staged upsert on `__manifest` makes a set of table versions the state of a branch.

Every publish rewrites the line's single `graph_head` row and is committed strictly, so of two publishes that start from
one state exactly one wins. The loser reads again, checks what it expected, and tries again; a table that moved under it
is a typed conflict. The commit travels in the head row, so a state and its commit can never be apart.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import overload

from omnigraph.config import settings
from omnigraph.errors import (
    BadRequest,
    Conflict,
    ExpectedVersionMismatch,
    LeaseLost,
    RowLevelCasContention,
    StorageError,
    TableMoved,
)
from omnigraph.failpoints import declare, failpoint
from omnigraph.ledger.history.complete_log import known_history, record, record_soon
from omnigraph.ledger.history.dag import first_parents
from omnigraph.ledger.history.log_rows import LogEntry
from omnigraph.ledger.manifest.manifest import ManifestState, state_of
from omnigraph.ledger.manifest.manifest_rows import (
    KEY_COLUMN,
    Row,
    head_row,
    pins_of,
    placed,
    stream_row,
    table_row,
    to_table,
)
from omnigraph.ledger.manifest.stamp import check_for_publish
from omnigraph.ledger.parts import GraphParts
from omnigraph.ledger.values import BranchRef, CommitOperation, GraphCommit, StreamBatch, TablePin, WriterKind
from omnigraph.storage.values import TableVersion

_logger = logging.getLogger("omnigraph.ledger")

declare("publish.before", "The tables are committed, the manifest is not published")
declare("publish.after", "The manifest is published; its commit is not in the commit log yet")


@dataclass(frozen=True, slots=True)
class CommitDraft:
    """A commit before it is published.

    `parent_commit_id` is the head that it was prepared on. Its parent will be the head that it is published on: when
    others came between and moved none of the tables that were expected, that is a later one.
    """

    graph_commit_id: str
    parent_commit_id: str | None
    merged_parent_commit_id: str | None
    actor_id: str | None
    created_at: int
    kind: WriterKind
    changes_data: bool = True
    operations: tuple[CommitOperation, ...] = ()
    about: str | None = None
    batches: tuple[StreamBatch, ...] = ()


@dataclass(frozen=True, slots=True)
class Publication:
    """A batch of changes that become visible together.

    `updates` are new pins of tables that exist, `registered` pins of new ones, `tombstones` keys of tables that go,
    `renamed` pairs of old and new key (a renamed table that also moved has its new key in `updates`). `schema_digest`
    None keeps the schema.
    """

    commit: CommitDraft
    updates: tuple[TablePin, ...] = ()
    registered: tuple[TablePin, ...] = ()
    tombstones: tuple[str, ...] = ()
    renamed: tuple[tuple[str, str], ...] = ()
    schema_digest: str | None = None


Expected = Mapping[str, TablePin | None]


def publish(
    store: GraphParts,
    branch: BranchRef,
    changes: Publication,
    *,
    expected: Expected | None = None,
    told_by_sidecar: bool = False,
    known: ManifestState | None = None,
    log_soon: bool = False,
    checks: Sequence[Callable[[], object]] = (),
) -> GraphCommit:
    """Publish `changes` on `branch` and log the commit. `expected` are the pins that must still be current.

    `known` is the state of the branch as its window's holder has just read it: the first attempt builds on it. With
    `log_soon` a commit of `main` may be logged after this returns, with others. `checks` are the caller's last looks,
    right before the commit: nothing is published when one of them raises.

    `TableMoved` when one is not, `RowLevelCasContention` when the retry budget is spent. Publishing the same commit
    again (recovery does not know whether it happened) returns it and changes nothing. Should this process die before
    the commit is logged, the caller's sidecar tells of it, or else a mark that is put here.
    """
    store.refuse_if_read_only("publish")
    commit_id = changes.commit.graph_commit_id
    if told_by_sidecar:
        commit, logged = _publish(store, branch, changes, expected or {}, known, log_soon, checks)
        if not logged:
            # The sidecar is about to go: its writer is done.
            _trace(commit_id, lambda: store.publish_marks.put(branch, commit_id))
        return commit
    store.publish_marks.put(branch, commit_id)
    try:
        commit, logged = _publish(store, branch, changes, expected or {}, known)
    except (Conflict, BadRequest):
        _trace(commit_id, lambda: store.publish_marks.remove(commit_id))
        raise
    if logged:
        _trace(commit_id, lambda: store.publish_marks.remove(commit_id))
    return commit


def _trace(commit_id: str, change: Callable[[], None]) -> None:
    """Put or remove a mark after a publish, which stands whatever becomes of its mark."""
    try:
        change()
    except StorageError as error:
        _logger.warning("the mark of commit %s could not be put or removed: %s", commit_id, error)


def _publish(
    store: GraphParts,
    branch: BranchRef,
    changes: Publication,
    expected: Expected,
    known: ManifestState | None,
    log_soon: bool = False,
    checks: Sequence[Callable[[], object]] = (),
) -> tuple[GraphCommit, bool]:
    """The commit that was published, and whether it is in the log."""
    budget = settings().publisher_retry_budget
    files: dict[str, str] | None = None
    for attempt in range(budget + 1):
        current = known if known is not None and attempt == 0 else store.manifest.read(branch)
        check_for_publish(current.stamp)
        done = _already_published(store, current, changes.commit)
        if done is not None:
            return done, True
        check_expected(store, branch, current, expected, changes.commit.parent_commit_id)
        changed = _changed_rows(current, changes)
        files = files if files is not None else _added_files(store, branch, current, changes)
        soon = log_soon and branch.manifest_branch is None and bool(settings().commit_log_delay)
        try:
            looked = current is known
            published = _publish_once(store, branch, current, changes, changed, files, checks, looked=looked, soon=soon)
        except LeaseLost:
            raise
        except Conflict:
            if attempt == budget:
                break
            time.sleep(random.uniform(0.005, 0.02) * 2**attempt)
            continue
        failpoint("publish.after")
        own = store.tables.files.added(current.table, published.table)
        entry = LogEntry(published.head, published.tables, current.tables, {**files, **own})
        if store.queue.has_company(branch.name):
            store.manifest.tell(current, published, files)
        if soon:
            return published.head, record_soon(store, branch, entry)
        return published.head, record(store, branch, [entry])
    raise RowLevelCasContention(
        f"publishing on branch `{branch.name}` lost its race {budget + 1} times in a row; nothing was published. "
        "Try again when fewer writers are at work",
        branch=branch.name,
    )


def _added_files(store: GraphParts, branch: BranchRef, current: ManifestState, changes: Publication) -> dict[str, str]:
    """The checksums of the files that become published by this. A line of another branch was summed when that
    published it."""
    before = {pin.type_id: pin for pin in current.tables.values()}
    found: dict[str, str] = {}
    for pin in (*changes.updates, *changes.registered):
        if pin.owner != branch.incarnation:
            continue
        old = before.get(pin.type_id)
        same_line = old is not None and place(old)[:2] == place(pin)[:2]
        earlier = TableVersion(*place(old)) if old is not None and same_line else None
        try:
            found |= store.tables.files.added(earlier, TableVersion(*place(pin)))
        except StorageError as error:
            # A checksum is a help, and no reason to refuse what is committed already.
            _logger.warning("the files of %s have no checksums: %s", pin.table_key, error)
    return found


def check_expected(
    store: GraphParts, branch: BranchRef, current: ManifestState, expected: Expected, since: str | None
) -> None:
    """Raise `TableMoved` when a pin is no longer what was expected. `since` is the head the caller had read."""
    for key in sorted(expected):
        wanted, actual = expected[key], current.tables.get(key)
        if place(wanted) == place(actual):
            continue
        mismatch = ExpectedVersionMismatch(key, wanted.version if wanted else None, actual.version if actual else None)
        raise TableMoved(
            f"{key} on branch `{branch.name}` was published by another writer: version "
            f"{_shown(mismatch.expected)} was expected and it is {_shown(mismatch.actual)} now. Nothing was published; "
            "prepare the write again on the new state",
            mismatch,
            data_changed=partial(table_data_changed, store, current, key, since),
        )


@overload
def place(pin: TablePin) -> tuple[str, str | None, int]: ...


@overload
def place(pin: None) -> None: ...


def place(pin: TablePin | None) -> tuple[str, str | None, int] | None:
    """Where a pin points. A version number means something only together with its line."""
    return None if pin is None else (pin.location, pin.lance_branch, pin.version)


def table_data_changed(store: GraphParts, current: ManifestState, table_key: str, since: str | None) -> bool:
    """Whether a commit on the branch after `since` both moved this table and changed data. True when in doubt."""
    if since is None:
        return True
    graph = known_history(store, current)
    for commit in first_parents(graph, current.head.graph_commit_id):
        if commit.graph_commit_id == since:
            return False
        if commit.changes_data and _moved_table(store, commit, table_key):
            return True
    return True


def _moved_table(store: GraphParts, commit: GraphCommit, table_key: str) -> bool:
    after = store.commits.pins(commit.graph_commit_id)
    before = store.commits.pins(commit.parent_commit_id) if commit.parent_commit_id else None
    if after is None or before is None:
        return True
    return place(after.get(table_key)) != place(before.get(table_key))


def _already_published(store: GraphParts, current: ManifestState, draft: CommitDraft) -> GraphCommit | None:
    if current.head.graph_commit_id == draft.graph_commit_id:
        known_history(store, current)
        return current.head
    if current.head.graph_commit_id == draft.parent_commit_id:
        return None
    # The head moved on since the write was prepared: ours may be among the commits that came between.
    return known_history(store, current).get(draft.graph_commit_id)


def _publish_once(
    store: GraphParts,
    branch: BranchRef,
    current: ManifestState,
    changes: Publication,
    table_rows: list[Row],
    files: dict[str, str],
    checks: Sequence[Callable[[], object]],
    *,
    looked: bool,
    soon: bool,
) -> ManifestState:
    """Publish on a state. `looked`: it was read by the holder of the window, so nobody else moves it meanwhile; who
    does all the same rewrites the head's row too, and Lance refuses the second of them. `soon`: it is logged later."""
    draft = changes.commit
    commit = GraphCommit(
        graph_commit_id=draft.graph_commit_id,
        manifest_branch=branch.manifest_branch,
        manifest_version=current.version + 1,
        parent_commit_id=current.head.graph_commit_id,
        merged_parent_commit_id=draft.merged_parent_commit_id,
        actor_id=draft.actor_id,
        created_at=draft.created_at,
        kind=draft.kind,
        changes_data=draft.changes_data,
        branch=branch.name,
        incarnation=branch.incarnation,
        schema_digest=changes.schema_digest or current.schema_digest,
        operations=draft.operations,
        about=draft.about,
    )
    changed = {row[KEY_COLUMN]: row for row in [*table_rows, head_row(commit, files)]}
    known = {row[KEY_COLUMN]: row for row in current.rows}
    replaced = placed(known[key] for key in changed if key in known)
    rows = to_table(changed.values())
    # On an object store each takes a round trip; what is staged is nothing until it is committed.
    staged, *refusals = store.at_once(
        lambda: store.tables.stage_upsert(current.table, rows, key=KEY_COLUMN, there=replaced),
        *(partial(_refusal, check) for check in checks),
        *_log_ahead(store, current, commit, changed, files, soon=soon),
    )
    refusals = refusals[: len(checks)]
    with store.manifest.arrivals.of(current.table.at(current.version + 1)):
        try:
            for refusal in refusals:
                if refusal is not None:
                    raise refusal
            failpoint("publish.before")
            landed = store.tables.commit_staged(staged, draft.graph_commit_id, looked=looked)
        except Conflict:
            store.tables.abandon(staged)
            raise
        if not changed.keys() <= known.keys():
            # Only the table knows the row ids of rows that are new.
            return store.manifest.at(landed)
        start = max(fragment.id for fragment in store.tables.fragments(landed)) << 32
        moved = {
            key: {**row, "_rowid": known[key]["_rowid"], "_rowaddr": start + offset}
            for offset, (key, row) in enumerate(changed.items())
        }
        return store.manifest.remember(state_of(landed, tuple((known | moved).values())))


def _log_ahead(
    store: GraphParts,
    current: ManifestState,
    commit: GraphCommit,
    changed: dict[str, Row],
    files: dict[str, str],
    *,
    soon: bool,
) -> Sequence[Callable[[], object]]:
    """The file of a commit's row in the log, where that saves a round trip and all that it says is known already."""
    if soon or store.root.is_local or store.tables.files.sums:
        return ()
    rows = {row[KEY_COLUMN]: row for row in current.rows} | changed
    entry = LogEntry(commit, pins_of(tuple(rows.values())), current.tables, files)
    return (partial(store.commits.write_ahead, entry),)


def _refusal(check: Callable[[], object]) -> Exception | None:
    """What a check raises."""
    try:
        check()
    except Exception as error:
        return error
    return None


def _changed_rows(current: ManifestState, changes: Publication) -> list[Row]:
    pins = dict(current.tables)
    rows: dict[str, Row] = {}

    def set_row(pin: TablePin, *, tombstone: bool = False) -> None:
        row = table_row(pin, tombstone=tombstone)
        rows[row[KEY_COLUMN]] = row

    for key in changes.tombstones:
        set_row(_existing(pins, key), tombstone=True)
        del pins[key]
    # All old names go before the new ones come: two tables may change names with each other.
    moved = [replace(_existing(pins, old), table_key=new) for old, new in changes.renamed]
    for old, _ in changes.renamed:
        del pins[old]
    for pin in moved:
        pins[pin.table_key] = pin
        set_row(pin)
    for pin in changes.updates:
        if _existing(pins, pin.table_key).type_id != pin.type_id:
            raise BadRequest(f"the update of {pin.table_key} names another type id than the manifest does")
        pins[pin.table_key] = pin
        set_row(pin)
    for pin in changes.registered:
        if pin.table_key in pins:
            raise Conflict(f"{pin.table_key} is registered on this branch already", table_key=pin.table_key)
        pins[pin.table_key] = pin
        set_row(pin)
    for batch in changes.commit.batches:
        if not current.has_batch(batch):
            row = stream_row(batch)
            rows[row[KEY_COLUMN]] = row
    return [rows[key] for key in sorted(rows)]


def _existing(pins: Mapping[str, TablePin], key: str) -> TablePin:
    if key not in pins:
        raise Conflict(f"{key} is not a table of this branch (any more); prepare the write again", table_key=key)
    return pins[key]


def _shown(version: int | None) -> str:
    return "none" if version is None else str(version)
