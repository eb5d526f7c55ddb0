"""What a migration plan has to know about the data of a snapshot: rows of types, and what is in columns that change."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from omnigraph.ledger.store import GraphStore
from omnigraph.ledger.values import Snapshot, TablePin
from omnigraph.schema.catalog import Catalog
from omnigraph.schema.migration.migrate import DataFacts
from omnigraph.schema.widening import widens
from omnigraph.storage.reading import filters
from omnigraph.storage.values import TableVersion


def data_facts(store: GraphStore, snapshot: Snapshot, accepted: Catalog, desired: Catalog) -> DataFacts:
    """Row counts come from the pins; values are looked at only in columns that the desired schema drops or narrows."""
    kept = {p.id: p for type_ in desired.types() for p in type_.properties}
    live = {type_.id for type_ in desired.types()}
    rows: dict[str, int] = {}
    values: dict[str, int] = {}
    nulls: dict[str, int] = {}
    inexact: dict[str, int] = {}
    for type_ in accepted.types():
        pin = snapshot.pin(type_.table_key)
        rows[type_.id] = pin.row_count
        if type_.id not in live:
            continue
        for property_ in type_.properties:
            new = kept.get(property_.id)
            empty = filters.is_null(property_.column)
            if new is None:
                values[property_.id] = store.tables.count(pinned(pin), filters.not_(empty))
                continue
            if property_.nullable and not new.nullable:
                nulls[property_.id] = store.tables.count(pinned(pin), empty)
            if widens(property_.type, new.type) is False:
                inexact[property_.id] = inexact_values(store, pinned(pin), property_.column)
    return DataFacts(rows, values, nulls, inexact)


def inexact_values(store: GraphStore, table: TableVersion, column: str) -> int:
    """How many whole numbers of a column no 64-bit float holds."""
    count = 0
    for batch in store.tables.scan(table, columns=[column]):
        whole = batch.column(column).drop_null()
        highest = float(2**64 if pa.types.is_unsigned_integer(whole.type) else 2**63)
        numbers = whole.to_numpy(zero_copy_only=False)
        floats = numbers.astype(np.float64)
        # The highest float rounds up out of the range of whole numbers, from which there is no way back.
        fits = floats < highest
        count += int(np.count_nonzero(~fits))
        count += int(np.count_nonzero(floats[fits].astype(numbers.dtype) != numbers[fits]))
    return count


def pinned(pin: TablePin) -> TableVersion:
    """The table version that a pin names."""
    return TableVersion(pin.location, pin.lance_branch, pin.version)
