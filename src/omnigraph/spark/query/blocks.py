"""Blocks inside a block: `not`, `exists`, `optional` and `either` as joins.

An inner block is lowered once, from the different bindings of the outer variables that it uses, and then joined back to
the outer rows on those. Null meets null there: an outer variable that an `optional` left null is a binding too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from omnigraph.query import ir
from omnigraph.spark.query.bindings import Bindings, Names, joined_on
from omnigraph.spark.query.tables import union

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def outer_bindings(rows: Bindings, vars: Sequence[str], columns: Sequence[str], names: Names) -> Bindings:
    """Where an inner block starts: each different binding once, under fresh names, to be joined with `rows` again."""
    places = {key: names() for key in rows.places if key[0] in vars}
    computed = {name: names() for name in columns if name in rows.computed}
    entities = {name: rows.entities[name] for name in columns if name in rows.entities}
    old = [*(rows.places[key] for key in places), *(rows.computed[name] for name in computed)]
    fresh = Bindings(rows.frame, places, computed, entities)
    identity = fresh.identity([*vars, *columns])
    frame = rows.frame.select(*old).toDF(*places.values(), *computed.values())
    return fresh.with_frame(frame.dropDuplicates(identity) if identity else frame.limit(1))


def filtered(rows: Bindings, inner: Bindings, vars: Sequence[str], names: Names, *, found: bool) -> Bindings:
    """The rows for which an inner block has a match (`found`), or has none."""
    keys = inner.identity(vars)
    matches, renamed = _renamed(inner.frame, keys, names)
    pairs = list(zip(rows.identity(vars), renamed, strict=True))
    matches = matches.distinct() if pairs else matches.limit(1)
    how = "left_semi" if found else "left_anti"
    return rows.with_frame(joined_on(rows.frame, matches, pairs, how, nulls_meet=True))


def extended(
    rows: Bindings, inner: Bindings, vars: Sequence[str], binds: Sequence[str], names: Names, *, keep_all: bool
) -> Bindings:
    """The rows with every match of an inner block; with `keep_all` those without one too, what it binds being null."""
    keys = inner.identity(vars)
    places = [key for key in inner.places if key[0] in binds]
    matches, renamed = _renamed(inner.frame, [*keys, *(inner.places[key] for key in places)], names)
    pairs = list(zip(rows.identity(vars), renamed[: len(keys)], strict=True))
    frame = joined_on(rows.frame, matches, pairs, "left" if keep_all else "inner", nulls_meet=True)
    bound = dict(zip(places, renamed[len(keys) :], strict=True))
    met = tuple(filter(None, (rows.any_column(), next(iter(bound.values()), None))))
    return replace(rows, frame=frame.drop(*renamed[: len(keys)]), places={**rows.places, **bound}, met=met)


def united(arms: Sequence[Bindings], operator: ir.Either, names: Names) -> Bindings:
    """The rows of all arms: each different binding of the outer variables and of what all arms bind, once."""
    used = [*operator.vars, *operator.columns]
    binds = [variable.name for variable in operator.binds]
    first = arms[0]
    bound = [key for key in first.places if key[0] in binds]
    kept = [key for key in first.places if key[0] in operator.vars]
    carried = [name for name in operator.columns if name in first.computed]
    fresh = {key: names() for key in (*kept, *bound)}
    computed = {name: names() for name in carried}
    parts = []
    for arm in arms:
        columns = [*(arm.places[key] for key in fresh), *(arm.computed[name] for name in carried)]
        parts.append(arm.frame.select(*columns).toDF(*fresh.values(), *computed.values()))
    rows = Bindings(union(parts), fresh, computed, first.entities)
    identity = rows.identity([*used, *binds])
    return rows.with_frame(rows.frame.dropDuplicates(identity) if identity else rows.frame.limit(1))


def _renamed(frame: DataFrame, columns: Sequence[str], names: Names) -> tuple[DataFrame, list[str]]:
    renamed = [names() for _ in columns]
    return frame.select(*columns).toDF(*renamed), renamed
