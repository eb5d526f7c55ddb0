"""Validation of a set of row changes on top of a snapshot, for whoever does not come through a mutation or a load.

A merge hands over what it is about to write to each table; the result is checked as a graph: values, uniqueness, ends,
cardinality, nothing dangling.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa

from omnigraph.ledger.values import Snapshot
from omnigraph.schema.catalog import GraphType
from omnigraph.write.committed import CommittedRows
from omnigraph.write.rows.row_columns import empty_rows, working_schema
from omnigraph.write.rows.rows import Rows
from omnigraph.write.validate.collector import ViolationCollector
from omnigraph.write.validate.graph_rules import check_change
from omnigraph.write.validate.key_changes import TableChange, key_columns, no_ids
from omnigraph.write.validate.value_rules import check_values

if TYPE_CHECKING:
    from omnigraph.ledger.store import GraphStore


@dataclass(frozen=True)
class RowChanges:
    """What happens to one table: whole rows by id (one per id, blobs as bytes or left out), and ids that go.

    `accepted` holds the key columns of further rows that are written: their values were checked when they came into the
    graph, under the same schema. `without_blobs` are further whole rows that are written, their blobs left out.
    """

    upserts: pa.Table | None = None
    deletes: pa.Array = field(default_factory=no_ids)
    accepted: pa.Table | None = None
    without_blobs: pa.Table | None = None


def validate_graph_change(
    store: GraphStore, snapshot: Snapshot, changes: Mapping[str, RowChanges], *, every_violation: bool = False
) -> tuple[ViolationCollector, frozenset[str]]:
    """Everything that is wrong with the graph after the changes, and the tables that were read to find out.

    `every_violation` keeps all of them instead of the first few of each kind. The caller's intent must name the tables
    among its `reads`, so that what was found out still holds when it is committed.
    """
    catalog = store.catalog(snapshot.schema_digest)
    committed = CommittedRows(store, snapshot)
    violations = ViolationCollector(sys.maxsize // 8) if every_violation else ViolationCollector()
    change: dict[str, TableChange] = {}
    for table_key, rows in sorted(changes.items()):
        type_ = catalog.table(table_key)
        if type_ is None:
            continue
        upserts = empty_rows(type_) if rows.upserts is None else rows.upserts
        if upserts.num_rows:
            present = [name for name in working_schema(type_).names if name in upserts.column_names]
            check_values(type_, Rows(table_key, upserts.select(present)), violations)
        keys = upserts.select(list(key_columns(type_)))
        if rows.without_blobs is not None:
            check_values(type_, Rows(table_key, _working(type_, rows.without_blobs)), violations)
        for more in (rows.accepted, rows.without_blobs):
            if more is not None:
                keys = pa.concat_tables([keys, more.select(keys.column_names).cast(keys.schema)])
        change[table_key] = TableChange(keys, rows.deletes)
    check_change(catalog, change, committed, violations)
    return violations, frozenset(committed.reads)


def _working(type_: GraphType, rows: pa.Table) -> pa.Table:
    fields = [field for field in working_schema(type_) if field.name in rows.column_names]
    return rows.select([field.name for field in fields]).cast(pa.schema(fields))
