"""From what a merge decided to staged writes on the target's own lines.

A line owns its data: nothing of the target may point into a fork of the source, or deleting the source would take it
along. Only a table that the target still inherits, and that the source has on the main line, is taken over by pointer.
Rows go from the source's line to files of the target's in pieces, whatever their number.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.ledger.commit.attempts import WriteSession
from omnigraph.ledger.commit.intents import TableWrite
from omnigraph.ledger.layout import physical_schema
from omnigraph.ledger.snapshots import table_of
from omnigraph.ledger.values import Snapshot, TablePin
from omnigraph.merge.compare.images import whole_rows
from omnigraph.merge.compare.schema_view import TableView, views_of
from omnigraph.merge.decide.fields import MIXED
from omnigraph.merge.decide.given_rows import given_rows
from omnigraph.merge.decide.mixed_rows import mixed_rows
from omnigraph.merge.decide.three_way import TableMerge
from omnigraph.merge.placement import IN_PROCESS, WRITING, Placement, tables_only
from omnigraph.merge.stage.stage_located import stage_located
from omnigraph.schema.catalog import GraphType
from omnigraph.storage.reading.blobs import with_blobs_as_written
from omnigraph.storage.staging.distributed import delete_rows, write_fragments
from omnigraph.storage.values import StagedWrite, TableVersion
from omnigraph.write.graph_change import RowChanges
from omnigraph.write.validate.key_changes import key_columns, one_array

if TYPE_CHECKING:
    from omnigraph.ledger.store import GraphStore


@dataclass(frozen=True)
class Staged:
    """The writes of a merge, and the tables that it takes over by pointer."""

    writes: tuple[TableWrite, ...]
    repinned: tuple[TablePin, ...]


def row_changes(store: GraphStore, table: TableMerge) -> RowChanges:
    """What happens to one table as its rules see it: the source's rows were valid, so only their keys are needed.

    A row that is put together from two valid rows need not be valid.
    """
    if table.located is not None:
        keys = table.located.keys
    else:
        keys = store.tables.take_ids(table_of(table.source), table.take, list(key_columns(table.type)))
    together = None
    if table.target is not None and table.mixed.num_rows:
        pins = table_of(table.source), table_of(table.target)
        mixed = list(mixed_rows(store, table.type, *pins, table.written_mixed, with_blobs=False))
        together = pa.concat_tables(mixed) if mixed else None
    return RowChanges(given_rows(store, table), table.delete, accepted=keys, without_blobs=together)


def stage(
    store: GraphStore,
    session: WriteSession,
    bases: Sequence[Snapshot],
    target: Snapshot,
    tables: Sequence[TableMerge],
    placement: Placement = IN_PROCESS,
) -> Staged:
    """Stage the changes of every table."""
    writes: list[TableWrite] = []
    repinned: list[TablePin] = []
    for table in sorted(tables, key=lambda table: table.type.table_key):
        key = table.type.table_key
        pin = target.pin(key)
        if not table.decided_by_hand and may_point(session, bases, pin, table.source):
            repinned.append(replace(table.source, table_key=key))
        else:
            writes.append(session.table_write(pin, stage_table(store, session.line(pin), table, placement)))
    return Staged(tuple(writes), tuple(repinned))


def may_point(session: WriteSession, bases: Sequence[Snapshot], pin: TablePin, source: TablePin) -> bool:
    """Whether the target can take a table over by pointer: it inherits it, and the source has it on the main line."""
    if pin.owner == session.branch.incarnation or source.lance_branch is not None:
        return False
    return len(bases) == 1 and bases[0].tables.get(pin.table_key) == pin


def stage_table(store: GraphStore, line: TableVersion, table: TableMerge, placement: Placement) -> StagedWrite:
    """Stage what a merge does to one table on the target's line."""
    if table.located is not None:
        return stage_located(store, line, table, table.located)
    given = given_rows(store, table)
    written: list[Written] = []
    taken = table.take
    if placement.spreads(len(taken)):
        views, sides = views_of(store, [table.source]), (table.type, table.source, line)
        work = [WriteWork(store.uri, *sides, part, views=views) for part in placement.parts(taken)]
        written += placement.run(write_part, work, WRITING)
        taken = taken.slice(0, 0)
    mixed = table.written_mixed
    if placement.spreads(mixed.num_rows):
        written += placement.run(write_part, _mixed_work(store, line, table, mixed, placement), WRITING)
        mixed = mixed.slice(0, 0)
    here = WriteWork(store.uri, table.type, table.source, line, taken, table.delete, table.target, mixed)
    written.append(_write(store, here, given))
    addresses = pa.concat_arrays([part.addresses for part in written])
    thinner, emptied = delete_rows(store.tables.write_target(line), addresses)
    updated = sum(part.updated for part in written)
    return store.tables.stage_fragments(
        line,
        [fragment for part in written for fragment in part.fragments],
        updated_fragments=thinner,
        removed_fragment_ids=emptied,
        rows_updated=updated,
        rows_deleted=len(addresses) - updated,
    )


def _mixed_work(
    store: GraphStore, line: TableVersion, table: TableMerge, mixed: pa.Table, placement: Placement
) -> list[WriteWork]:
    start, work = 0, []
    views = views_of(store, [table.source, table.target])
    for part in placement.parts(one_array(mixed["id"])):
        # A slice would travel with the whole table behind it.
        piece = pa.concat_tables([mixed.slice(start, len(part)).take(pa.array(range(len(part))))])
        none = part.slice(0, 0)
        work.append(WriteWork(store.uri, table.type, table.source, line, none, none, table.target, piece, views))
        start += len(part)
    return work


@dataclass(frozen=True)
class WriteWork:
    """Rows to be taken from the source into files of the target's line, rows that go from it, and rows of the target
    that take columns of the source (`mixed`)."""

    uri: str
    type: GraphType
    source: TablePin
    line: TableVersion
    take: pa.Array
    delete: pa.Array = field(default_factory=lambda: pa.array([], pa.utf8()))
    target: TablePin | None = None
    mixed: pa.Table = field(default_factory=MIXED.empty_table)
    views: Mapping[TableVersion, TableView] = field(default_factory=dict)


@dataclass(frozen=True)
class Written:
    """Fragments on disk, the addresses of the rows that they replace or that go, and how many were replaced."""

    fragments: list[str]
    addresses: pa.Array
    updated: int


def write_part(work: WriteWork) -> Written:
    """Write the rows of one part. Runs in any process; nothing moves."""
    return _write(tables_only(work.uri, work.views), work, None)


def _write(store: GraphStore, work: WriteWork, given: pa.Table | None) -> Written:
    touched = [
        work.take,
        work.delete,
        one_array(work.mixed["id"]),
        *([] if given is None else [one_array(given["id"])]),
    ]
    ids = pa.concat_arrays(touched)
    there = store.tables.take_ids(work.line, ids, ["id"], with_row_id=True, with_row_address=True)
    row_ids: list[int] = []
    fragments: list[str] = []
    if len(work.take) or work.mixed.num_rows or given is not None:
        target, schema = store.tables.write_target(work.line), store.tables.schema(work.line)
        # Rows that exist come first: they keep the row ids that are noted while they pass.
        fragments = write_fragments(target, _batches(store, work, given, there, row_ids), schema, row_ids)
    return Written(fragments, one_array(there["_rowaddr"]), len(row_ids))


def _batches(
    store: GraphStore, table: WriteWork, given: pa.Table | None, there: pa.Table, row_ids: list[int]
) -> Iterator[pa.RecordBatch]:
    known, known_rows = one_array(there["id"]), one_array(there["_rowid"])
    schema = physical_schema(table.type)
    exists = pc.is_in(table.take, value_set=known)
    for old, ids in ((True, table.take.filter(exists)), (False, table.take.filter(pc.invert(exists)))):
        pieces = whole_rows(store, table_of(table.source), table.type, ids) if len(ids) else iter(())
        if old and table.target is not None:
            versions = table_of(table.source), table_of(table.target)
            pieces = chain(pieces, mixed_rows(store, table.type, *versions, table.mixed))
        for rows in pieces:
            if old:
                row_ids += known_rows.take(pc.index_in(one_array(rows["id"]), value_set=known)).to_pylist()
            yield from with_blobs_as_written(rows, schema).to_batches()
        if given is not None:
            positions = pc.index_in(one_array(given["id"]), value_set=known)
            own = given.filter(pc.is_valid(positions) if old else pc.is_null(positions))
            if old:
                row_ids += known_rows.take(positions.drop_null()).to_pylist()
            yield from with_blobs_as_written(own, schema).to_batches()
