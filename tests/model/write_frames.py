"""The records of a load as one table of Arrow, where they can be that: the other way rows are decoded and checked.

A table has every column for every row, and columns have types. So only records of one type that name the same
properties, with values of the right types, become one; what else is wrong with them stays wrong.
"""

from __future__ import annotations

from datetime import date, datetime
from typing import Any

import pyarrow as pa

from tests.model.write_model import Bad, Prop, Type, value_of
from tests.model.write_operations import MODEL

_ARROW = {
    "String": pa.string(),
    "enum": pa.string(),
    "Bool": pa.bool_(),
    "I32": pa.int32(),
    "I64": pa.int64(),
    "U32": pa.uint32(),
    "U64": pa.uint64(),
    "F32": pa.float32(),
    "F64": pa.float64(),
    "Date": pa.date32(),
    "DateTime": pa.timestamp("us", "UTC"),
    "[I32]": pa.list_(pa.int32()),
    "[String]": pa.list_(pa.string()),
    "Vector": pa.list_(pa.float32(), 2),
}


def as_table(records: list[Any]) -> tuple[str, pa.Table] | None:
    """The name of the type and the rows as columns, or None."""
    if not records or not all(isinstance(record, dict) and record.get("data") for record in records):
        return None
    kinds = {f"{'node' if 'type' in each else 'edge'}:{each.get('type') or each.get('edge')}" for each in records}
    type_ = MODEL.types.get(kinds.pop()) if len(kinds) == 1 else None
    if type_ is None or len({frozenset(each["data"]) for each in records}) > 1:
        return None
    try:
        rows = [_row(type_, each) for each in records]
    except (Bad, KeyError):
        return None
    names = [*rows[0]]
    if any([*row] != names for row in rows):
        return None
    own = {"id": pa.string(), "src": pa.string(), "dst": pa.string()}
    types = {name: own.get(name) or _ARROW[type_.props[name].type] for name in names}
    return type_.name, pa.table({name: pa.array([row[name] for row in rows], types[name]) for name in names})


def _row(type_: Type, record: dict[str, Any]) -> dict[str, Any]:
    """One record as plain values. Raises Bad or KeyError for what a table cannot hold."""
    beside = {name: value for name, value in record.items() if name not in ("type", "edge", "data")}
    wanted = {"from", "to"} if type_.ends else set()
    if beside.keys() != wanted or not all(isinstance(value, str) for value in beside.values()):
        raise KeyError
    ends = {"src": beside["from"], "dst": beside["to"]} if type_.ends else {}
    values = {}
    for name in sorted(record["data"]):
        prop = type_.props[name]
        values[name] = _plain(prop, value_of(prop, record["data"][name]))
    return {**ends, **values}


def _plain(prop: Prop, value: Any) -> Any:
    if value is None:
        return None
    if prop.type == "Date":
        return date.fromisoformat(value)
    return datetime.fromisoformat(value) if prop.type == "DateTime" else value
