"""Staging of a merge whose rows are known by their row ids: they are read and marked where they lie.

Fragments of the source of which every row is taken and new are not read at all: the target's line takes their files.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.config import settings
from omnigraph.ledger.layout import physical_schema
from omnigraph.ledger.snapshots import table_of
from omnigraph.merge.compare.images import compared_columns
from omnigraph.merge.compare.lineage import ADDRESS, ROW
from omnigraph.merge.compare.located import SOURCE_ROW, TARGET_ADDRESS, TARGET_ROW, VALUES, Located
from omnigraph.merge.decide.mixed_rows import put_together
from omnigraph.schema.catalog import GraphType
from omnigraph.storage.staging.distributed import delete_rows, write_fragments
from omnigraph.storage.values import StagedWrite, TableVersion
from omnigraph.write.validate.key_changes import one_array

if TYPE_CHECKING:
    from omnigraph.ledger.store import GraphStore
    from omnigraph.merge.decide.three_way import TableMerge

ROWS_PER_UPDATE, ROWS_ANYHOW = 1_000, 1_000_000
"""How many row ids Lance may go through at its commit for each updated row that keeps its own, and in any case."""

ADOPTED_ROWS = 50_000
"""Fragments with fewer rows are written anew, several into one: many small ones would be slow to read."""


def stage_located(store: GraphStore, line: TableVersion, table: TableMerge, located: Located) -> StagedWrite:
    """Stage what a merge does to one table on the target's line."""
    type_, source = table.type, table_of(table.source)
    adopted, fresh = _adopt(store, line, source, located.fresh)
    places = [rows.select(["id", TARGET_ROW, TARGET_ADDRESS]) for rows in (located.compared, located.mixed)]
    addresses = _addresses(store, line, pa.concat_tables(places))
    target = store.tables.write_target(line)
    thinner, emptied = delete_rows(target, addresses) if len(addresses) else ([], [])
    taken = located.compared.filter(pc.is_valid(located.compared[SOURCE_ROW]))
    updated = taken.filter(pc.is_valid(taken[TARGET_ROW]))
    inserted = taken.filter(pc.is_null(taken[TARGET_ROW]))
    written: list[str] = []
    if taken.num_rows or len(fresh) or located.mixed.num_rows:
        # Rows that exist come first: they may keep their row ids.
        batches = chain(
            _compared_rows(store, source, type_, updated),
            _mixed_rows(store, table, located.mixed),
            _compared_rows(store, source, type_, inserted),
            _rows(store, source, type_, fresh),
        )
        kept = [one_array(rows[TARGET_ROW]) for rows in (updated, located.mixed)]
        row_ids = _kept_row_ids(pa.concat_arrays(kept))
        written = write_fragments(target, batches, store.tables.schema(line), row_ids)
    return store.tables.stage_fragments(
        line,
        [*written, *adopted],
        updated_fragments=thinner,
        removed_fragment_ids=emptied,
        rows_updated=updated.num_rows + located.mixed.num_rows,
        rows_deleted=len(addresses) - updated.num_rows - located.mixed.num_rows,
    )


def _kept_row_ids(row_ids: pa.Array) -> list[int]:
    """The row ids that updated rows keep, or none: a few rows from all over a large table get new ones.

    To keep them Lance goes through all row ids between the lowest and the highest at its commit, about 20 ms for each
    million. Nothing leans on an updated row keeping its row id: lineage then tells of a row that went and of one that
    came, and rows are matched by `id`.
    """
    if not len(row_ids):
        return []
    found = pc.min_max(row_ids).as_py()
    if found["max"] - found["min"] > ROWS_ANYHOW + ROWS_PER_UPDATE * len(row_ids):
        return []
    kept: list[int] = row_ids.to_pylist()
    return kept


def _adopt(store: GraphStore, line: TableVersion, source: TableVersion, fresh: pa.Table) -> tuple[list[str], pa.Array]:
    """Fragments taken as they are, and the row ids of the fresh rows that are not in them."""
    rows = one_array(fresh[ROW])
    if len(rows) < ADOPTED_ROWS:
        return [], rows
    fragments = pc.shift_right(one_array(fresh[ADDRESS]), pa.scalar(32, pa.uint64()))
    counted = {entry["values"]: entry["counts"] for entry in pc.value_counts(fragments).to_pylist()}
    whole = {
        fragment
        for fragment, count in store.tables.adoptable(source, line, ADOPTED_ROWS).items()
        if counted.get(fragment) == count
    }
    adopted = store.tables.adopt_fragments(source, line, whole) if whole else None
    if adopted is None:
        return [], rows
    return adopted, rows.filter(pc.invert(pc.is_in(fragments, value_set=pa.array(whole, pa.uint64()))))


def _addresses(store: GraphStore, line: TableVersion, compared: pa.Table) -> pa.Array:
    """Where the rows lie that are replaced or go. One that nobody touched is where it was, unless it was compacted."""
    old = compared.filter(pc.is_valid(compared[TARGET_ROW]))
    addresses = one_array(old[TARGET_ADDRESS])
    fragments = pa.array([fragment.id for fragment in store.tables.fragments(line)], pa.uint64())
    stays = pc.is_in(pc.shift_right(addresses, pa.scalar(32, pa.uint64())), value_set=fragments)
    moved = one_array(old[TARGET_ROW]).filter(pc.invert(stays))
    found = store.tables.take_rows(line, moved, [ADDRESS])[ADDRESS].chunks if len(moved) else ()
    return pa.concat_arrays([addresses.filter(stays), *found])


def _compared_rows(
    store: GraphStore, source: TableVersion, type_: GraphType, rows: pa.Table
) -> Iterator[pa.RecordBatch]:
    if rows.num_rows and pa.types.is_struct(rows.schema.field(VALUES).type):
        values = pa.Table.from_struct_array(one_array(rows[VALUES]))
        yield from values.select(list(compared_columns(type_))).cast(physical_schema(type_)).to_batches()
    else:
        yield from _rows(store, source, type_, one_array(rows[SOURCE_ROW]))


def _mixed_rows(store: GraphStore, table: TableMerge, rows: pa.Table) -> Iterator[pa.RecordBatch]:
    assert table.target is not None
    columns, schema = list(compared_columns(table.type)), physical_schema(table.type)
    step = settings().merge_stage_batch_rows
    for start in range(0, rows.num_rows, step):
        piece = rows.slice(start, step)
        ours, theirs = (
            store.tables.take_rows(table_of(pin), one_array(piece[row]), columns).select(columns)
            for pin, row in ((table.target, TARGET_ROW), (table.source, SOURCE_ROW))
        )
        wanted = pc.index_in(one_array(piece["id"]), value_set=one_array(table.mixed["id"]))
        yield from put_together(ours, theirs, one_array(table.mixed["columns"]).take(wanted)).cast(schema).to_batches()


def _rows(store: GraphStore, source: TableVersion, type_: GraphType, row_ids: pa.Array) -> Iterator[pa.RecordBatch]:
    columns, schema = list(compared_columns(type_)), physical_schema(type_)
    step = settings().merge_stage_batch_rows
    for start in range(0, len(row_ids), step):
        piece = row_ids.slice(start, step)
        rows = store.tables.take_rows(source, piece, columns).select(columns)
        assert rows.num_rows == len(piece), f"{source} lost rows that its lineage has"
        yield from rows.cast(schema).to_batches()
