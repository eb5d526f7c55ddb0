"""What a migration plan has to know about the data of a snapshot: rows of types, values of properties that may go."""

from __future__ import annotations

from omnigraph.ledger.store import GraphStore
from omnigraph.ledger.values import Snapshot, TablePin
from omnigraph.schema.catalog import Catalog
from omnigraph.schema.migrate import DataFacts
from omnigraph.storage import filters
from omnigraph.storage.values import TableVersion


def data_facts(store: GraphStore, snapshot: Snapshot, accepted: Catalog, desired: Catalog) -> DataFacts:
    """Row counts come from the pins; values are counted only for properties that the desired schema drops."""
    kept = {p.id for type_ in desired.types() for p in type_.properties}
    live = {type_.id for type_ in desired.types()}
    rows: dict[str, int] = {}
    values: dict[str, int] = {}
    for type_ in accepted.types():
        pin = snapshot.pin(type_.table_key)
        rows[type_.id] = pin.row_count
        if type_.id not in live:
            continue
        for property_ in type_.properties:
            if property_.id not in kept:
                values[property_.id] = store.tables.count(pinned(pin), filters.not_(filters.is_null(property_.column)))
    return DataFacts(rows, values)


def pinned(pin: TablePin) -> TableVersion:
    """The table version that a pin names."""
    return TableVersion(pin.location, pin.lance_branch, pin.version)
