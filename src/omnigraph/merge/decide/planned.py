"""The change set of a merge before it is made: what would become of which row. Nothing of it is kept in memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.config import settings
from omnigraph.ledger.snapshots import table_of
from omnigraph.merge.changes import EntityChange, Op
from omnigraph.merge.compare.images import blob_columns, digest, digest_rows
from omnigraph.merge.decide.given_rows import given_rows
from omnigraph.merge.decide.three_way import TableMerge
from omnigraph.merge.shown_row import shown_row
from omnigraph.schema.entities import hidden_properties

if TYPE_CHECKING:
    from omnigraph.ledger.store import GraphStore


@dataclass(frozen=True, slots=True)
class PlannedChanges:
    """What a merge would change on its target: iterate as often as needed. Nodes before edges, then type, then id."""

    store: GraphStore
    tables: tuple[TableMerge, ...]

    def __iter__(self) -> Iterator[EntityChange]:
        for table in sorted(self.tables, key=lambda table: (table.type.kind == "edge", table.type.name)):
            yield from _table_changes(self.store, table)


def _table_changes(store: GraphStore, table: TableMerge) -> Iterator[EntityChange]:
    given = _given(store, table)
    mixed = {row["id"]: row["columns"] for row in table.written_mixed.to_pylist()}
    ids = pa.concat_arrays([table.take, table.delete, pa.array([*given, *mixed], pa.utf8())])
    ids = ids.take(pc.array_sort_indices(ids))
    deleted = set(table.delete.to_pylist())
    hidden = hidden_properties(table.type)
    step = settings().merge_stage_batch_rows
    for start in range(0, len(ids), step):
        piece = ids.slice(start, step)
        before = digest_rows(store, table_of(table.target), table.type, piece) if table.target else {}
        after = digest_rows(store, table_of(table.source), table.type, piece) | given
        for id_ in piece.to_pylist():
            old, new = before.get(id_), None if id_ in deleted else after[id_]
            if id_ in mixed and old is not None and new is not None:
                new = old | {column: new[column] for column in mixed[id_]}
            op = Op.DELETE if new is None else Op.INSERT if old is None else Op.UPDATE
            shown: dict[str, Any] = new or old or {}
            ends = (shown["src"], shown["dst"]) if table.type.kind == "edge" else None
            old, new = shown_row(table.type, old), shown_row(table.type, new)
            yield EntityChange(table.type.kind, table.type.name, id_, op, old, new, ends, hidden=hidden)


def _given(store: GraphStore, table: TableMerge) -> dict[str, dict[str, Any]]:
    rows = given_rows(store, table)
    blobs = blob_columns(table.type)
    found = {row["id"]: row for row in rows.to_pylist()} if rows is not None else {}
    for row in found.values():
        row.update({name: digest(row[name]) for name in blobs})
    return found
