"""Three versions of one table, row by row: what the target takes from the source, and what collides.

Only rows that the source changed since the base are looked at, so the cost follows the change. The rule for a row: the
same on both sides is nothing to do; unchanged on the target is taken from the source; anything else is a conflict.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.ledger.snapshots import table_of
from omnigraph.ledger.values import Snapshot, TablePin
from omnigraph.merge.bases import Unknown, VirtualBase
from omnigraph.merge.candidates import candidate_ids
from omnigraph.merge.changes import TypeCount
from omnigraph.merge.conflicts import Choice, ConflictKind, MergeConflict, Resolutions
from omnigraph.merge.rows import Side, changes_sql, register_images, row_engine, struct_sql
from omnigraph.schema.catalog import GraphType

if TYPE_CHECKING:
    import duckdb

    from omnigraph.ledger.store import GraphStore


@dataclass(frozen=True)
class TableMerge:
    """What the merge does to one table of the target.

    `take` are ids whose source row is written, `delete` ids that go, `given` rows that a resolution supplied.
    """

    type: GraphType
    source: TablePin
    counts: TypeCount
    take: pa.Array
    delete: pa.Array
    given: tuple[dict[str, Any], ...] = ()
    conflicts: tuple[MergeConflict, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether nothing is written."""
        return not (len(self.take) or len(self.delete) or self.given)


def merge_table(
    store: GraphStore,
    type_: GraphType,
    bases: Sequence[Snapshot],
    source: Snapshot,
    target: Snapshot,
    resolutions: Resolutions,
) -> TableMerge | None:
    """The merge of one table; None when the source did not touch it since the base."""
    key = type_.table_key
    source_pin, target_pin = source.tables[key], target.tables[key]
    if _same(source_pin, target_pin) or any(_same(base.tables.get(key), source_pin) for base in bases):
        return None
    ids = _candidates(store, bases, source_pin, key)
    if ids is not None and len(ids) == 0:
        return None
    with row_engine() as engine:
        _collect(store, engine, type_, bases, source_pin, target_pin, ids)
        return _decide(store, engine, type_, bases, source_pin, resolutions)


def _same(left: TablePin | None, right: TablePin | None) -> bool:
    return (
        left is not None
        and right is not None
        and (left.location, left.lance_branch, left.version) == (right.location, right.lance_branch, right.version)
    )


def _candidates(store: GraphStore, bases: Sequence[Snapshot], source: TablePin, key: str) -> pa.ChunkedArray | None:
    chunks: list[pa.Array] = []
    for base in bases:
        pin = base.tables.get(key)
        if pin is None or pin.location != source.location:
            return None
        found = candidate_ids(store, table_of(pin), table_of(source))
        if found is None:
            return None
        chunks += found.chunks
    return pa.chunked_array([pc.unique(pa.chunked_array(chunks, pa.utf8()))], pa.utf8())


def _collect(
    store: GraphStore,
    engine: duckdb.DuckDBPyConnection,
    type_: GraphType,
    bases: Sequence[Snapshot],
    source: TablePin,
    target: TablePin,
    ids: pa.ChunkedArray | None,
) -> None:
    """Make `merged`: the rows that the source changed since the (first) base, with the target's version of each."""
    base_pin = bases[0].tables.get(type_.table_key)
    base_side = Side(table_of(base_pin) if base_pin else None, type_)
    register_images(store, engine, "l", base_side, ids)
    register_images(store, engine, "r", Side(table_of(source), type_), ids)
    if len(bases) > 1:
        # With several bases any row that one of them holds differently may matter: keep all candidates.
        _keep_all(engine, type_)
    else:
        engine.execute(f"create temp table changed as {changes_sql(type_, type_)}")
    if len(bases) == 1 and _same(base_pin, target):
        engine.execute("create temp table merged as select id, before as b, after as s, before as t from changed")
        return
    changed = pa.chunked_array(engine.sql("select id from changed").to_arrow_table().column("id"))
    register_images(store, engine, "t", Side(table_of(target), type_), changed.cast(pa.utf8()))
    engine.execute(
        "create temp table merged as select c.id, c.before as b, c.after as s, "
        f"case when t.id is not null then {struct_sql('t', type_)} end as t "
        "from changed as c left join t on t.id = c.id"
    )


def _keep_all(engine: duckdb.DuckDBPyConnection, type_: GraphType) -> None:
    engine.execute(
        "create temp table changed as select coalesce(l.id, r.id) as id, "
        f"case when l.id is not null then {struct_sql('l', type_)} end as before, "
        f"case when r.id is not null then {struct_sql('r', type_)} end as after "
        "from l full outer join r on l.id = r.id"
    )


def _decide(
    store: GraphStore,
    engine: duckdb.DuckDBPyConnection,
    type_: GraphType,
    bases: Sequence[Snapshot],
    source: TablePin,
    resolutions: Resolutions,
) -> TableMerge:
    engine.execute("create temp table differing as select * from merged where s is distinct from t")
    if len(bases) > 1:
        taken, deleted, colliding = _by_virtual_base(store, engine, type_, bases)
    else:
        clean = "t is not distinct from b"
        taken = _ids(engine, f"select id from differing where {clean} and s is not null")
        deleted = _ids(engine, f"select id from differing where {clean} and s is null")
        colliding = (
            engine.sql(f"select id, b, s, t from differing where not ({clean}) order by id")
            .to_arrow_table()
            .to_pylist()
        )
    return _settled(type_, source, engine, taken, deleted, colliding, resolutions)


def _by_virtual_base(
    store: GraphStore, engine: duckdb.DuckDBPyConnection, type_: GraphType, bases: Sequence[Snapshot]
) -> tuple[list[str], list[str], list[dict[str, Any]]]:
    ids = pa.chunked_array(engine.sql("select id from differing").to_arrow_table().column("id")).cast(pa.utf8())
    virtual = VirtualBase(store, type_, bases, ids)
    taken: list[str] = []
    deleted: list[str] = []
    colliding: list[dict[str, Any]] = []
    for row in engine.sql("select id, s, t from differing order by id").to_arrow_table().to_pylist():
        base = virtual.row(row["id"])
        if base == row["s"]:
            continue
        if base == row["t"]:
            (taken if row["s"] is not None else deleted).append(row["id"])
        else:
            known = None if isinstance(base, Unknown) else base
            colliding.append({"id": row["id"], "b": known, "s": row["s"], "t": row["t"]})
    return taken, deleted, colliding


def _settled(
    type_: GraphType,
    source: TablePin,
    engine: duckdb.DuckDBPyConnection,
    taken: list[str],
    deleted: list[str],
    colliding: list[dict[str, Any]],
    resolutions: Resolutions,
) -> TableMerge:
    """Apply resolutions to what collides; what has no answer is a conflict."""
    given: list[dict[str, Any]] = []
    conflicts: list[MergeConflict] = []
    for row in colliding:
        answered, answer = resolutions.settle(type_.table_key, row["id"])
        if not answered:
            conflicts.append(_conflict(type_, row))
        elif isinstance(answer, dict):
            given.append({**(row["t"] or row["s"] or {}), **answer, "id": row["id"]})
        elif answer is None or (answer is Choice.THEIRS and row["s"] is None):
            if row["t"] is not None:
                deleted.append(row["id"])
        elif answer is Choice.THEIRS:
            taken.append(row["id"])
    take, delete = pa.array(sorted(taken), pa.utf8()), pa.array(sorted(deleted), pa.utf8())
    return TableMerge(
        type_, source, _counts(type_, engine, take, delete, given), take, delete, tuple(given), tuple(conflicts)
    )


def _counts(
    type_: GraphType,
    engine: duckdb.DuckDBPyConnection,
    take: pa.Array,
    delete: pa.Array,
    given: list[dict[str, Any]],
) -> TypeCount:
    engine.register("taken", pa.table({"id": take}))
    found = engine.sql("select count(*) from taken join differing using (id) where t is null").fetchall()
    inserts = int(found[0][0])
    return TypeCount(type_.table_key, inserts, len(take) - inserts + len(given), len(delete))


def _conflict(type_: GraphType, row: dict[str, Any]) -> MergeConflict:
    base, source, target = row["b"], row["s"], row["t"]
    if source is None or target is None:
        kind = ConflictKind.DELETE_VS_UPDATE
        gone, kept = ("source", "target") if source is None else ("target", "source")
        message = f"{type_.name} `{row['id']}` was deleted on the {gone} and changed on the {kept}"
    elif base is None:
        kind = ConflictKind.DIVERGENT_INSERT
        message = f"{type_.name} `{row['id']}` was added on both sides with different values"
    else:
        kind = ConflictKind.DIVERGENT_UPDATE
        message = f"{type_.name} `{row['id']}` was changed on both sides in different ways"
    return MergeConflict(type_.table_key, row["id"], kind, message, base, source, target)


def _ids(engine: duckdb.DuckDBPyConnection, query: str) -> list[str]:
    found: list[str] = engine.sql(query).to_arrow_table().column("id").to_pylist()
    return found
