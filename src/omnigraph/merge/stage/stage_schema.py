"""The staged side of a merge that brings another schema: columns first, rows on top of them, new tables whole.

Where a table gets other columns and other rows, the rows can only be written to the line as it is after the columns:
they are staged in Phase B, under a transaction id that the sidecar knows from Phase A. A crash between the two is
therefore a write that landed in part, and is taken back.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from uuid import uuid4

from omnigraph.failpoints import declare, failpoint
from omnigraph.ledger.commit.attempts import WriteSession
from omnigraph.ledger.commit.intents import TableCommits, TableWrite
from omnigraph.ledger.snapshots import table_of
from omnigraph.ledger.values import TablePin
from omnigraph.merge.compare.schema_view import reads_as_stored
from omnigraph.merge.decide.schema_merge import SchemaMerge
from omnigraph.merge.decide.three_way import TableMerge
from omnigraph.merge.placement import IN_PROCESS, Placement
from omnigraph.merge.schema_history import with_first_defaults
from omnigraph.merge.stage.made_tables import made_table
from omnigraph.merge.stage.stage import may_point, stage_table
from omnigraph.schema.catalog import GraphType
from omnigraph.schema.migration.migration_steps import DropType, RenameType, Step
from omnigraph.storage.values import StagedWrite
from omnigraph.write.schema.schema_tables import ColumnChanges, column_changes, stage_columns

if TYPE_CHECKING:
    from omnigraph.ledger.store import GraphStore

declare("merge.schema_stored", "The merged schema is stored; no table is staged")
declare("merge.columns_committed", "Phase B: the columns of a table are committed, its rows are not staged yet")


@dataclass
class StagedSchema:
    """What the publish of such a merge says."""

    writes: list[TableWrite] = field(default_factory=list)
    repinned: list[TablePin] = field(default_factory=list)
    registered: list[TablePin] = field(default_factory=list)
    renamed: tuple[tuple[str, str], ...] = ()
    tombstones: tuple[str, ...] = ()
    schema_digest: str | None = None


def stage_schema(
    store: GraphStore,
    session: WriteSession,
    merge: SchemaMerge,
    tables: dict[str, TableMerge],
    placement: Placement = IN_PROCESS,
) -> StagedSchema:
    """Store the merged schema and stage every table that changes."""
    staged = StagedSchema(
        renamed=tuple((s.old_table_key, s.table_key) for s in merge.plan.steps if isinstance(s, RenameType)),
        tombstones=tuple(step.table_key for step in merge.plan.steps if isinstance(step, DropType)),
    )
    if merge.digest != merge.raw_target.schema_digest:
        staged.schema_digest = store.schemas.put(merge.text, merge.catalog)
        failpoint("merge.schema_stored")
    steps: dict[str | None, list[Step]] = defaultdict(list)
    for step in merge.plan.steps:
        steps[step.type_id].append(step)
    before = {type_.id: type_ for type_ in store.catalog(merge.raw_target.schema_digest).types()}
    for type_ in merge.catalog.types():
        old, table = before.get(type_.id), tables.get(type_.table_key)
        if old is None:
            source = merge.source.tables[type_.table_key]
            staged.registered.append(made_table(merge.store, session, type_, source, placement))
            continue
        pin = merge.raw_target.pin(old.table_key)
        if _takes_over(merge, session, type_, table):
            staged.repinned.append(merge.source.tables[type_.table_key])
            continue
        if type_.id in merge.put_back:
            staged.writes.append(_put_back(merge, session, pin, type_))
            continue
        new = with_first_defaults(store, type_, old)
        changes = column_changes(steps[type_.id], old, new)
        if changes:
            staged.writes.append(_columns_and_rows(merge, session, pin, new, changes, table, placement))
        elif table is not None:
            rows = stage_table(merge.store, session.line(pin), table, placement)
            staged.writes.append(_rows(session, pin, type_, rows))
    return staged


def _put_back(merge: SchemaMerge, session: WriteSession, pin: TablePin, type_: GraphType) -> TableWrite:
    source, line = merge.source.tables[type_.table_key], table_of(pin)
    staged = session.keep(merge.store.tables.stage_restore(line, source.version))
    return TableWrite(type_.table_key, pin.type_id, pin.location, pin, line, source.row_count, (staged,))


def _takes_over(merge: SchemaMerge, session: WriteSession, type_: GraphType, table: TableMerge | None) -> bool:
    """Whether the target can point at the source's version: it has the merged columns and lies on the main line."""
    source, target = merge.source.tables.get(type_.table_key), merge.target.tables[type_.table_key]
    if source is None or (table is not None and table.decided_by_hand):
        return False
    if table_of(source) == table_of(target) or not reads_as_stored(merge.store, [table_of(source)]):
        return False
    return may_point(session, merge.bases, target, source)


def _rows(session: WriteSession, pin: TablePin, type_: GraphType, staged: StagedWrite) -> TableWrite:
    session.keep(staged)
    count = pin.row_count + staged.rows_added - staged.rows_deleted
    return TableWrite(type_.table_key, pin.type_id, pin.location, pin, staged.base, count, (staged,))


def _columns_and_rows(
    merge: SchemaMerge,
    session: WriteSession,
    pin: TablePin,
    type_: GraphType,
    changes: ColumnChanges,
    table: TableMerge | None,
    placement: Placement,
) -> TableWrite:
    columns = session.keep(stage_columns(merge.store, session.line(pin), type_, changes, pin.row_count))
    place = (type_.table_key, pin.type_id, pin.location, pin, columns.base)
    if table is None:
        return TableWrite(*place, pin.row_count, (columns,))
    uuid = str(uuid4())
    count = pin.row_count + table.counts.inserts - table.counts.deletes
    return TableWrite(*place, count, (columns,), _rows_later(merge.store, table, uuid, placement), (uuid,))


def _rows_later(
    store: GraphStore, table: TableMerge, uuid: str, placement: Placement
) -> Callable[[TableCommits], None]:
    def apply(commits: TableCommits) -> None:
        failpoint("merge.columns_committed")
        staged = stage_table(store, commits.line, table, placement)
        staged.transaction.uuid = uuid
        store.tables.files.note(staged.new_files)
        commits.commit(staged)

    return apply
