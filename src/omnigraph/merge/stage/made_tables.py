"""Whole tables that a write makes for its branch: with the rows of another line, which the branch then owns.

What a crash leaves of such a table nothing refers to, and `cleanup` takes it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

from omnigraph.failpoints import declare, failpoint
from omnigraph.ledger.commit.attempts import WriteSession
from omnigraph.ledger.layout import physical_schema, table_location
from omnigraph.ledger.snapshots import table_of
from omnigraph.ledger.values import TablePin
from omnigraph.merge.compare.images import whole_rows
from omnigraph.merge.compare.schema_view import views_of
from omnigraph.merge.placement import WRITING, Placement
from omnigraph.merge.stage.stage import WriteWork, write_part
from omnigraph.schema.catalog import GraphType
from omnigraph.storage.reading.blobs import with_blobs_as_written
from omnigraph.storage.values import TableVersion
from omnigraph.write.validate.key_changes import one_array

if TYPE_CHECKING:
    from omnigraph.ledger.store import GraphStore

declare("merge.table_made", "A table with the rows of another line is made for the target (hit once per table)")


def made_table(
    store: GraphStore, session: WriteSession, type_: GraphType, source: TablePin, placement: Placement
) -> TablePin:
    """A table of the branch's own with all rows of the source, in a place that no table was in."""
    location = table_location(type_)
    if store.tables.exists(location):
        location = f"{location}-{session.operation_id.lower()}"
    made = _spread if placement.spreads(source.row_count) else _written
    version = made(store, session, location, type_, source, placement).version
    failpoint("merge.table_made")
    owner = session.branch.incarnation
    return TablePin(type_.table_key, type_.id, location, None, version, source.row_count, owner)


def _written(
    store: GraphStore, session: WriteSession, location: str, type_: GraphType, source: TablePin, placement: Placement
) -> TableVersion:
    schema = physical_schema(type_)

    def batches() -> Iterator[pa.RecordBatch]:
        for rows in whole_rows(store, table_of(source), type_, None):
            yield from with_blobs_as_written(rows, schema).to_batches()

    return store.tables.create(location, schema, rows=batches() if source.row_count else None)


def _spread(
    store: GraphStore, session: WriteSession, location: str, type_: GraphType, source: TablePin, placement: Placement
) -> TableVersion:
    """The rows are written by others. The table has a version without them first, which nothing refers to."""
    empty = store.tables.create(location, physical_schema(type_))
    ids = one_array(store.tables.scan_table(table_of(source), columns=["id"])["id"]).cast(pa.utf8())
    views = views_of(store, [source])
    work = [WriteWork(store.uri, type_, source, empty, part, views=views) for part in placement.parts(ids)]
    fragments = [fragment for part in placement.run(write_part, work, WRITING) for fragment in part.fragments]
    return store.tables.commit_staged(store.tables.stage_fragments(empty, fragments), session.operation_id)
