"""The answers of DuckDB: tables filled from the model's rows, a query as one SQL statement, rows as Python values."""

from __future__ import annotations

import datetime
from dataclasses import replace
from typing import Any

import duckdb
import numpy as np

from tests.differential import sql, tree
from tests.differential.rows import Tables
from tests.differential.sql import Context, constant, expression, meaning, quoted, sql_type
from tests.differential.types import EdgeType, Schema, item_of

Rows = list[dict[str, Any]]


class Oracle:
    """Answers queries over one state of one graph."""

    def __init__(self, schema: Schema, tables: Tables) -> None:
        self.schema = schema
        self.tables = tables
        self.db = duckdb.connect(":memory:", config={"threads": 1})
        self.db.execute("SET order_by_non_integer_literal = true")
        self.db.execute("PRAGMA disable_optimizer")  # nothing clever between the words and the rows
        for name, function, arguments, result, nulls in sql.FUNCTIONS:
            self.db.create_function(name, function, arguments, result, null_handling=nulls)
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
            if type_.startswith("interface:") or "|" in type_:
                shown["@type"] = value["@type"]
            if type_.startswith("edge:"):
                shown |= {"@src": value["@src"], "@dst": value["@dst"]}
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
    for stage in query.stages:
        base = next_stage(base, stage, ctx)
    base, ties = prepared(base, query.columns, [each.expr for each in query.order], query.having, query.distinct, ctx)
    for key in query.order:
        if getattr(key.expr, "over_rows", False):
            ref = ctx.fresh("place")
            base = f"SELECT *, {expression(key.expr, ctx)} AS {ref} FROM ({base}) AS {ctx.fresh('rows')}"
            ctx.computed.append((key.expr, ref))
    text = f"SELECT {', '.join(expression(each.expr, ctx) for each in query.columns)} FROM ({base}) AS matched"
    ranked = [f"{expression(e.expr, ctx)} IS NOT NULL" for e in query.order if getattr(e.expr, "ranking", False)]
    having = [expression(query.having, ctx)] if query.having is not None else []
    text += f" WHERE {' AND '.join([*ranked, *having])}" if ranked or having else ""
    return text + tail(query.order, ties, query.limit, query.offset, ctx)


def next_stage(base: str, stage: tree.Stage, ctx: Context) -> str:
    """The rows that `with` hands on, and what the next block makes of them. `ctx` knows just those afterwards."""
    keys = [each.expr for each in stage.order]
    base, ties = prepared(base, stage.columns, keys, stage.where, stage.distinct, ctx)
    listed, variables, values, kept = [], {}, {}, []
    for column in stage.columns:
        name = column.alias or own_name(column.expr)
        ref = ctx.fresh(name)
        listed.append(f"{expression(column.expr, ctx)} AS {ref}")
        if isinstance(column.expr, tree.Entity):
            bound = ctx.variables[column.expr.var]
            variables[name] = sql.Bound(ref, bound.kind, bound.nullable)
            kept.extend((name, tie) for tie in ties_of(ref, bound.kind))
        else:
            values[name] = ref
            kept.append((name, ref))
    text = f"SELECT {', '.join(listed)} FROM ({base}) AS staged"
    text += f" WHERE {expression(stage.where, ctx)}" if stage.where is not None else ""
    text += tail(stage.order, ties, stage.limit, stage.offset, ctx)
    ctx.variables, ctx.values, ctx.kept, ctx.computed, ctx.aliases = variables, values, kept, [], {}
    return sql.select(stage.clauses, ctx, source=f"({text}) AS {ctx.fresh('stage')}")


def tail(
    order: tuple[tree.OrderKey, ...],
    ties: list[str],
    limit: tree.Expr | None,
    offset: tree.Expr | None,
    ctx: Context,
) -> str:
    """Order, limit and offset."""
    keys = [sort_key(each, ctx) for each in order] + [f"{each} ASC NULLS FIRST" for each in ties]
    text = f" ORDER BY {', '.join(keys)}" if keys else ""
    text += f" LIMIT {meaning(limit, ctx)}" if limit is not None else ""
    return text + (f" OFFSET {meaning(offset, ctx)}" if offset is not None else "")


def prepared(
    base: str,
    columns: tuple[tree.Column, ...],
    order: list[tree.Expr],
    condition: tree.Expr | None,
    distinct: bool,
    ctx: Context,
) -> tuple[str, list[str]]:
    """The rows that columns are taken from, grouped where that is asked for, and what breaks ties among them."""
    kept = [name for name, _ in ctx.kept]
    ties = [text for _, text in ctx.kept]
    for name, bound in ctx.variables.items():
        if name not in kept:
            ties.extend(ties_of(bound.ref, bound.kind))
    ctx.aliases = {each.alias: each.expr for each in columns if each.alias}
    resolved = [resolve(each.expr, ctx) for each in columns]
    if not distinct and not any(aggregates(each) for each in resolved):
        return base, ties
    ctx.row_order = ties
    keys = [each for each in resolved if not aggregates(each)]
    found: list[tree.Expr] = []
    for each in [*resolved, *(resolve(key, ctx) for key in order), *([condition] if condition else [])]:
        found.extend(one for one in aggregates(each) if one not in found)
    computed = [(expr, f'"g{at}"') for at, expr in enumerate([*keys, *found])]
    inside = ", ".join(f"{expression(expr, ctx)} AS {name}" for expr, name in computed)
    by = f" GROUP BY {', '.join(str(at + 1) for at in range(len(keys)))}" if keys else ""
    ctx.computed = computed
    for name, bound in list(ctx.variables.items()):
        column = next((column for expr, column in computed if expr == tree.Entity(name, bound.kind)), None)
        if column is not None:
            ctx.variables[name] = sql.Bound(column, bound.kind, bound.nullable)
    ties = [tie for expr, name in computed[: len(keys)] for tie in ties_of(name, expr.type)]
    return f"SELECT {inside} FROM ({base}) AS rows_of_groups{by}", ties


def ties_of(ref: str, kind: str) -> list[str]:
    """What orders rows by a value: for an entity its id and, where several types may have that, the type."""
    if ":" not in kind:
        return [ref]
    several = kind.startswith("interface:") or "|" in kind
    return [f'{ref}."@id"', *([f'{ref}."@type"'] if several else [])]


def sort_key(key: tree.OrderKey, ctx: Context) -> str:
    """One key: nulls are the smallest unless it says otherwise."""
    text = expression(key.expr, ctx)
    if ":" in key.expr.type:
        text = f'{text}."@id"'
    down = key.direction == "desc" or getattr(key.expr, "best_first", "") == "DESC"
    nulls = key.nulls or ("last" if down else "first")
    return f"{text} {'DESC' if down else 'ASC'} NULLS {nulls.upper()}"


def resolve(expr: Any, ctx: Context) -> Any:
    """An expression with what its aliases stand for."""
    if isinstance(expr, tree.Alias):
        return resolve(ctx.aliases[expr.name], ctx) if expr.name in ctx.aliases else expr
    if isinstance(expr, tuple):
        return tuple(resolve(each, ctx) for each in expr)
    if isinstance(expr, tree.Expr):
        inside = {
            name: resolve(value, ctx) for name, value in vars(expr).items() if isinstance(value, tuple | tree.Expr)
        }
        return replace(expr, **inside) if inside else expr  # type: ignore[type-var]
    return expr


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
