"""Exact differences between two versions of a table: rows matched by id and compared column by column.

DuckDB does the join and the sort, with a bound on its memory and a directory to spill to, so that a difference of any
size streams through.
Floats are equal when they are the same number (a NaN equals a NaN); blobs are equal when their bytes have one digest.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from omnigraph.merge.images import compared_columns, image_schema, images
from omnigraph.schema.catalog import GraphType, Property
from omnigraph.storage.constants import SCAN_SHARE
from omnigraph.storage.values import TableVersion

if TYPE_CHECKING:
    import duckdb

    from omnigraph.ledger.store import GraphStore

MEMORY_LIMIT = "1GB"
BATCH_ROWS = 8192


@dataclass(frozen=True, slots=True)
class Side:
    """One version of a table with the schema it is read with. None as a version: the table does not exist there."""

    table: TableVersion | None
    type: GraphType


@contextmanager
def row_engine() -> Iterator[duckdb.DuckDBPyConnection]:
    """A DuckDB that spills to a directory of its own, gone afterwards."""
    import duckdb

    with tempfile.TemporaryDirectory(prefix="omnigraph-rows-") as spill:
        connection = duckdb.connect(config={"memory_limit": MEMORY_LIMIT, "temp_directory": spill})
        try:
            connection.execute("set timezone = 'UTC'")
            yield connection
        finally:
            connection.close()


def exact_changes(
    store: GraphStore, engine: duckdb.DuckDBPyConnection, left: Side, right: Side, wanted: str | None
) -> Iterator[pa.RecordBatch]:
    """The rows that differ, by id: batches of `id`, `op` (insert, update, delete), `before` and `after` as structs.

    `wanted` names a relation of the engine with the ids of the rows to look at, None for all of them.
    """
    add_images(store, engine, "l", left, wanted)
    add_images(store, engine, "r", right, wanted)
    yield from engine.sql(f"{changes_sql(left.type, right.type)} order by id").to_arrow_reader(BATCH_ROWS)


def add_images(store: GraphStore, engine: duckdb.DuckDBPyConnection, name: str, side: Side, wanted: str | None) -> None:
    """Make the rows of one side a relation of the engine, to be read once."""
    schema = image_schema(side.type)
    if side.table is None:
        engine.register(name, schema.empty_table())
        return
    ids: pa.Array | None = None
    if wanted is not None and _count(engine, wanted) <= SCAN_SHARE * store.tables.count(side.table) + BATCH_ROWS:
        ids = ids_of(engine, f"select id from {wanted}")
    reader = pa.RecordBatchReader.from_batches(schema, images(store, side.table, side.type, ids))
    if wanted is None or ids is not None:
        engine.register(name, reader)
        return
    engine.register(f"{name}_rows", reader)
    engine.execute(f"create temp view {name} as select * from {name}_rows semi join {wanted} using (id)")


def ids_of(engine: duckdb.DuckDBPyConnection, query: str) -> pa.Array:
    """The ids that a query gives."""
    column = engine.sql(query).to_arrow_table().column("id").cast(pa.utf8())
    return column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)


def changes_sql(left: GraphType, right: GraphType) -> str:
    """The query that joins the relations `l` and `r` and keeps what differs."""
    op = "case when l.id is null then 'insert' when r.id is null then 'delete' else 'update' end"
    return (
        f"select coalesce(l.id, r.id) as id, {op} as op, "
        f"case when l.id is not null then {struct_sql('l', left)} end as before, "
        f"case when r.id is not null then {struct_sql('r', right)} end as after "
        f"from l full outer join r on l.id = r.id "
        f"where l.id is null or r.id is null or not ({equal_sql('l', left, 'r', right)})"
    )


def struct_sql(alias: str, type_: GraphType) -> str:
    """A row as one struct value."""
    parts = [f"{quoted(name)} := {alias}.{quoted(name)}" for name in compared_columns(type_)]
    return f"struct_pack({', '.join(parts)})"


def equal_sql(left_alias: str, left: GraphType, right_alias: str, right: GraphType) -> str:
    """Whether two rows are equal. Properties are matched by their stable ids, so a rename is no change.

    What a schema change did to all rows is no change of theirs: a property that only the right side has is compared
    with the value that rows got when it was added, and one that only the left side has is not compared.
    """
    pairs = [(f"{left_alias}.{end}", f"{right_alias}.{end}") for end in ("src", "dst") if left.kind == "edge"]
    before = {p.id: p for p in left.properties}
    for property_ in right.properties:
        old = before.get(property_.id)
        old_value = _fill(property_) if old is None else f"{left_alias}.{quoted(old.name)}"
        pairs.append((old_value, f"{right_alias}.{quoted(property_.name)}"))
    return " and ".join(f"{a} is not distinct from {b}" for a, b in pairs) or "true"


def quoted(name: str) -> str:
    """A column name in SQL."""
    return '"' + name.replace('"', '""') + '"'


def _fill(property_: Property) -> str:
    if not property_.has_default or property_.default is None:
        return "null"
    if isinstance(property_.default, str):
        return "'" + property_.default.replace("'", "''") + "'"
    return str(property_.default).lower() if isinstance(property_.default, bool) else repr(property_.default)


def _count(engine: duckdb.DuckDBPyConnection, relation: str) -> int:
    found: int = engine.sql(f"select count(*) from {relation}").fetchall()[0][0]
    return found
