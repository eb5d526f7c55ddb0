"""The rows that a mutation of a combined commit finds: those of the snapshot, as the mutations before it left them.

Each mutation runs over these like a single one over a snapshot, with its own pending state, and is folded in when it
has been found good. One that fails has left no trace here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.schema.catalog import Catalog
from omnigraph.storage.reading.filters import Filter
from omnigraph.write.committed import CommittedRows
from omnigraph.write.mutate.pending import PendingTable
from omnigraph.write.rows.row_columns import empty_rows, working_schema
from omnigraph.write.validate.key_changes import no_ids, one_array

PLACES = pa.schema([("id", pa.string()), ("_rowid", pa.uint64()), ("_rowaddr", pa.uint64())])


@dataclass
class CarriedTable:
    """One table after the mutations so far: new and changed rows, ids that are gone, where committed rows lie."""

    rows: pa.Table
    gone: pa.Array = field(default_factory=no_ids)
    places: list[pa.Table] = field(default_factory=list)

    @property
    def hidden(self) -> pa.Array:
        """The ids whose committed rows do not count any more."""
        return pa.concat_arrays([one_array(self.rows["id"]), self.gone])


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
            carried = self.table(table_key)
            carried.rows = _without(carried.rows, pending.deleted)
            carried.rows = pa.concat_tables([_without(carried.rows, one_array(pending.rows["id"])), pending.rows])
            gone = pc.unique(pa.concat_arrays([carried.gone, pending.deleted]))
            carried.gone = gone.filter(pc.invert(pc.is_in(gone, value_set=one_array(carried.rows["id"]))))

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
        wanted = values
        if column == "id" and len(carried.hidden):
            wanted = values.filter(pc.invert(pc.is_in(values, value_set=carried.hidden)))
        names = list(columns) if columns is not None else working_schema(self._catalog.table(table_key)).names  # type: ignore[arg-type]
        own = carried.rows.filter(pc.is_in(carried.rows[column], value_set=values.cast(carried.rows[column].type)))
        if not self._committed.count(table_key):
            return self._placed(own, names, with_row_address)
        asked = list(dict.fromkeys([*names, "id"]))
        found = self._committed.rows_with(table_key, column, wanted, asked, with_row_address=with_row_address)
        if with_row_address:
            self._noted(table_key, found)
        return self._under(carried, found, own, names, with_row_address)

    def matching(self, table_key: str, filter: Filter | None, columns: Sequence[str] | None) -> pa.Table:
        """The committed rows that a condition lets through and still count, and all rows that have changed."""
        found = self._noted(table_key, self._committed.matching(table_key, filter, columns))
        carried = self._carried.get(table_key)
        if carried is None:
            return found
        names = [name for name in found.column_names if not name.startswith("_row")]
        return self._under(carried, found, carried.rows, names, True)

    def scan(self, table_key: str, columns: Sequence[str]) -> Iterator[pa.Table]:
        """All rows as they are now, in pieces."""
        carried = self.table(table_key)
        for piece in self._committed.scan(table_key, list(dict.fromkeys([*columns, "id"]))):
            yield _without(piece, carried.hidden).select(list(columns))
        yield carried.rows.select(list(columns))

    def _noted(self, table_key: str, found: pa.Table) -> pa.Table:
        if found.num_rows and "_rowaddr" in found.column_names:
            self.table(table_key).places.append(found.select(PLACES.names).cast(PLACES))
        return found

    def _under(
        self, carried: CarriedTable, found: pa.Table, own: pa.Table, names: Sequence[str], with_row_address: bool
    ) -> pa.Table:
        """Committed rows that still count, and rows of ours, in one table."""
        left = _without(found, carried.hidden)
        wanted = [*names, "_rowid", "_rowaddr"] if with_row_address else list(names)
        left = left.select(wanted)
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


def _without(rows: pa.Table, ids: pa.Array) -> pa.Table:
    """Rows with other ids than these."""
    if not rows.num_rows or not len(ids):
        return rows
    return rows.filter(pc.invert(pc.is_in(rows["id"], value_set=ids)))
