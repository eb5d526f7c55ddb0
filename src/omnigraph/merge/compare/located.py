"""A merge of one table by lineage: what the source changed over what the target changed, and where each row lies.

Knowing the row ids on both sides, staging reads the source's rows and marks the target's without looking anything up.
Rows that the source inserted and nobody else has (`fresh`) are not even compared, so that a whole load on a branch is
merged for little more than its keys.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from omnigraph.merge.compare.images import blob_columns
from omnigraph.merge.compare.lineage import ADDRESS, LINEAGE_ENDS, ROW, LineageRows, lineage_of
from omnigraph.merge.compare.relational import RowEngine
from omnigraph.merge.compare.row_differences import Side, changes_sql, quoted, struct_sql
from omnigraph.merge.placement import IN_PROCESS, Placement
from omnigraph.schema.catalog import GraphType
from omnigraph.schema.types import EnumType, ScalarType
from omnigraph.storage.values import TableVersion
from omnigraph.write.validate.key_changes import key_columns

if TYPE_CHECKING:
    from omnigraph.ledger.store import GraphStore

SOURCE_ROW, TARGET_ROW, TARGET_ADDRESS, VALUES = "source_row", "target_row", "target_address", "values"

KEPT_ROWS = 20_000
"""Up to so many rows are kept from comparing to writing; more are read again."""


@dataclass(frozen=True)
class Located:
    """Where the rows of a merge lie.

    `compared` has one row for each row that is taken or deleted and not fresh: its `id`, `source_row` and `target_row`
    (row ids, null where there is no row), `target_address` (where the target's row lay when the versions met, null when
    the target touched it since) and `values` (the source's row as a struct, null when it has to be read). `fresh` has
    the key columns, row ids and addresses of the source's fresh rows. `keys` has the key columns of all rows that are
    taken. `mixed` is as `compared`, for rows that are put together from both sides.
    """

    compared: pa.Table
    fresh: pa.Table
    keys: pa.Table
    mixed: pa.Table


@dataclass(frozen=True)
class Uncompared:
    """Rows that are settled without a look at their values: `fresh` are taken, `gone` are deleted.

    `gone` has their ids, row ids and addresses in the target.
    """

    fresh: pa.Table
    gone: pa.Table


NONE_GONE = pa.schema([("id", pa.utf8()), (ROW, pa.uint64()), (ADDRESS, pa.uint64())]).empty_table()


def collect_by_lineage(
    store: GraphStore,
    engine: RowEngine,
    type_: GraphType,
    base: TableVersion,
    source: TableVersion,
    target: TableVersion,
    placement: Placement = IN_PROCESS,
) -> Uncompared | None:
    """Make `differing` as the comparison by id does, with row ids; the rows that need no comparison.

    None when lineage cannot tell, or when so many rows have to be compared that they are better spread.
    """
    meeting = None if blob_columns(type_) else lineage_of(store, type_, [base, source, target])
    if meeting is None:
        return None
    base_way, source_way, target_way = meeting.ways
    rows = LineageRows(store, engine, type_, meeting.table)
    # Only what is new since the base itself is known to be new.
    splits = not base_way
    # What came with the base and is as it was then goes with it: a load is taken back for little more than its ids.
    goes = bool(base_way) and not source_way and base.branch == target.branch and base.version <= target.version
    fresh: pa.Table | None = None
    gone: pa.Table | None = None
    try:
        only = "updated" if splits else None
        if placement.run_all is not None and placement.spreads(rows.touched(source, source_way, only)):
            return None
        rows.add_new("l", base, base_way, with_created=not goes)
        rows.add_new("r", source, source_way, with_created=not splits)
        rows.add_ids("t", target, target_way, with_created=not goes)
        rows.add_met("l", "r")
        if goes:
            gone = rows.taken_back("l", base, "t", target)
        if splits:
            fresh = rows.fresh("r", source, ("t_ids",))
    except LINEAGE_ENDS:
        return None
    rows.add_rows("l")
    rows.add_rows("r")
    sides = Side(base, type_), Side(source, type_)
    engine.execute(f"create temp table changed as {changes_sql(*sides, f', r.{ROW} as {SOURCE_ROW}')}")
    rows.add_new_by_ids("t", target, "changed")
    rows.add_rows("t")
    engine.execute(
        "create temp table differing as select * from (select c.id, c.before as b, c.after as s, "
        f"case when t.id is not null then {struct_sql('t', type_)} end as t, "
        f"c.{SOURCE_ROW}, t.{ROW} as {TARGET_ROW} "
        "from changed as c left join t on t.id = c.id) where s is distinct from t"
    )
    return Uncompared(rows.no_fresh() if fresh is None else fresh, NONE_GONE if gone is None else gone)


def only_inserted(
    store: GraphStore,
    engine: RowEngine,
    type_: GraphType,
    base: TableVersion,
    source: TableVersion,
    target: TableVersion,
) -> pa.Array | None:
    """The ids of the source's rows when all it did was to insert them and nobody else has them; None otherwise.

    This is for tables with blobs: a load of documents is taken over without reading a byte of them to compare.
    """
    meeting = lineage_of(store, type_, [base, source, target])
    if meeting is None or meeting.ways[0]:
        return None
    _, source_way, target_way = meeting.ways
    rows = LineageRows(store, engine, type_, meeting.table)
    try:
        if rows.touched(source, source_way, "updated"):
            return None
        rows.add_ids("t", target, target_way)
        return rows.unshared(source, "t_ids")
    except LINEAGE_ENDS:
        return None


def located_rows(
    engine: RowEngine, type_: GraphType, take: pa.Array, delete: pa.Array, mixed: pa.Array, uncompared: Uncompared
) -> Located:
    """Where the rows lie that were settled."""
    engine.add_table("taken", pa.table({"id": take}))
    engine.add_table("gone", pa.table({"id": delete}))
    engine.add_table("mixed_ids", pa.table({"id": mixed}))
    values = "s" if len(take) <= KEPT_ROWS and _is_plain(type_) else "null"
    rows = f"id, {SOURCE_ROW}, {TARGET_ROW}, {values} as {quoted(VALUES)}"
    settled = (
        f"select {rows} from differing semi join taken using (id) "
        f"union all select id, null, {TARGET_ROW}, null from differing semi join gone using (id)"
    )
    together = f"select id, {SOURCE_ROW}, {TARGET_ROW} from differing semi join mixed_ids using (id)"
    compared, put_together = (
        engine.table(
            f"select settled.*, untouched.{ADDRESS} as {TARGET_ADDRESS} from ({rows_of}) as settled "
            f"left join (select * from m anti join t_touched using ({ROW})) as untouched "
            f"on untouched.{ROW} = settled.{TARGET_ROW}"
        )
        for rows_of in (settled, together)
    )
    names = key_columns(type_)
    columns = ", ".join(f"s.{quoted(name)} as {quoted(name)}" for name in names)
    keys = engine.table(f"select {columns} from differing semi join taken using (id)")
    fresh, gone = uncompared.fresh, uncompared.gone
    new = fresh.select(list(names))
    if gone.num_rows:
        known = {"id": gone["id"], TARGET_ROW: gone[ROW], TARGET_ADDRESS: gone[ADDRESS]}
        columns_of = [known.get(field.name, pa.nulls(gone.num_rows, field.type)) for field in compared.schema]
        compared = pa.concat_tables([compared, pa.table(columns_of, names=compared.column_names).cast(compared.schema)])
    return Located(compared, fresh, pa.concat_tables([new, keys.cast(new.schema)]), put_together)


def _is_plain(type_: GraphType) -> bool:
    """Whether rows come out of the engine in the very types that they are stored in."""
    return all(isinstance(p.type, ScalarType | EnumType) for p in type_.properties)
