"""The committed rows of a snapshot, looked up for a write, with a note of every table that the write leaned on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.ledger.snapshots import table_of
from omnigraph.ledger.values import Snapshot
from omnigraph.storage.reading.filters import Filter
from omnigraph.storage.values import TableVersion
from omnigraph.write.validate.key_changes import distinct, one_array

if TYPE_CHECKING:
    from omnigraph.ledger.store import GraphStore


class CommittedRows:
    """Reads of one snapshot. `reads` collects the tables whose pins must still hold when the write is committed."""

    def __init__(self, store: GraphStore, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self.reads: set[str] = set()
        self._tables = store.tables

    def version(self, table_key: str) -> TableVersion:
        """The pinned version of a table, noted as read."""
        self.reads.add(table_key)
        return table_of(self.snapshot.pin(table_key))

    def count(self, table_key: str) -> int:
        """How many rows the table has, by its pin: nothing is read."""
        self.reads.add(table_key)
        pin = self.snapshot.tables.get(table_key)
        return pin.row_count if pin is not None else 0

    def rows_with(
        self,
        table_key: str,
        column: str,
        values: pa.Array,
        columns: Sequence[str] | None = None,
        *,
        with_row_address: bool = False,
    ) -> pa.Table:
        """The rows whose `column` is one of `values`; blobs come as bytes."""
        return self._tables.take_ids(
            self.version(table_key),
            values,
            columns,
            key=column,
            blobs="bytes",
            with_row_id=with_row_address,
            with_row_address=with_row_address,
        )

    def unknown_ids(self, table_key: str, ids: pa.ChunkedArray | pa.Array) -> pa.Array:
        """Of these ids those that no row has, each once."""
        asked = distinct(ids)
        if not len(asked):
            return asked
        found = one_array(self.rows_with(table_key, "id", asked, ["id"])["id"])
        return asked.filter(pc.invert(pc.is_in(asked, value_set=found)))

    def matching(self, table_key: str, filter: Filter | None, columns: Sequence[str] | None) -> pa.Table:
        """The rows that a condition lets through, with their row ids and addresses; blobs come as bytes."""
        return self._tables.scan_table(
            self.version(table_key),
            filter=filter,
            columns=columns,
            blobs="bytes",
            with_row_id=True,
            with_row_address=True,
        )

    def scan(self, table_key: str, columns: Sequence[str]) -> Iterator[pa.Table]:
        """All rows, in pieces."""
        for batch in self._tables.scan(self.version(table_key), columns=list(columns)):
            yield pa.Table.from_batches([batch])
