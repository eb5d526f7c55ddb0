"""From what a merge decided to staged writes on the target's own lines.

A line owns its data: nothing of the target may point into a fork of the source, or deleting the source would take it
along. Only a table that the target still inherits, and that the source has on the main line, is taken over by pointer.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from omnigraph.ledger.attempts import WriteSession
from omnigraph.ledger.intents import TableWrite
from omnigraph.ledger.layout import physical_schema
from omnigraph.ledger.snapshots import table_of
from omnigraph.ledger.values import Snapshot, TablePin
from omnigraph.merge.images import blob_columns, compared_columns
from omnigraph.merge.three_way import TableMerge
from omnigraph.storage.blobs import with_blobs_as_written
from omnigraph.write.graph_change import RowChanges

if TYPE_CHECKING:
    from omnigraph.ledger.store import GraphStore


@dataclass(frozen=True)
class Staged:
    """The writes of a merge, and the tables that it takes over by pointer."""

    writes: tuple[TableWrite, ...]
    repinned: tuple[TablePin, ...]


def row_changes(store: GraphStore, table: TableMerge) -> RowChanges:
    """The rows that the merge writes to one table and the ids it deletes, for validation and for staging."""
    columns = list(compared_columns(table.type))
    blobs = "bytes" if blob_columns(table.type) else "descriptors"
    rows = store.tables.take_ids(table_of(table.source), table.take, columns, blobs=blobs)
    if table.given:
        rows = pa.concat_tables([rows, _given(table, rows.schema)])
    return RowChanges(rows if rows.num_rows else None, table.delete)


def stage(
    store: GraphStore,
    session: WriteSession,
    base: Snapshot,
    target: Snapshot,
    tables: dict[str, tuple[TableMerge, RowChanges]],
) -> Staged:
    """Stage the changes of every table."""
    writes: list[TableWrite] = []
    repinned: list[TablePin] = []
    for key, (table, changes) in sorted(tables.items()):
        pin = target.pin(key)
        if _may_point(session, base, pin, table):
            repinned.append(replace(table.source, table_key=key))
            continue
        line = session.line(pin)
        upserts = None
        if changes.upserts is not None:
            upserts = with_blobs_as_written(changes.upserts, physical_schema(table.type))
        staged = store.tables.stage_change(line, upserts, changes.deletes if len(changes.deletes) else None)
        writes.append(session.table_write(pin, staged))
    return Staged(tuple(writes), tuple(repinned))


def _may_point(session: WriteSession, base: Snapshot, pin: TablePin, table: TableMerge) -> bool:
    inherited = pin.owner != session.branch.incarnation
    untouched = base.tables.get(pin.table_key) == pin
    return inherited and untouched and table.source.lance_branch is None and not table.given


def _given(table: TableMerge, schema: pa.Schema) -> pa.Table:
    rows = [{name: row.get(name) for name in schema.names} for row in table.given]
    return pa.Table.from_pylist(rows, schema=schema)
