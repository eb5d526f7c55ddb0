"""Mutations as plain values, how they are written, and what they do to the rows.

The rows that a statement finds, and the values that it gives them, come from DuckDB; here they are only put in place.
"""

from __future__ import annotations

import datetime
from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

from tests.differential import tree
from tests.differential.keys import key_text
from tests.differential.oracle import Oracle
from tests.differential.printing import block, declared, json_value, written
from tests.differential.rows import Row, Tables, World, without
from tests.differential.sql import Context, expression, quoted, select
from tests.differential.types import EdgeType, NodeType, Schema


class Refused(Exception):
    """The mutation has to be refused."""


@dataclass(frozen=True)
class Update:
    """`update Type set { … } where …`, or of a matched variable: `update $x set { … }`."""

    kind: str
    values: tuple[tuple[str, tree.Expr], ...]
    where: tree.Expr | None = None
    var: str | None = None


@dataclass(frozen=True)
class Remove:
    """`delete Type where …` or `delete $x`."""

    kind: str
    where: tree.Expr | None = None
    var: str | None = None


@dataclass(frozen=True)
class Insert:
    """`insert Type { … }`; ends of edges are ids or matched variables. `new` refuses an id that exists."""

    kind: str
    values: tuple[tuple[str, tree.Expr], ...]
    source: tree.Expr | None = None
    target: tree.Expr | None = None
    new: bool = False


Statement = Update | Remove | Insert


@dataclass(frozen=True)
class Mutation:
    """One mutation: what it matches first, and its statements."""

    parameters: tuple[tree.Parameter, ...]
    clauses: tuple[tree.Clause, ...]
    statements: tuple[Statement, ...]


@dataclass(frozen=True)
class Outcome:
    """The rows afterwards, and how many are different."""

    tables: Tables
    nodes: int
    edges: int


# --- how they are written


def text(mutation: Mutation) -> str:
    """A mutation as `.gq`."""
    header = ", ".join(map(declared, mutation.parameters))
    match = f"match {block(mutation.clauses)}\n" if mutation.clauses else ""
    return f"query m({header}) {{\n{match}" + "\n".join(map(_statement, mutation.statements)) + "\n}"


def _statement(statement: Statement) -> str:
    name = statement.kind.split(":")[1]
    if isinstance(statement, Insert):
        ends = [("from", statement.source), ("to", statement.target)]
        given = [(end, value) for end, value in ends if value is not None]
        return f"insert {'new ' if statement.new else ''}{name} {_assigned((*given, *statement.values))}"
    target = f"${statement.var}" if statement.var else name
    where = f" where {written(statement.where)}" if statement.where is not None else ""
    if isinstance(statement, Remove):
        return f"delete {target}{where}"
    return f"update {target} set {_assigned(statement.values)}{where}"


def _assigned(values: Any) -> str:
    return "{ " + ", ".join(f"{name}: {written(value)}" for name, value in values) + " }"


def arguments(mutation: Mutation) -> dict[str, Any]:
    """The values of the parameters as they are passed."""
    return {each.name: json_value(each.value) for each in mutation.parameters if each.given}


# --- what they do


def outcome(mutation: Mutation, world: World) -> Outcome:
    """The rows that there are afterwards, or `Refused`."""
    before = world.tables()
    tables = {kind: dict(rows) for kind, rows in before.items()}
    fresh = Counter[str]()
    for statement in mutation.statements:
        found = _rows(mutation, statement, world.schema, before if mutation.clauses else tables)
        _apply(statement, found, world.schema, tables, fresh)
    different = {"node": 0, "edge": 0}
    for kind in tables:
        ids = {*before[kind], *tables[kind]}
        changed = sum(before[kind].get(id_) != tables[kind].get(id_) for id_ in ids)
        different[kind.split(":")[0]] += changed
    return Outcome(tables, different["node"], different["edge"])


def _rows(mutation: Mutation, statement: Statement, schema: Schema, tables: Tables) -> list[tuple[Any, ...]]:
    """For each distinct binding: the id of the row that is meant (or the ends of the new one), and the values."""
    ctx = Context(schema, {each.name: each for each in mutation.parameters})
    source = select(mutation.clauses, ctx) if mutation.clauses else "SELECT 1"
    ctx.row = "own"
    if isinstance(statement, Insert):
        wanted = [each for each in (statement.source, statement.target) if each is not None]
        columns = [f'{expression(e, ctx)}."@id"' if ":" in e.type else expression(e, ctx) for e in wanted]
        columns += [expression(value, ctx) for _, value in statement.values]
        rows = f"({source}) AS matched"
    else:
        columns = ['own."@id"', *(expression(value, ctx) for _, value in getattr(statement, "values", ()))]
        rows = f"{quoted(statement.kind)} AS own, ({source}) AS matched"
        if statement.var:
            rows += f' WHERE own."@id" = {ctx.variables[statement.var].ref}."@id"'
        elif statement.where is not None:
            rows += f" WHERE {expression(statement.where, ctx)}"
    if not columns:  # a new row that is told nothing
        return [()] if Oracle(schema, tables).db.execute(f"SELECT 1 FROM {rows} LIMIT 1").fetchall() else []
    listed = ", ".join(f"{each} AS c{at}" for at, each in enumerate(columns))
    return Oracle(schema, tables).db.execute(f"SELECT DISTINCT {listed} FROM {rows}").fetchall()


def _apply(
    statement: Statement, found: list[tuple[Any, ...]], schema: Schema, tables: Tables, fresh: Counter[str]
) -> None:
    table = tables[statement.kind]
    names = [name for name, _ in getattr(statement, "values", ())]
    if isinstance(statement, Remove):
        for id_, *_ in found:
            without(schema, tables, statement.kind, id_)
        return
    if isinstance(statement, Update):
        if len({id_ for id_, *_ in found}) < len(found):
            raise Refused("two bindings set one row to different values")
        for id_, *values in found:
            table[id_] = _with(table[id_], dict(zip(names, values, strict=True)))
        return
    ends = 2 if statement.source is not None else 0
    if any(end is None for line in found for end in line[:ends]):
        raise Refused("an edge without an end")
    for line in found:
        row = _inserted(statement, line[:ends], dict(zip(names, line[ends:], strict=True)), schema, fresh)
        old = table.get(row.id)
        if old is not None and statement.new:
            raise Refused("the id exists")
        table[row.id] = row if old is None else _with(old, {n: v for n, v in row.values if n in names})


def _inserted(
    statement: Insert, ends: tuple[Any, ...], given: dict[str, Any], schema: Schema, fresh: Counter[str]
) -> Row:
    type_ = schema.find(statement.kind)
    values = {each.name: _stored(given.get(each.name)) for each in type_.properties}
    fresh[statement.kind] += 1
    id_ = f"new {fresh[statement.kind]}"
    if isinstance(type_, NodeType) and type_.key:
        id_ = key_text([values[name] for name in type_.key])
    if isinstance(type_, EdgeType) and type_.keyed:
        id_ = key_text([*ends, *(values[name] for name in type_.key)])
    return Row(statement.kind, id_, tuple(values.items()), *ends)


def _with(row: Row, values: dict[str, Any]) -> Row:
    changed = tuple((name, _stored(values[name]) if name in values else value) for name, value in row.values)
    return replace(row, values=changed)


def _stored(value: Any) -> Any:
    """DuckDB's moments have no zone."""
    return value.replace(tzinfo=datetime.UTC) if isinstance(value, datetime.datetime) else value
