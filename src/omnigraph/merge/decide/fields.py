"""A row that both sides changed, field by field: what only the source changed, and what both changed otherwise.

With `granularity="property"` such a row is put together from both sides where no field collides. With `"row"` it is a
conflict all the same, but the conflict can say that the finer rule would settle it. The ends of an edge are one field:
half of one edge and half of another would be an edge that nobody made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import pyarrow as pa

from omnigraph.merge.compare.images import compared_columns
from omnigraph.merge.compare.relational import RowEngine
from omnigraph.merge.decide.conflicts import Choice, Granularity, MergeConflict, row_conflict
from omnigraph.schema.catalog import GraphType

MIXED = pa.schema([("id", pa.utf8()), ("columns", pa.list_(pa.utf8()))])
"""Rows that are the target's but for some columns, which are the source's."""

Row = dict[str, Any] | None
_ENDS = ("src", "dst")


@dataclass(frozen=True, slots=True)
class RowRule:
    """When two changes of one row collide, and which side wins a field that both changed (None: neither)."""

    granularity: Granularity = Granularity.ROW
    strategy: Choice | None = None


def decide_collided(
    engine: RowEngine, type_: GraphType, collided: str, rule: RowRule, unknown: Mapping[str, Row] = MappingProxyType({})
) -> tuple[pa.Table, list[MergeConflict], pa.Table]:
    """The rows that are put together from both sides (see `MIXED`), the conflicts, and what would be put together of
    rows in conflict if their colliding fields were settled.

    `collided` is a query of the engine for rows that both sides changed: `id`, and the three versions `b`, `s` and `t`
    as structs, null where there is none. `unknown` are rows whose base nobody knows, with one to show in its place:
    every field in which the sides differ collides there.
    """
    engine.execute(f"create temp table collided as {fields_sql(type_, collided)}")
    settled = _settled_sql(rule)
    source_wins = rule.strategy is Choice.THEIRS
    columns = "list_concat(theirs, clashing)" if source_wins else "theirs"
    mixed = engine.table(
        f"select id, {columns} as columns from collided where {settled} and len({columns}) > 0 order by id"
    )
    finer = rule.granularity is Granularity.PROPERTY
    partly = f"{str(finer).lower()} and not ({settled}) and len(theirs) > 0"
    below = engine.table(f"select id, theirs as columns from collided where {partly} order by id")
    conflicts = [
        _conflict(type_, row, unknown)
        for row in engine.rows(f"select id, b, s, t, clashing from collided where not ({settled}) order by id")
    ]
    return mixed.cast(MIXED), conflicts, below.cast(MIXED)


def fields_sql(type_: GraphType, rows: str) -> str:
    """Rows with the columns that only the source changed (`theirs`) and those that both changed otherwise."""
    theirs, clashing = [], []
    for field in _fields(type_):
        from_base, other_from_base, apart = (_differs(field, *pair) for pair in (("s", "b"), ("t", "b"), ("s", "t")))
        for column in field:
            name = _text(column)
            theirs.append(f"case when b is not null and {from_base} and not {other_from_base} then {name} end")
            both = f"(b is null or ({from_base} and {other_from_base}))"
            clashing.append(f"case when {both} and {apart} and {_differs([column], 's', 't')} then {name} end")
    there = "s is not null and t is not null"
    return f"select *, {_list(there, theirs)} as theirs, {_list(there, clashing)} as clashing from ({rows})"


def _fields(type_: GraphType) -> list[list[str]]:
    ends = [list(_ENDS)] if type_.kind == "edge" else []
    return [*ends, *([column] for column in compared_columns(type_) if column not in ("id", *_ENDS))]


def _differs(columns: Sequence[str], left: str, right: str) -> str:
    pairs = [(f"struct_extract({left}, {_text(c)})", f"struct_extract({right}, {_text(c)})") for c in columns]
    return "(" + " or ".join(f"{a} is distinct from {b}" for a, b in pairs) + ")"


def _list(condition: str, names: Sequence[str]) -> str:
    found = f"list_filter([{', '.join(names)}], lambda name : name is not null)" if names else "[]"
    return f"case when {condition} then {found} else [] end::varchar[]"


def _text(name: str) -> str:
    return "'" + name.replace("'", "''") + "'"


def _settled_sql(rule: RowRule) -> str:
    if rule.granularity is Granularity.ROW:
        return "false"
    versions = "b is not null and s is not null and t is not null"
    return versions if rule.strategy is not None else f"{versions} and len(clashing) = 0"


def _conflict(type_: GraphType, row: dict[str, Any], unknown: Mapping[str, Row]) -> MergeConflict:
    known = row["id"] not in unknown
    base = row["b"] if known else unknown[row["id"]]
    inserted = known and base is None
    return row_conflict(type_, row["id"], base, row["s"], row["t"], inserted=inserted, clashing=row["clashing"])
