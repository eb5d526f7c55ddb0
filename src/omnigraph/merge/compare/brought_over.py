"""Rows of one state of a type as another state of it has them: what makes rows of different schemas comparable.

Properties are matched by their stable ids. One that a side does not have is its default or null, numbers become as wide
as they are there, and what is not there any more is left out.
"""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from omnigraph.schema.arrow import arrow_type
from omnigraph.schema.catalog import GraphType, Property
from omnigraph.schema.types import is_blob
from omnigraph.write.schema.schema_tables import default_scalar, widened


def shared_part(stored: GraphType, wanted: GraphType) -> GraphType:
    """The stored type with only those of its properties that the wanted one has too."""
    kept = {p.id for p in wanted.properties}
    return replace(stored, properties=tuple(p for p in stored.properties if p.id in kept))


def brought_over(rows: pa.Table, stored: GraphType, wanted: GraphType) -> pa.Table:
    """Rows with the columns of `stored` as rows with the columns of `wanted`; our own columns stay."""
    before = {p.id: p for p in stored.properties}
    ends = ("src", "dst") if wanted.kind == "edge" else ()
    columns = {name: rows[name] for name in ("id", *ends)}
    for property_ in wanted.properties:
        old = before.get(property_.id)
        if old is not None and is_blob(property_.type) and old.column not in rows.column_names:
            continue  # Read without its blobs.
        columns[property_.column] = brought_column(rows, old, property_)
    return pa.table(columns)


def brought_column(rows: pa.Table, stored: Property | None, wanted: Property) -> pa.ChunkedArray | pa.Array:
    """The values of one property. Blobs are not looked at, in whatever form they come."""
    if stored is None:
        return pa.repeat(default_scalar(wanted, arrow_type(wanted.type)), rows.num_rows)
    if stored.type == wanted.type or is_blob(wanted.type):
        return rows[stored.column]
    return widened(rows[stored.column], arrow_type(wanted.type))
