"""Exact differences between two versions of a table: rows matched by id and compared column by column.

DuckDB does the join, with a bound on its memory and a directory to spill to, so that a difference of any size streams
through.
Floats are equal when they are the same number (a NaN equals a NaN); blobs are equal when their bytes have one digest.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from omnigraph.merge.images import blob_columns, image_reader
from omnigraph.schema.catalog import GraphType
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
            yield connection
        finally:
            connection.close()


def exact_changes(store: GraphStore, left: Side, right: Side, ids: pa.ChunkedArray | None) -> Iterator[pa.RecordBatch]:
    """The rows that differ, by id: batches of `id`, `op` (insert, update, delete), `before` and `after` as structs.

    `ids` are the rows to look at, None for all of them.
    """
    with row_engine() as engine:
        register_images(store, engine, "l", left, ids)
        register_images(store, engine, "r", right, ids)
        yield from engine.sql(changes_sql(left.type, right.type)).to_arrow_reader(BATCH_ROWS)


def register_images(
    store: GraphStore, engine: duckdb.DuckDBPyConnection, name: str, side: Side, ids: pa.ChunkedArray | None
) -> None:
    """Make the rows of one side a relation of the engine."""
    if side.table is None:
        from omnigraph.schema.arrow import table_schema

        engine.register(name, table_schema(side.type).empty_table())
        return
    engine.register(name, image_reader(store, side.table, side.type, ids))


def changes_sql(left: GraphType, right: GraphType, left_name: str = "l", right_name: str = "r") -> str:
    """The query that joins both sides and keeps what differs, ordered by id."""
    op = "case when l.id is null then 'insert' when r.id is null then 'delete' else 'update' end"
    return (
        f"select coalesce(l.id, r.id) as id, {op} as op, "
        f"case when l.id is not null then {struct_sql('l', left)} end as before, "
        f"case when r.id is not null then {struct_sql('r', right)} end as after "
        f"from {left_name} as l full outer join {right_name} as r on l.id = r.id "
        f"where l.id is null or r.id is null or not ({equal_sql('l', left, 'r', right)}) order by 1"
    )


def struct_sql(alias: str, type_: GraphType) -> str:
    """A row as one struct value, blobs as digests."""
    blobs = set(blob_columns(type_))
    parts = [f"{quoted(name)} := {_value(alias, name, name in blobs)}" for name in _columns(type_)]
    return f"struct_pack({', '.join(parts)})"


def equal_sql(left_alias: str, left: GraphType, right_alias: str, right: GraphType) -> str:
    """Whether two rows are equal. Properties are matched by their stable ids, so a rename is no change."""
    pairs: list[tuple[str | None, str | None, bool]] = []
    if left.kind == "edge" and right.kind == "edge":
        pairs += [("src", "src", False), ("dst", "dst", False)]
    left_by_id = {p.id: p.name for p in left.properties}
    right_by_id = {p.id: p.name for p in right.properties}
    blobs = {p.id for p in (*left.properties, *right.properties) if p.name in blob_columns(left) + blob_columns(right)}
    for id_ in dict.fromkeys((*left_by_id, *right_by_id)):
        pairs.append((left_by_id.get(id_), right_by_id.get(id_), id_ in blobs))
    tests = [
        f"{_value(left_alias, a, blob) if a else 'null'} is not distinct from "
        f"{_value(right_alias, b, blob) if b else 'null'}"
        for a, b, blob in pairs
    ]
    return " and ".join(tests) or "true"


def _columns(type_: GraphType) -> Sequence[str]:
    from omnigraph.merge.images import compared_columns

    return compared_columns(type_)


def _value(alias: str, name: str, blob: bool) -> str:
    column = f"{alias}.{quoted(name)}"
    return f"('sha256:' || sha256({column}))" if blob else column


def quoted(name: str) -> str:
    """A column name in SQL."""
    return '"' + name.replace('"', '""') + '"'


def change_rows(batches: Iterator[pa.RecordBatch]) -> Iterator[dict[str, Any]]:
    """Changes as plain Python values, a batch at a time."""
    for batch in batches:
        yield from batch.to_pylist()
