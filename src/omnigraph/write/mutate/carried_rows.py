"""The rows that a mutation of a combined commit finds: those of the snapshot, as the mutations before it left them.

Each mutation runs over these like a single one over a snapshot, with its own pending state, and is folded in when it
has been found good. One that fails has left no trace here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.schema.catalog import Catalog
from omnigraph.storage.reading.filters import Filter
from omnigraph.write.committed import CommittedRows
from omnigraph.write.mutate.pending import PendingTable
from omnigraph.write.rows.row_columns import empty_rows, working_schema

PLACES = pa.schema([("id", pa.string()), ("_rowid", pa.uint64()), ("_rowaddr", pa.uint64())])


class CarriedTable:
    """One table after the mutations so far: new and changed rows, ids that are gone, where committed rows lie."""

    def __init__(self, none: pa.Table) -> None:
        self._parts = [none]
        self.ids: set[str] = set()
        self.gone: set[str] = set()
        self.places: list[pa.Table] = []

    @property
    def rows(self) -> pa.Table:
        """The new and changed rows, one per id."""
        if len(self._parts) > 1:
            self._parts = [pa.concat_tables(self._parts)]
        return self._parts[0]

    def fold(self, pending: PendingTable) -> None:
        """Take in what one more mutation changed."""
        changed, deleted = pending.rows["id"].to_pylist(), pending.deleted.to_pylist()
        again = self.ids.intersection(changed) | self.ids.intersection(deleted)
        if again:
            self._parts = [_without(self.rows, again)]
        if changed:
            self._parts.append(pending.rows)
        self.ids.difference_update(deleted)
        self.ids.update(changed)
        self.gone.update(deleted)
        self.gone.difference_update(changed)

    def still_count(self, found: pa.Table) -> pa.Table:
        """Of committed rows those that were neither changed nor deleted."""
        return _without(found, self.ids | self.gone) if found.num_rows else found


class CarriedRows(CommittedRows):
    """Committed rows under the changes of earlier mutations. `reads` are the tables that any of them leaned on."""

    def __init__(self, committed: CommittedRows, catalog: Catalog) -> None:
        self.snapshot = committed.snapshot
        self.reads = committed.reads
        self._committed = committed
        self._catalog = catalog
        self._carried: dict[str, CarriedTable] = {}

    def fold(self, changes: Mapping[str, PendingTable]) -> None:
        """Take in what one more mutation changed."""
        for table_key, pending in changes.items():
            self.table(table_key).fold(pending)

    def table(self, table_key: str) -> CarriedTable:
        """The state of one table so far."""
        if table_key not in self._carried:
            type_ = self._catalog.table(table_key)
            assert type_ is not None, table_key
            self._carried[table_key] = CarriedTable(empty_rows(type_))
        return self._carried[table_key]

    def places(self, table_key: str) -> pa.Table:
        """Where the committed rows lie that were read on the way, once each."""
        read = pa.concat_tables([PLACES.empty_table(), *self.table(table_key).places])
        kept = read.append_column("at", pa.array(range(read.num_rows), pa.int64())).group_by("id")
        return read.take(kept.aggregate([("at", "min")])["at_min"])

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._carried))

    def count(self, table_key: str) -> int:
        """How many rows there are; exact only as to whether there are any."""
        carried = self._carried.get(table_key)
        return self._committed.count(table_key) + (carried.rows.num_rows if carried is not None else 0)

    def rows_with(
        self,
        table_key: str,
        column: str,
        values: pa.Array,
        columns: Sequence[str] | None = None,
        *,
        with_row_address: bool = False,
    ) -> pa.Table:
        """The rows whose `column` is one of `values`, as they are now."""
        carried = self._carried.get(table_key)
        if carried is None:
            found = self._committed.rows_with(table_key, column, values, columns, with_row_address=with_row_address)
            return self._noted(table_key, found) if with_row_address and found.num_rows else found
        names = list(columns) if columns is not None else self._names(table_key)
        wanted, own = values, carried.rows
        if column == "id":
            mine = [one for one in values.to_pylist() if one in carried.ids]
            wanted = _other_ids(values, carried)
            own = own.filter(pc.is_in(own["id"], value_set=pa.array(mine, pa.string()))) if mine else own.slice(0, 0)
        elif own.num_rows:
            own = own.filter(pc.is_in(own[column], value_set=values.cast(own[column].type)))
        if not self._committed.count(table_key) or not len(wanted):
            return self._placed(own, names, with_row_address)
        asked = list(dict.fromkeys([*names, "id"]))
        found = self._committed.rows_with(table_key, column, wanted, asked, with_row_address=with_row_address)
        if with_row_address:
            self._noted(table_key, found)
        left = found if column == "id" else carried.still_count(found)
        return self._joined(left, own, names, with_row_address)

    def matching(self, table_key: str, filter: Filter | None, columns: Sequence[str] | None) -> pa.Table:
        """The committed rows that a condition lets through and still count, and all rows that have changed."""
        found = self._noted(table_key, self._committed.matching(table_key, filter, columns))
        carried = self._carried.get(table_key)
        if carried is None:
            return found
        names = [name for name in found.column_names if not name.startswith("_row")]
        return self._joined(carried.still_count(found), carried.rows, names, True)

    def scan(self, table_key: str, columns: Sequence[str]) -> Iterator[pa.Table]:
        """All rows as they are now, in pieces."""
        carried = self.table(table_key)
        for piece in self._committed.scan(table_key, list(dict.fromkeys([*columns, "id"]))):
            yield carried.still_count(piece).select(list(columns))
        yield carried.rows.select(list(columns))

    def _noted(self, table_key: str, found: pa.Table) -> pa.Table:
        if found.num_rows and "_rowaddr" in found.column_names:
            self.table(table_key).places.append(found.select(PLACES.names).cast(PLACES))
        return found

    def _names(self, table_key: str) -> list[str]:
        type_ = self._catalog.table(table_key)
        assert type_ is not None, table_key
        return list(working_schema(type_).names)

    def _joined(self, left: pa.Table, own: pa.Table, names: Sequence[str], with_row_address: bool) -> pa.Table:
        """Committed rows that still count, and rows of ours, in one table."""
        left = left.select([*names, "_rowid", "_rowaddr"] if with_row_address else list(names))
        if not own.num_rows:
            return left
        ours = self._placed(own, names, with_row_address)
        return pa.concat_tables([left.cast(ours.schema), ours]) if left.num_rows else ours

    def _placed(self, own: pa.Table, names: Sequence[str], with_row_address: bool) -> pa.Table:
        """Rows of ours. They lie nowhere yet."""
        rows = own.select(list(names))
        if not with_row_address:
            return rows
        nowhere = pa.nulls(rows.num_rows, pa.uint64())
        return rows.append_column("_rowid", nowhere).append_column("_rowaddr", nowhere)


def _without(rows: pa.Table, ids: Set[str]) -> pa.Table:
    """Rows with other ids than these."""
    if not rows.num_rows or not ids:
        return rows
    return rows.filter(pc.invert(pc.is_in(rows["id"], value_set=pa.array(sorted(ids), pa.string()))))


def _other_ids(values: pa.Array, carried: CarriedTable) -> pa.Array:
    """The ids that no mutation so far has changed or deleted."""
    left = [one for one in values.to_pylist() if one not in carried.ids and one not in carried.gone]
    return values if len(left) == len(values) else pa.array(left, pa.string())
