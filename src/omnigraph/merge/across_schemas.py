"""A merge of branches with different schemas: the schema first, then the rows as that schema has them.

Rows that are taken keep to the rules of both sides. A rule that one side added is checked on the rows of the other
side that stay, and on those that come.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.ledger.snapshots import table_of
from omnigraph.ledger.values import TablePin
from omnigraph.merge.changes import TypeCount
from omnigraph.merge.compare.images import blob_columns, compared_columns, whole_rows
from omnigraph.merge.decide.conflicts import MergeConflict, Resolutions
from omnigraph.merge.decide.fields import MIXED
from omnigraph.merge.decide.graph_conflicts import graph_conflicts
from omnigraph.merge.decide.put_back import put_back_types
from omnigraph.merge.decide.schema_merge import SchemaMerge, lost_by_schema, narrowed_enums
from omnigraph.merge.decide.three_way import TableMerge, merge_table
from omnigraph.merge.placement import IN_PROCESS, Placement
from omnigraph.merge.schema_history import dropped_properties
from omnigraph.merge.stage.stage import row_changes
from omnigraph.schema.catalog import GraphType
from omnigraph.schema.migration.migrate import MigrationPlan
from omnigraph.schema.migration.migration_steps import AddConstraint, RequireProperty
from omnigraph.write.graph_change import RowChanges
from omnigraph.write.validate.key_changes import one_array

if TYPE_CHECKING:
    from omnigraph.ledger.store import GraphStore


@dataclass(frozen=True)
class DecidedAcross:
    """What happens to each table, and every conflict."""

    schema: SchemaMerge
    tables: dict[str, TableMerge]
    conflicts: tuple[MergeConflict, ...]


def decide_across(
    store: GraphStore,
    merge: SchemaMerge,
    answers: Resolutions,
    placement: Placement = IN_PROCESS,
    *,
    forward: bool,
) -> DecidedAcross:
    """Compare the rows of all states under the merged schema. `forward`: the target takes the source's state.

    Where the base has dropped a property that the source has, as when a drop is reverted, every row is compared.
    """
    if merge.conflicts:
        return DecidedAcross(merge, {}, merge.conflicts)
    merge = replace(merge, put_back=put_back_types(store, merge, answers))
    conflicts: list[MergeConflict] = [] if forward else list(lost_by_schema(store, merge, placement))
    if conflicts:
        return DecidedAcross(merge, {}, tuple(conflicts))
    tables: dict[str, TableMerge] = {}
    for type_ in merge.catalog.types():
        key = type_.table_key
        if key not in merge.source.tables:
            continue
        if key in merge.target.tables:
            again = _comes_back(store, merge, type_)
            sides = merge.bases, merge.source, merge.target
            merged = merge_table(merge.store, type_, *sides, answers, placement, every_row=again)
        else:
            merged = _all_rows(merge.store, type_, merge.source.tables[key])
        if merged is None:
            continue
        conflicts += merged.conflicts
        if not merged.is_empty:
            tables[key] = merged
    if not forward:
        changes = {key: row_changes(merge.store, merged) for key, merged in tables.items()}
        changes |= dict(_stricter(store, merge, tables, changes))
        broken, _ = graph_conflicts(merge.store, merge.bases, merge.source, merge.target, changes)
        conflicts += broken
    return DecidedAcross(merge, tables, tuple(conflicts))


def _comes_back(store: GraphStore, merge: SchemaMerge, type_: GraphType) -> bool:
    """Whether the source has a property that the history of a base had and dropped."""
    for base in merge.raw_bases:
        known = next((one for one in store.catalog(base.schema_digest).types() if one.id == type_.id), None)
        if known is not None and dropped_properties(store, base, known, type_):
            return True
    return False


def _all_rows(store: GraphStore, type_: GraphType, pin: TablePin) -> TableMerge:
    """A type that the target does not have yet: every row of the source is taken."""
    ids = one_array(store.tables.scan_table(table_of(pin), columns=["id"])["id"]).cast(pa.utf8())
    counts = TypeCount(type_.table_key, inserts=len(ids))
    return TableMerge(type_, pin, None, counts, ids, ids.slice(0, 0), {}, MIXED.empty_table(), False)


def _stricter(
    store: GraphStore, merge: SchemaMerge, tables: dict[str, TableMerge], changes: dict[str, RowChanges]
) -> Iterator[tuple[str, RowChanges]]:
    """For each type with a rule that a side did not have: the rows of that side that will be there, to be checked."""
    fewer = [set(narrowed_enums(store, merge, side).values()) for side in (merge.raw_target, merge.raw_source)]
    for type_ in merge.catalog.types():
        key = type_.table_key
        table, target = tables.get(key), merge.target.tables.get(key)
        of_target = target is not None and (_is_stricter(merge.plan, type_) or type_.id in fewer[0])
        of_source = table is not None and (_is_stricter(merge.source_plan, type_) or type_.id in fewer[1])
        if not of_target and not of_source:
            continue
        change = changes.get(key, RowChanges())
        rows = [] if change.without_blobs is None else [change.without_blobs]
        if of_source and table is not None:
            rows += whole_rows(merge.store, table_of(table.source), type_, table.take, with_blobs=False)
            change = replace(change, accepted=None)
        if of_target and target is not None:
            moved = _moved(table) if table is not None else pa.array([], pa.utf8())
            for piece in whole_rows(merge.store, table_of(target), type_, None, with_blobs=False):
                rows.append(piece.filter(pc.invert(pc.is_in(piece["id"], value_set=moved))))
        together = _together(type_, rows)
        if together is not None:
            yield key, replace(change, without_blobs=together)


def _moved(table: TableMerge) -> pa.Array:
    given = pa.array(table.given, pa.utf8())
    return pa.concat_arrays([table.take, table.delete, one_array(table.mixed["id"]), given])


def _together(type_: GraphType, rows: list[pa.Table]) -> pa.Table | None:
    blobs = blob_columns(type_)
    columns = [column for column in compared_columns(type_) if column not in blobs]
    pieces = [piece.select(columns) for piece in rows if piece.num_rows]
    return pa.concat_tables(pieces, promote_options="permissive") if pieces else None


def _is_stricter(planned: MigrationPlan, type_: GraphType) -> bool:
    return any(
        step.type_id == type_.id and isinstance(step, AddConstraint | RequireProperty) and step.needs_check
        for step in planned.steps
    )
