"""Pending rows over committed ones: what a write has done so far, before any of it is on disk.

A statement that reads sees both: committed rows, with the pending ones in the place of those with the same id. Per
table there is one set of pending rows (one per id, the last state wins) and one of deleted ids, so however many
statements touch a table, it is staged once.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.query import ir
from omnigraph.query.evaluate import matching_rows
from omnigraph.query.predicates import bound, leaves
from omnigraph.schema.catalog import Catalog, GraphType
from omnigraph.schema.ids.given_ids import own_forms
from omnigraph.storage.reading.pushdown import split
from omnigraph.write.committed import CommittedRows
from omnigraph.write.load.load_keys import keys_of
from omnigraph.write.mutate.key_lookup import ids_by_key, with_normal_ids
from omnigraph.write.rows.overlay import changed_rows, collapse, overlay
from omnigraph.write.rows.row_columns import empty_rows, working_schema
from omnigraph.write.rows.rows import Rows
from omnigraph.write.validate.key_changes import TableChange, key_columns, no_ids, one_array

_NO_TIME = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_PLACES = pa.schema([("id", pa.string()), ("_rowid", pa.uint64()), ("_rowaddr", pa.uint64())])


@dataclass
class PendingTable:
    """The pending state of one table. `touched` are the columns that may differ from the committed rows."""

    rows: pa.Table
    deleted: pa.Array = field(default_factory=no_ids)
    touched: set[str] = field(default_factory=set)


@dataclass
class _Origins:
    """Where rows of a table came from when they were given as a list: by id the record, by column reported cells."""

    source: str | None
    records: dict[str, int] = field(default_factory=dict)
    failed: dict[str, set[str]] = field(default_factory=dict)


class MutationStaging:
    """The pending state of a write over one snapshot."""

    def __init__(self, catalog: Catalog, committed: CommittedRows) -> None:
        self.catalog = catalog
        self.committed = committed
        self._tables: dict[str, PendingTable] = {}
        self._before: dict[str, pa.Table] = {}
        self._places: dict[str, list[pa.Table]] = {}
        self._origins: dict[str, _Origins] = {}

    def type(self, table_key: str) -> GraphType:
        """The type behind a table key that the compiler has let through."""
        found = self.catalog.table(table_key)
        assert found is not None, table_key
        return found

    def pending(self, table_key: str) -> PendingTable:
        """The pending state of a table, empty at first."""
        if table_key not in self._tables:
            self._tables[table_key] = PendingTable(empty_rows(self.type(table_key)))
        return self._tables[table_key]

    def matching(
        self, table_key: str, predicate: ir.Expr, params: Mapping[str, Any], now: datetime.datetime
    ) -> pa.Table:
        """The whole rows for which a predicate is true."""
        schema = working_schema(self.type(table_key))
        predicate = self._bound(table_key, predicate, params, now)
        pushed, _ = split(predicate)
        if pushed is None or any(pa.types.is_nested(f.type) or pa.types.is_large_binary(f.type) for f in schema):
            # Many rows may come back, or large ones: find out which are meant before they are read whole.
            return self.rows_by_id(table_key, self._matching_ids(table_key, predicate))
        found = self._evaluated(table_key, predicate, schema.names)
        self._remember(table_key, found)
        return found

    def matching_ids(
        self, table_key: str, predicate: ir.Expr, params: Mapping[str, Any], now: datetime.datetime
    ) -> pa.Array:
        """The ids of the rows for which a predicate is true; only what it looks at is read."""
        return self._matching_ids(table_key, self._bound(table_key, predicate, params, now))

    def _bound(self, table_key: str, predicate: ir.Expr, params: Mapping[str, Any], now: datetime.datetime) -> ir.Expr:
        """A predicate without parameters, with ids as they are stored."""
        return with_normal_ids(own_forms(self.catalog, self.type(table_key)), bound(predicate, params, now))

    def _matching_ids(self, table_key: str, predicate: ir.Expr) -> pa.Array:
        wanted = {leaf.column for leaf in leaves(predicate) if isinstance(leaf, ir.Prop)} | {"id"}
        names = [name for name in working_schema(self.type(table_key)).names if name in wanted]
        return one_array(self._evaluated(table_key, predicate, names)["id"])

    def _evaluated(self, table_key: str, predicate: ir.Expr, names: Sequence[str]) -> pa.Table:
        pending = self.pending(table_key)
        rows = pending.rows.select(list(names))
        if self.committed.count(table_key):
            ids = ids_by_key(self.type(table_key), predicate)
            if ids is not None:
                committed = self.committed.rows_with(table_key, "id", ids, names, with_row_address=True)
            else:
                committed = self.committed.matching(table_key, split(predicate)[0], names)
            self._note_places(table_key, committed)
            committed = _in_working_types(self._not_pending(committed, pending), pending.rows.schema)
            rows = pa.concat_tables([committed, rows])
        return rows.filter(matching_rows(predicate, lambda leaf: rows[leaf.column], {}, _NO_TIME, rows.num_rows))

    def upsert(self, rows: Rows, *, known_new: bool = False) -> None:
        """Merge rows by id into what is there, pending or committed; ids that are nowhere become new rows."""
        type_ = self.type(rows.table_key)
        self._note_origins(rows)
        rows = collapse(type_, rows)
        existing = empty_rows(type_) if known_new else self.rows_by_id(rows.table_key, one_array(rows.table["id"]))
        merged, match = overlay(type_, existing, rows)
        touched = (
            None
            if bool((match < 0).any())
            else {c for c in type_.by_column if c not in rows.mentioned or pc.any(rows.mentioned[c]).as_py()}
        )
        self.replace(rows.table_key, merged.table, touched)

    def replace(self, table_key: str, rows: pa.Table, touched: set[str] | None) -> None:
        """Put whole rows in the place of those with the same ids. `touched` names what may be different, None: all."""
        pending = self.pending(table_key)
        if pending.rows.num_rows:
            stays = pc.invert(pc.is_in(pending.rows["id"], value_set=one_array(rows["id"])))
            rows = pa.concat_tables([pending.rows.filter(stays), rows])
        pending.rows = rows
        pending.touched |= set(working_schema(self.type(table_key)).names) if touched is None else touched

    def delete(self, table_key: str, ids: pa.Array) -> pa.Array:
        """Delete rows by id; the ids that were not deleted before."""
        pending = self.pending(table_key)
        fresh = pc.unique(ids)
        if len(pending.deleted):
            fresh = fresh.filter(pc.invert(pc.is_in(fresh, value_set=pending.deleted)))
        pending.deleted = pa.concat_arrays([pending.deleted, fresh])
        return fresh

    def rows_by_id(self, table_key: str, ids: pa.Array) -> pa.Table:
        """Whole rows by id, as they are now."""
        pending = self.pending(table_key)
        schema = working_schema(self.type(table_key))
        own = pending.rows.filter(pc.is_in(pending.rows["id"], value_set=ids))
        left = ids.filter(pc.invert(pc.is_in(ids, value_set=one_array(own["id"])))) if own.num_rows else ids
        if not len(left) or not self.committed.count(table_key):
            return own
        found = self.committed.rows_with(table_key, "id", left, schema.names, with_row_address=True)
        self._note_places(table_key, found)
        if not found.num_rows:
            return own
        found = _in_working_types(self._not_pending(found, pending), schema)
        self._remember(table_key, found)
        return pa.concat_tables([own, found]) if own.num_rows else found

    def rows_at(self, table_key: str, column: str, values: pa.Array) -> pa.Array:
        """The ids of committed rows whose `column` is one of `values`."""
        found = self.committed.rows_with(table_key, column, values, ["id"], with_row_address=True)
        self._note_places(table_key, found)
        return one_array(found["id"])

    def places(self, table_key: str) -> pa.Table:
        """Where the committed rows lie that were read on the way: `id`, `_rowid`, `_rowaddr`, once each.

        Whatever a write changes or deletes was read before, so a row that is not here is not in the table.
        """
        parts = self._places.get(table_key, [_PLACES.empty_table()])
        read = pa.concat_tables(parts)
        if len(parts) == 1:
            return read
        first = read.append_column("at", pa.array(np.arange(read.num_rows))).group_by("id").aggregate([("at", "min")])
        return read.take(first["at_min"])

    def changes(self) -> dict[str, PendingTable]:
        """What the write changes in the end: tables, rows and ids that are as they were are left out."""
        result: dict[str, PendingTable] = {}
        for table_key, pending in sorted(self._tables.items()):
            rows = self._really_changed(table_key, pending.rows)
            if rows.num_rows or len(pending.deleted):
                result[table_key] = PendingTable(rows, pending.deleted, pending.touched)
        return result

    def is_new(self, table_key: str, ids: pa.Array) -> bool:
        """Whether none of the ids was found among committed rows. Only for ids that were looked up."""
        before = self._before.get(table_key)
        return before is None or not pc.any(pc.is_in(ids, value_set=one_array(before["id"]))).as_py()

    def change(self, table_key: str, pending: PendingTable) -> TableChange:
        """A pending table as the cross-row rules see it."""
        type_ = self.type(table_key)
        everything = set(working_schema(type_).names)
        keys = pending.rows.select(list(key_columns(type_)))
        if table_key in self._origins:
            keys = keys_of(type_, self.rows_to_check(table_key, pending))
        return TableChange(
            keys,
            pending.deleted,
            touched=None if pending.touched >= everything else frozenset(pending.touched),
            known_new=self.is_new(table_key, one_array(pending.rows["id"])),
        )

    def rows_to_check(self, table_key: str, pending: PendingTable) -> Rows:
        """Pending rows, with their places in a list of rows and the cells that were reported when it was read."""
        origins = self._origins.get(table_key)
        if origins is None:
            return Rows(table_key, pending.rows)
        ids = pending.rows["id"].to_pylist()
        records = pa.array([origins.records.get(id_) for id_ in ids], pa.int64())
        failed = {
            name: frozenset(row for row, id_ in enumerate(ids) if id_ in cells)
            for name, cells in origins.failed.items()
        }
        return Rows(table_key, pending.rows, origins.source, records, failed=failed)

    def new_ids(self, table_key: str, pending: PendingTable) -> list[str]:
        """The ids of pending rows that are not committed."""
        ids, before = one_array(pending.rows["id"]), self._before.get(table_key)
        if before is not None:
            ids = ids.filter(pc.invert(pc.is_in(ids, value_set=one_array(before["id"]))))
        found: list[str] = ids.to_pylist()
        return found

    def differs(self, table_key: str, rows: pa.Table, column: str) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Which of the rows are new, or have another value in this column than the committed row."""
        before = self._before.get(table_key)
        if before is None:
            return np.ones(rows.num_rows, bool)
        found = pc.index_in(one_array(rows["id"]), value_set=one_array(before["id"]))
        match = pc.fill_null(found, -1).to_numpy(zero_copy_only=False).astype(np.int64)
        return changed_rows(rows.select([column]), before.select([column]), match)

    def _note_origins(self, rows: Rows) -> None:
        if rows.records is None:
            return
        noted = self._origins.setdefault(rows.table_key, _Origins(rows.source))
        ids = rows.table["id"].to_pylist()
        noted.records.update(zip(ids, rows.records.to_pylist()))
        for name, cells in rows.failed.items():
            noted.failed.setdefault(name, set()).update(ids[row] for row in cells)

    def _really_changed(self, table_key: str, rows: pa.Table) -> pa.Table:
        before = self._before.get(table_key)
        if before is None or not rows.num_rows:
            return rows
        found = pc.index_in(one_array(rows["id"]), value_set=one_array(before["id"]))
        match = pc.fill_null(found, -1).to_numpy(zero_copy_only=False).astype(np.int64)
        changed = changed_rows(rows, before, match)
        return rows if bool(changed.all()) else rows.filter(pa.array(changed))

    def _note_places(self, table_key: str, rows: pa.Table) -> None:
        if rows.num_rows:
            self._places.setdefault(table_key, []).append(rows.select(_PLACES.names).cast(_PLACES))

    def _not_pending(self, rows: pa.Table, pending: PendingTable) -> pa.Table:
        for ids in (one_array(pending.rows["id"]), pending.deleted):
            if len(ids) and rows.num_rows:
                rows = rows.filter(pc.invert(pc.is_in(rows["id"], value_set=ids)))
        return rows

    def _remember(self, table_key: str, rows: pa.Table) -> None:
        """Keep committed rows as they were read: what was not changed in the end is not written."""
        committed = self._not_pending(rows, self.pending(table_key))
        before = self._before.get(table_key)
        if before is not None:
            committed = committed.filter(pc.invert(pc.is_in(committed["id"], value_set=one_array(before["id"]))))
            committed = pa.concat_tables([before, committed])
        self._before[table_key] = committed

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._tables))


def _in_working_types(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Rows as storage reads them, in the types and order of the working schema."""
    wanted = pa.schema([schema.field(name) for name in schema.names if name in rows.column_names])
    return rows.select(wanted.names).cast(wanted)
