"""Exact differences between two versions of a table: rows matched by id and compared column by column.

The row engine does the join and the sort and spills, so that a difference of any size streams through.
Floats are equal when they are the same number (a NaN equals a NaN); blobs are equal when their bytes have one digest.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from omnigraph.merge.changes import FieldPair
from omnigraph.merge.compare.images import blob_columns, compared_columns, image_schema, images
from omnigraph.merge.compare.lineage import LINEAGE_ENDS, LineageRows, lineage_of
from omnigraph.merge.compare.relational import BATCH_ROWS, RowEngine
from omnigraph.merge.placement import IN_PROCESS, Placement
from omnigraph.schema.arrow import arrow_type
from omnigraph.schema.catalog import GraphType, Property
from omnigraph.schema.entities import entity_columns
from omnigraph.schema.widening import widens
from omnigraph.storage.constants import SCAN_SHARE
from omnigraph.storage.values import TableVersion
from omnigraph.write.schema.schema_tables import default_scalar

if TYPE_CHECKING:
    from omnigraph.ledger.store import GraphStore


@dataclass(frozen=True, slots=True)
class Side:
    """One version of a table with the schema it is read with. None as a version: the table does not exist there.

    `dropped` are the ids of properties that its rows once had and have no longer. `stored` is the type that the table
    has, when its rows are brought to another state of it first.
    """

    table: TableVersion | None
    type: GraphType
    dropped: frozenset[str] = frozenset()
    stored: GraphType | None = None


def as_wide_as(type_: GraphType, other: GraphType | None) -> GraphType:
    """A type whose numbers are as wide as those of another state of it, where they are wider there."""
    wider = {p.id: p.type for p in other.properties} if other is not None else {}
    properties = tuple(
        replace(p, type=wider[p.id]) if p.id in wider and widens(p.type, wider[p.id]) is not None else p
        for p in type_.properties
    )
    return replace(type_, properties=properties) if properties != type_.properties else type_


def exact_changes(
    store: GraphStore, engine: RowEngine, left: Side, right: Side, wanted: str | None
) -> Iterator[pa.RecordBatch]:
    """The rows that differ, by id: batches of `id`, `op` (insert, update, delete), `before` and `after` as structs.

    `wanted` names a relation of the engine with the ids of the rows to look at, None for all of them.
    """
    add_images(store, engine, "l", left, wanted)
    add_images(store, engine, "r", right, wanted)
    yield from engine.batches(f"{changes_sql(left, right)} order by id")


def changed_by_lineage(
    store: GraphStore, engine: RowEngine, left: Side, right: Side, placement: Placement = IN_PROCESS
) -> bool:
    """Make `l` and `r` of the rows that may differ, from their lineage.

    False when it cannot tell, or when there are so many that they are better spread.
    """
    if left.table is None or right.table is None or left.type != right.type or blob_columns(left.type):
        return False
    meeting = lineage_of(store, left.type, [left.table, right.table])
    if meeting is None:
        return False
    rows = LineageRows(store, engine, left.type, meeting.table)
    try:
        ends = zip((left.table, right.table), meeting.ways)
        if placement.run_all is not None and placement.spreads(sum(rows.touched(*end) for end in ends)):
            return False
        for name, side, way in zip(("l", "r"), (left, right), meeting.ways):
            assert side.table is not None
            rows.add_new(name, side.table, way)
        rows.add_met("l", "r")
    except LINEAGE_ENDS:
        return False
    rows.add_rows("l")
    rows.add_rows("r")
    return True


def add_images(store: GraphStore, engine: RowEngine, name: str, side: Side, wanted: str | None) -> None:
    """Make the rows of one side a relation of the engine, to be read once."""
    schema = image_schema(side.type)
    if side.table is None:
        engine.add_table(name, schema.empty_table())
        return
    # Opening the table here tells at once, and in our words, when its version is gone.
    rows = store.tables.count(side.table)
    ids: pa.Array | None = None
    if wanted is not None and engine.count(wanted) <= SCAN_SHARE * rows + BATCH_ROWS:
        ids = engine.ids(f"select id from {wanted}")
    stream = images(store, side.table, side.type, ids, side.stored)
    if wanted is None or ids is not None:
        engine.add_stream(name, schema, stream)
        return
    engine.add_stream(f"{name}_rows", schema, stream)
    engine.execute(f"create temp view {name} as select * from {name}_rows semi join {wanted} using (id)")


def changes_sql(left: Side, right: Side, also: str = "") -> str:
    """The query that joins the relations `l` and `r` and keeps what differs. `also` names further columns of theirs."""
    op = "case when l.id is null then 'insert' when r.id is null then 'delete' else 'update' end"
    return (
        f"select coalesce(l.id, r.id) as id, {op} as op, "
        f"case when l.id is not null then {struct_sql('l', left.type)} end as before, "
        f"case when r.id is not null then {struct_sql('r', right.type)} end as after{also} "
        f"from l full outer join r on l.id = r.id "
        f"where l.id is null or r.id is null or not ({equal_sql('l', left, 'r', right)})"
    )


def struct_sql(alias: str, type_: GraphType) -> str:
    """A row as one struct value."""
    parts = [f"{quoted(name)} := {alias}.{quoted(name)}" for name in compared_columns(type_)]
    return f"struct_pack({', '.join(parts)})"


def equal_sql(left_alias: str, left: Side, right_alias: str, right: Side) -> str:
    """Whether two rows are equal."""
    ends = ("src", "dst") if left.type.kind == "edge" else ()
    pairs = [(f"{left_alias}.{end}", f"{right_alias}.{end}") for end in ends]
    for old, new in matched_properties(left, right):
        old_value = f"{left_alias}.{quoted(old.column)}" if old else _fill(new)
        pairs.append((old_value, f"{right_alias}.{quoted(new.column)}" if new else _fill(old)))
    return " and ".join(f"{a} is not distinct from {b}" for a, b in pairs) or "true"


def matched_properties(left: Side, right: Side) -> Iterator[tuple[Property | None, Property | None]]:
    """The properties that are compared. They are matched by their stable ids, so a rename is no change.

    What a schema change did to all rows is no change of theirs, in whichever direction it is looked at: a property that
    one side does not have yet (None) is compared with the value that rows got when it was added, and one that a side
    has no longer is not compared.
    """
    before = {p.id: p for p in left.type.properties}
    after = {p.id for p in right.type.properties}
    for property_ in right.type.properties:
        old = before.get(property_.id)
        if old is not None or property_.id not in left.dropped:
            yield old, property_
    for property_ in left.type.properties:
        if property_.id not in after and property_.id not in right.dropped:
            yield property_, None


def matched_fields(left: Side, right: Side) -> tuple[FieldPair, ...] | None:
    """The fields that are compared, by the names they are shown with; None when both sides have the same."""
    if left.type.properties == right.type.properties:
        return None
    ends = ("src", "dst") if left.type.kind == "edge" else ()
    before, after = entity_columns(left.type), entity_columns(right.type)
    found = [FieldPair(before[end], after[end]) for end in ends]
    for old, new in matched_properties(left, right):
        only = new if old is None else old if new is None else None
        default = default_scalar(only, arrow_type(only.type)).as_py() if only is not None else None
        found.append(FieldPair(old.name if old else None, new.name if new else None, default))
    return tuple(found)


def quoted(name: str) -> str:
    """A column name in SQL."""
    return '"' + name.replace('"', '""') + '"'


def _fill(property_: Property | None) -> str:
    if property_ is None or property_.default is None:
        return "null"
    if isinstance(property_.default, str):
        return "'" + property_.default.replace("'", "''") + "'"
    return str(property_.default).lower() if isinstance(property_.default, bool) else repr(property_.default)
