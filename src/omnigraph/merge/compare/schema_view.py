"""Tables of different schemas, read as if they all had one: what lets a merge compare rows of branches that differ.

A view is the graph's store with other tables in it: those whose columns are not those of the wanted schema are read
through a mapping by stable ids. Everything above reads them under the names of the wanted schema and knows of nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.ledger.snapshots import table_of
from omnigraph.ledger.values import Snapshot, TablePin
from omnigraph.merge.compare.brought_over import brought_column
from omnigraph.merge.schema_history import with_first_defaults
from omnigraph.schema.catalog import OWN_COLUMNS, Catalog, GraphType
from omnigraph.storage.constants import ID_COLUMN
from omnigraph.storage.tables import TableStore
from omnigraph.storage.values import TableVersion

if TYPE_CHECKING:
    from omnigraph.ledger.store import GraphStore


@dataclass(frozen=True, slots=True)
class TableView:
    """The type that a table has, and the one that it is read as."""

    stored: GraphType
    wanted: GraphType

    def columns_to_read(self, columns: Sequence[str]) -> list[str]:
        """The stored columns behind columns of the wanted type; `id` always, so that there are rows to count."""
        before = {p.id: p.column for p in self.stored.properties}
        found = [ID_COLUMN]
        for column in columns:
            property_ = self.wanted.by_column.get(column)
            stored = column if property_ is None else before.get(property_.id)
            found += [stored] if stored is not None and stored not in found else []
        return found

    def stored_key(self, column: str) -> str | None:
        """The stored column with the very values of a wanted one; None when they are made on the way."""
        if column in OWN_COLUMNS:
            return column
        wanted = self.wanted.by_column[column]
        stored = next((p for p in self.stored.properties if p.id == wanted.id), None)
        return stored.column if stored is not None and stored.type == wanted.type else None

    def shown(self, rows: pa.Table, columns: Sequence[str]) -> pa.Table:
        """Stored rows as wanted ones. Columns that are no property's (`_rowid`) stay."""
        before = {p.id: p for p in self.stored.properties}
        found: dict[str, Any] = {}
        for column in columns:
            property_ = self.wanted.by_column.get(column)
            if property_ is None:
                found[column] = rows[column]
            else:
                found[column] = brought_column(rows, before.get(property_.id), property_)
        own = {name: rows[name] for name in rows.column_names if name.startswith("_row") and name not in found}
        return pa.table({**found, **own})


class ViewedTables(TableStore):
    """The tables of a graph, some of them read as another type than they have."""

    def __init__(self, tables: TableStore, views: Mapping[TableVersion, TableView]) -> None:
        self.__dict__.update(tables.__dict__)
        seen: Mapping[TableVersion, TableView] = tables.views if isinstance(tables, ViewedTables) else {}
        self.views: dict[TableVersion, TableView] = {**seen, **views}

    def scan(self, table: TableVersion, **options: Any) -> pa.RecordBatchReader:
        """Stream rows; of a viewed table its `columns` must be named."""
        view = self.views.get(table)
        if view is None:
            return super().scan(table, **options)
        columns = options.pop("columns")
        stored = super().scan(table, columns=view.columns_to_read(columns), **options)

        def batches() -> Iterator[pa.RecordBatch]:
            for batch in stored:
                yield from view.shown(pa.Table.from_batches([batch]), columns).to_batches()

        schema = view.shown(stored.schema.empty_table(), columns).schema
        return pa.RecordBatchReader.from_batches(schema, batches())

    def scan_table(self, table: TableVersion, **options: Any) -> pa.Table:
        """The rows of `scan`, all at once."""
        return self.scan(table, **options).read_all()

    def take_ids(
        self,
        table: TableVersion,
        ids: Sequence[str] | pa.Array | pa.ChunkedArray,
        columns: Sequence[str] | None = None,
        **options: Any,
    ) -> pa.Table:
        """Rows by id, or by another column; of a viewed table its `columns` must be named."""
        view = self.views.get(table)
        if view is None:
            return super().take_ids(table, ids, columns, **options)
        assert columns is not None
        key = options.pop("key", ID_COLUMN)
        stored_key = view.stored_key(key)
        if stored_key is not None:
            read = view.columns_to_read(columns)
            return view.shown(super().take_ids(table, ids, read, key=stored_key, **options), columns)
        rows = self.scan_table(table, columns=[*columns, *([] if key in columns else [key])], **options)
        values = ids if isinstance(ids, pa.Array | pa.ChunkedArray) else pa.array(ids)
        return rows.filter(pc.is_in(rows[key], value_set=values.cast(rows[key].type)))


def reads_as_stored(store: GraphStore, tables: Sequence[TableVersion]) -> bool:
    """Whether rows of these versions are read in the very columns that they are stored in."""
    return not isinstance(store.tables, ViewedTables) or not any(table in store.tables.views for table in tables)


def views_of(store: GraphStore, pins: Sequence[TablePin | None]) -> dict[TableVersion, TableView]:
    """How these tables are read where it is not as they are stored: what another process needs to read them alike."""
    views = store.tables.views if isinstance(store.tables, ViewedTables) else {}
    tables = [table_of(pin) for pin in pins if pin is not None]
    return {table: views[table] for table in tables if table in views}


def viewed(
    store: GraphStore, wanted: Catalog, digest: str, states: Sequence[Snapshot]
) -> tuple[GraphStore, list[Snapshot]]:
    """The store and the states as the wanted schema sees them: tables under its names, without what it has not."""
    views: dict[TableVersion, TableView] = {}
    aligned = []
    for state in states:
        tables: dict[str, TablePin] = {}
        for type_ in wanted.types():
            pin, stored = pin_of(store, state, type_)
            if pin is None or stored is None:
                continue
            tables[type_.table_key] = pin
            if _columns(stored) != _columns(type_):
                views[table_of(pin)] = TableView(stored, with_first_defaults(store, type_, stored))
        aligned.append(replace(state, tables=tables, schema_digest=digest))
    return with_views(store, views), aligned


def with_views(store: GraphStore, views: Mapping[TableVersion, TableView]) -> GraphStore:
    """The store with these tables read through their views."""
    if not views:
        return store
    # A copy of the parts that are open: pickling, which `copy` goes by, would open the graph again.
    seen = object.__new__(type(store))
    seen.__dict__.update(store.__dict__)
    seen.tables = ViewedTables(store.tables, views)
    return seen


def pin_of(store: GraphStore, state: Snapshot, type_: GraphType) -> tuple[TablePin | None, GraphType | None]:
    """The table of a type in a state, by stable id and under the key that the type has, and its type there."""
    for pin in state.tables.values():
        if pin.type_id == type_.id:
            return replace(pin, table_key=type_.table_key), store.catalog(state.schema_digest).table(pin.table_key)
    return None, None


def view_of(store: GraphStore, state: Snapshot, type_: GraphType) -> tuple[GraphStore, TablePin | None]:
    """One table of any state as `type_` sees it."""
    pin, stored = pin_of(store, state, type_)
    if pin is None or stored is None or _columns(stored) == _columns(type_):
        return store, pin
    return with_views(store, {table_of(pin): TableView(stored, with_first_defaults(store, type_, stored))}), pin


def _columns(type_: GraphType) -> list[tuple[str, str, Any]]:
    return [(p.id, p.column, p.type) for p in type_.properties]
