"""Pending rows to staged files: the last step of a mutation or a merge before the commit window."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from omnigraph.ledger.commit.attempts import WriteSession
from omnigraph.ledger.commit.intents import TableWrite
from omnigraph.ledger.values import TablePin
from omnigraph.storage.reading.blobs import with_blobs_as_written
from omnigraph.storage.values import TableVersion
from omnigraph.write.mutate.pending import MutationStaging, PendingTable
from omnigraph.write.validate.key_changes import one_array

if TYPE_CHECKING:
    from omnigraph.ledger.store import GraphStore


def stage_pending(
    store: GraphStore,
    session: WriteSession,
    pin: TablePin,
    staging: MutationStaging,
    table_key: str,
    pending: PendingTable,
) -> TableWrite:
    """Stage the pending state of one table as one transaction."""
    line = session.line(pin)
    rows = storable(store, line, pending.rows)
    if not len(pending.deleted) and staging.is_new(table_key, one_array(pending.rows["id"])):
        # Nothing to look for: these rows are known not to be there.
        return session.table_write(pin, store.tables.stage_append(line, rows, written=session.written))
    upserts = rows if rows.num_rows else None
    there = staging.places(table_key)
    staged = store.tables.stage_change(line, upserts, pending.deleted, there=there, written=session.written)
    return session.table_write(pin, staged)


def storable(store: GraphStore, line: TableVersion, rows: pa.Table) -> pa.Table:
    """Rows in the form that the table stores: its columns by its types, blobs as blobs."""
    return with_blobs_as_written(rows, store.tables.schema(line))
