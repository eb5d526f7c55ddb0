"""The columns of a table while it is being written: the physical schema, with blobs as plain bytes.

Rows travel through decoding, overlay and validation with their blobs as bytes; only the last step before the files are
written puts them into the form that Lance stores.
"""

from __future__ import annotations

import weakref
from collections.abc import Container
from functools import lru_cache

import pyarrow as pa

from omnigraph.schema.arrow import arrow_type
from omnigraph.schema.catalog import EdgeType, GraphType
from omnigraph.schema.types import PropertyType

ENDS = ("src", "dst")


def identity_columns(type_: GraphType) -> tuple[str, ...]:
    """The columns that every table of this kind begins with."""
    return ("id", *ENDS) if isinstance(type_, EdgeType) else ("id",)


def own_column(
    type_: GraphType, name: str, names: Container[str], src: str | None = None, dst: str | None = None
) -> str | None:
    """Which of `id`, `src` and `dst` a column of somebody's data is; None when it is that of a property.

    `names` are all columns, `src` and `dst` those that the caller has named as the ends. `@id`, `@src` and `@dst` are
    always ours; `id`, `src`, `dst`, and `from` and `to` where those are not there, unless a property is called so.
    """
    if name == "@id" or (name == "id" and "id" not in type_.by_name):
        return "id"
    if not isinstance(type_, EdgeType):
        return None
    for end, given, other in (("src", src, "from"), ("dst", dst, "to")):
        if given is not None:
            if name == given:
                return end
            continue
        spellings = [f"@{end}", *(spelling for spelling in (end, other) if spelling not in type_.by_name)]
        if name == next((spelling for spelling in spellings if spelling in names), None):
            return end
    return None


@lru_cache(maxsize=512)
def _fields(names: tuple[str, ...], properties: tuple[tuple[str, PropertyType], ...]) -> pa.Schema:
    fields = [pa.field(name, pa.string()) for name in names]
    fields += [pa.field(name, arrow_type(type_)) for name, type_ in properties]
    return pa.schema(fields)


_empty: dict[int, pa.Table] = {}
"""By the identity of a type, for as long as it lives: a mutation asks half a dozen times, and to hash a type takes
longer than to make its schema."""


def working_schema(type_: GraphType) -> pa.Schema:
    """The columns of the type's table in their order, all nullable: what is missing is found by validation."""
    return empty_rows(type_).schema


def empty_rows(type_: GraphType) -> pa.Table:
    """A table of the type without rows."""
    found = _empty.get(id(type_))
    if found is None:
        schema = _fields(identity_columns(type_), tuple((p.column, p.type) for p in type_.properties))
        found = _empty[id(type_)] = schema.empty_table()
        weakref.finalize(type_, _empty.pop, id(type_), None).atexit = False
    return found
