"""The answers of DuckDB: tables filled from the model's rows, a query as one SQL statement, rows as Python values."""

from __future__ import annotations

import datetime
import math
from fractions import Fraction
from typing import Any

import duckdb
import numpy as np

from tests.differential import sql, tree
from tests.differential.rows import Tables
from tests.differential.sql import Context, constant, expression, quoted, sql_type
from tests.differential.types import EdgeType, Schema, item_of

Rows = list[dict[str, Any]]


class Oracle:
    """Answers queries over one state of one graph."""

    def __init__(self, schema: Schema, tables: Tables) -> None:
        self.schema = schema
        self.tables = tables
        self.db = duckdb.connect(":memory:", config={"threads": 1})
        self.db.create_function("exact_sum", exact_sum, ["DOUBLE[]"], "DOUBLE", null_handling="special")
        self.db.create_function("exact_mean", exact_mean, ["DOUBLE[]"], "DOUBLE", null_handling="special")
        self.db.create_function("exact_ratio", exact_ratio, ["HUGEINT", "BIGINT"], "DOUBLE", null_handling="special")
        for kind, rows in tables.items():
            self._fill(kind, [*rows.values()])

    def _fill(self, kind: str, rows: list[Any]) -> None:
        properties = self.schema.properties(kind)
        is_edge = isinstance(self.schema.find(kind), EdgeType)
        own = ['"@id" VARCHAR', '"@type" VARCHAR', *(['"@src" VARCHAR', '"@dst" VARCHAR'] if is_edge else [])]
        columns = [*own, *(f"{quoted(each.name)} {sql_type(each.type)}" for each in properties)]
        self.db.execute(f"CREATE TABLE {quoted(kind)} ({', '.join(columns)})")
        lines = []
        for row in rows:
            values = dict(row.values)
            texts = [row.id, kind.split(":")[1], *([row.src, row.dst] if is_edge else [])]
            cells = [constant(text, "String") for text in texts]
            cells += [constant(values[each.name], each.type) for each in properties]
            lines.append(f"({', '.join(cells)})")
        if lines:
            self.db.execute(f"INSERT INTO {quoted(kind)} VALUES {', '.join(lines)}")

    def ask(self, query: tree.Query) -> Rows:
        """The rows of a query, in their order."""
        names = [each.alias or own_name(each.expr) for each in query.columns]
        found = self.db.execute(statement(query, self.schema)).fetchall()
        types = [each.expr.type for each in query.columns]
        return [
            {name: self._shown(value, type_) for name, value, type_ in zip(names, row, types, strict=True)}
            for row in found
        ]

    def _shown(self, value: Any, type_: str) -> Any:
        """A value as the product's Python rows have it."""
        if value is None:
            return None
        if ":" in type_:
            types = {each.name: each.type for each in self.schema.properties(type_)}
            shown = {"@id": value["@id"]}
            for name, own in types.items():
                if own != "Vector" and value[name] is not None:
                    shown[name] = self._shown(value[name], own)
            return shown
        item = item_of(type_)
        if item is not None:
            return [self._shown(each, item) for each in value]
        if type_ == "F32":
            return float(str(np.float32(value)))
        if isinstance(value, datetime.datetime):
            return value.replace(tzinfo=datetime.UTC)
        return value


def own_name(expr: tree.Expr) -> str:
    """How a column without an alias is called."""
    match expr:
        case tree.Prop(var, name):
            return f"{var}.{name}"
        case tree.Entity(var) | tree.Alias(var):
            return var
    raise TypeError(f"a column of {type(expr).__name__} needs an alias")


def statement(query: tree.Query, schema: Schema) -> str:
    """A query as one SQL statement."""
    ctx = Context(schema, {each.name: each for each in query.parameters})
    base = sql.select(query.clauses, ctx)
    ties = [f'{bound.ref}."@id"' for bound in ctx.variables.values()]
    ctx.aliases = {each.alias: each.expr for each in query.columns if each.alias}
    columns = [each.expr for each in query.columns]
    if any(aggregates(each) for each in columns):
        base, ties = grouped(base, query, ctx)
    wanted = ", ".join(expression(each, ctx) for each in columns)
    order = [sort_key(each, ctx) for each in query.order] + [f"{each} ASC NULLS FIRST" for each in ties]
    text = f"SELECT {wanted} FROM ({base}) AS matched"
    text += f" ORDER BY {', '.join(order)}" if order else ""
    return text + (f" LIMIT {expression(query.limit, ctx)}" if query.limit is not None else "")


def grouped(base: str, query: tree.Query, ctx: Context) -> tuple[str, list[str]]:
    """The groups, their keys and aggregates computed. Ties of groups are broken by the keys."""
    places = [each.expr for each in query.columns] + [each.expr for each in query.order]
    resolved = [resolve(each, ctx) for each in places]
    keys = [resolve(each.expr, ctx) for each in query.columns if not aggregates(resolve(each.expr, ctx))]
    found: list[tree.Expr] = []
    for each in resolved:
        found.extend(one for one in aggregates(each) if one not in found)
    computed = [(expr, f'"g{at}"') for at, expr in enumerate([*keys, *found])]
    inside = ", ".join(f"{expression(expr, ctx)} AS {name}" for expr, name in computed)
    by = f" GROUP BY {', '.join(str(at + 1) for at in range(len(keys)))}" if keys else ""
    ctx.computed = computed
    ties = [f'{name}."@id"' if ":" in expr.type else name for expr, name in computed[: len(keys)]]
    for name, bound in list(ctx.variables.items()):
        column = next((column for expr, column in computed if expr == tree.Entity(name, bound.kind)), None)
        if column is not None:
            ctx.variables[name] = sql.Bound(column, bound.kind)
    return f"SELECT {inside} FROM ({base}) AS rows_of_groups{by}", ties


def sort_key(key: tree.OrderKey, ctx: Context) -> str:
    """One key: nulls are the smallest unless it says otherwise."""
    text = expression(key.expr, ctx)
    if ":" in key.expr.type:
        text = f'{text}."@id"'
    down = key.direction == "desc"
    nulls = key.nulls or ("last" if down else "first")
    return f"{text} {'DESC' if down else 'ASC'} NULLS {nulls.upper()}"


def resolve(expr: tree.Expr, ctx: Context) -> tree.Expr:
    """The expression an alias stands for."""
    return resolve(ctx.aliases[expr.name], ctx) if isinstance(expr, tree.Alias) else expr


def aggregates(expr: Any) -> list[tree.Expr]:
    """The aggregates in an expression."""
    from tests.differential.constructs.aggregates import Aggregate

    if isinstance(expr, Aggregate):
        return [expr]
    if isinstance(expr, tuple):
        return [found for each in expr for found in aggregates(each)]
    if isinstance(expr, tree.Expr):
        return [found for each in vars(expr).values() for found in aggregates(each)]
    return []


def exact_sum(values: list[float] | None) -> float | None:
    """The sum, rounded once."""
    return None if not values else math.fsum(values)


def exact_mean(values: list[float] | None) -> float | None:
    """The mean, rounded once."""
    return None if not values else float(sum(map(Fraction, values)) / len(values))


def exact_ratio(total: int | None, count: int | None) -> float | None:
    """A quotient of integers, rounded once."""
    return None if total is None or not count else float(Fraction(total) / count)
