"""A tree as SQL for DuckDB.

A variable is a column of structs: its row. A block is a `SELECT` of its variables from their tables under conditions
that say what the clauses say, one by one; a block inside another one is a correlated subquery. Nothing is planned here.
"""

from __future__ import annotations

import datetime
import itertools
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import singledispatch
from typing import Any

from tests.differential import tree
from tests.differential.types import FLOATS, INTEGERS, NUMBERS, Schema, item_of

FUNCTIONS: list[tuple[str, Callable[..., Any], list[str], str, str]] = []
"""Functions in plain Python that DuckDB has not, or not so: name, function, types, how null is taken."""


def duck(
    name: str, arguments: list[str], result: str, *, nullable: bool = False
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Make a Python function known to DuckDB. Unless it is `nullable`, a null argument gives null and is not seen."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        FUNCTIONS.append((name, function, arguments, result, "special" if nullable else "default"))
        return function

    return register


SQL_TYPES = {
    "String": "VARCHAR",
    "enum": "VARCHAR",
    "Bool": "BOOLEAN",
    "I32": "INTEGER",
    "I64": "BIGINT",
    "U32": "UINTEGER",
    "U64": "UBIGINT",
    "F32": "REAL",
    "F64": "DOUBLE",
    "Date": "DATE",
    "DateTime": "TIMESTAMP",
    "Vector": "REAL[]",
}


def sql_type(type_: str) -> str:
    """The DuckDB type of a column."""
    item = item_of(type_)
    return SQL_TYPES[type_] if item is None else f"{SQL_TYPES[item]}[]"


def quoted(name: str) -> str:
    """A name as SQL takes it."""
    return '"' + name.replace('"', '""') + '"'


@dataclass
class Bound:
    """A variable: how SQL names it, and what it ranges over."""

    ref: str
    kind: str
    nullable: bool = False


@dataclass
class Context:
    """What a piece of a query can name."""

    schema: Schema
    parameters: dict[str, tree.Parameter]
    variables: dict[str, Bound] = field(default_factory=dict)
    aliases: dict[str, tree.Expr] = field(default_factory=dict)
    values: dict[str, str] = field(default_factory=dict)
    """Aliases of an earlier stage: columns that are there already."""
    computed: list[tuple[tree.Expr, str]] = field(default_factory=list)
    """Expressions that a subquery has computed, such as group keys, and their columns."""
    row_order: list[str] = field(default_factory=list)
    """What the rows are sorted by where an aggregate collects them."""
    paths: dict[str, str] = field(default_factory=dict)
    """How SQL names the paths."""
    row: str = ""
    """The row that bare names are properties of."""
    kept: list[tuple[str, str]] = field(default_factory=list)
    """What an earlier stage handed on: names, and what ties are broken by."""
    numbers: Any = field(default_factory=itertools.count)

    def inner(self) -> Context:
        """For a block inside: it sees all that is bound here and keeps its own to itself."""
        return replace(self, variables=dict(self.variables), values=dict(self.values), paths=dict(self.paths))

    def fresh(self, name: str) -> str:
        """A name that nothing else in the query has."""
        return quoted(f"{name}#{next(self.numbers)}")


def constant(value: Any, type_: str) -> str:
    """A constant with its type."""
    sql = sql_type(type_)
    if value is None:
        return f"CAST(NULL AS {sql})"
    if isinstance(value, list | tuple):
        item = item_of(type_) or "F32"
        return f"CAST([{', '.join(constant(each, item) for each in value)}] AS {sql})"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, datetime.datetime):
        return f"TIMESTAMP '{value.astimezone(datetime.UTC).replace(tzinfo=None).isoformat(sep=' ')}'"
    if isinstance(value, datetime.date):
        return f"DATE '{value.isoformat()}'"
    if isinstance(value, int | float):
        return f"CAST('{value!r}' AS {sql})"
    return "'" + value.replace("'", "''") + "'"


def expression(node: tree.Expr, ctx: Context) -> str:
    """An expression as SQL: a column where it is computed already, else what it means."""
    for computed, column in ctx.computed:
        if computed == node:
            return column
    return meaning(node, ctx)


@singledispatch
def meaning(node: Any, ctx: Context) -> str:
    """What an expression means; constructs register theirs."""
    raise TypeError(f"nobody says what {type(node).__name__} means")


@meaning.register
def _(node: tree.Literal, ctx: Context) -> str:
    return constant(node.value, node.type)


@meaning.register
def _(node: tree.Param, ctx: Context) -> str:
    return constant(ctx.parameters[node.name].value, node.type)


@meaning.register
def _(node: tree.Prop, ctx: Context) -> str:
    return f"{ctx.variables[node.var].ref}.{quoted(node.name)}"


@meaning.register
def _(node: tree.Bare, ctx: Context) -> str:
    return f"{ctx.row}.{quoted(OWN[node.name] if node.own else node.name)}"


@meaning.register
def _(node: tree.PathPart, ctx: Context) -> str:
    return f"{ctx.paths[node.path]}.{'d' if node.part == 'hops' else node.part}"


@meaning.register
def _(node: tree.Entity, ctx: Context) -> str:
    return ctx.variables[node.var].ref


@meaning.register
def _(node: tree.Alias, ctx: Context) -> str:
    if node.name in ctx.aliases:
        return expression(ctx.aliases[node.name], ctx)
    return ctx.values[node.name]


OWN = {"id": "@id", "from": "@src", "to": "@dst"}
"""The entity's own columns carry an `@`, whichever way the query writes them."""


def compared(operator: str, left: str, left_type: str, right: str, right_type: str) -> str:
    """A comparison by value. An integer against a float is settled among integers, where nothing is rounded."""
    if left_type in INTEGERS and right_type in FLOATS:
        return _integer_with_float(operator, left, right)
    if left_type in FLOATS and right_type in INTEGERS:
        mirrored = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}.get(operator, operator)
        return _integer_with_float(mirrored, right, left)
    if left_type in NUMBERS:
        wide = "HUGEINT" if left_type in INTEGERS else "DOUBLE"
        left, right = f"CAST({left} AS {wide})", f"CAST({right} AS {wide})"
    return f"({left} {operator} {right})"


def _integer_with_float(operator: str, integer: str, number: str) -> str:
    whole = f"CAST({integer} AS HUGEINT)"
    down = f"CAST(floor(CAST({number} AS DOUBLE)) AS HUGEINT)"
    up = f"CAST(ceil(CAST({number} AS DOUBLE)) AS HUGEINT)"
    equal = f"({down} = {up} AND {whole} = {down})"
    found = {
        "=": equal,
        "!=": f"NOT {equal}",
        "<": f"{whole} < {up}",
        ">=": f"{whole} >= {up}",
        "<=": f"{whole} <= {down}",
        ">": f"{whole} > {down}",
    }[operator]
    return f"CASE WHEN {integer} IS NULL OR {number} IS NULL THEN NULL ELSE {found} END"


# --- blocks


@dataclass
class Parts:
    """A block on its way to a `SELECT`: tables by the names of its own variables, conditions, and later joins."""

    ctx: Context
    tables: dict[str, str] = field(default_factory=dict)
    conditions: list[str] = field(default_factory=list)
    beside: list[str] = field(default_factory=list)
    more: list[str] = field(default_factory=list)
    now: list[tree.Clause] = field(default_factory=list)
    later: list[Callable[[Context], tuple[str, list[str]]]] = field(default_factory=list)

    def bind(self, name: str, kind: str) -> None:
        """Bind a variable unless it is bound already, here or around."""
        if name not in self.ctx.variables:
            ref = self.ctx.fresh(name)
            self.ctx.variables[name] = Bound(ref, kind)
            self.tables[name] = f"{table(kind, self.ctx.schema)} AS {ref}"

    def id_of(self, name: str) -> str:
        """The id of a bound variable."""
        return f'{self.ctx.variables[name].ref}."@id"'


def table(kind: str, schema: Schema) -> str:
    """The table of a node or edge type; of an interface or of several edge types, their rows with what they share."""
    kinds = schema.members(kind)
    if kinds == (kind,):
        return quoted(kind)
    own = ["@id", "@type", *(["@src", "@dst"] if kind.startswith("edge:") else [])]
    names = [*own, *(each.name for each in schema.properties(kind))]
    columns = ", ".join(map(quoted, names))
    return f"({' UNION ALL '.join(f'SELECT {columns} FROM {quoted(each)}' for each in kinds)})"


@singledispatch
def binds(clause: Any, parts: Parts) -> None:
    """Bind the variables of a clause, in the order of the text."""


@binds.register
def _(clause: tree.Bind, parts: Parts) -> None:
    from tests.differential.constructs.narrowing import narrow, narrows

    if narrows(clause, parts):
        narrow(clause, parts)
    else:
        parts.bind(clause.var, clause.kind)


@binds.register
def _(clause: tree.Hop, parts: Parts) -> None:
    edge = parts.ctx.schema.edge(clause.edge)
    parts.bind(clause.source, f"node:{edge.source}")
    if clause.edge_var is not None:
        parts.bind(clause.edge_var, f"edge:{'|'.join((clause.edge, *clause.others))}")
    if clause.path is not None:
        parts.ctx.paths[clause.path] = parts.ctx.fresh(clause.path)
    parts.bind(clause.target, f"node:{edge.target}")


@singledispatch
def condition(clause: Any, parts: Parts) -> None:
    """Add what a clause says to the conditions."""
    raise TypeError(f"nobody says what {type(clause).__name__} means")


@condition.register
def _(clause: tree.Bind, parts: Parts) -> None:
    for prop, value in clause.inline:
        left, right = expression(prop, parts.ctx), expression(value, parts.ctx)
        item = item_of(prop.type)
        if isinstance(value, tree.Literal) and value.value is None:
            parts.conditions.append(f"{left} IS NULL")
        elif item is not None:
            parts.conditions.append(member(right, value.type, left, item))
        else:
            parts.conditions.append(compared("=", left, prop.type, right, value.type))


@condition.register
def _(clause: tree.Hop, parts: Parts) -> None:
    if clause.edge_var is not None:
        edge = parts.ctx.variables[clause.edge_var].ref
        parts.conditions.append(_some_edge(clause, parts, edge, typed=bool(clause.others)))
        return
    if clause.high == 1 and clause.path is None:
        tests = []
        for name in (clause.edge, *clause.others):
            edge = parts.ctx.fresh("hop")
            found = _one_edge(clause, parts, name, edge)
            tests.append(f"EXISTS (SELECT 1 FROM {quoted('edge:' + name)} AS {edge} WHERE {found})")
        parts.conditions.append(f"({' OR '.join(tests)})")
        return
    pair = parts.ctx.paths[clause.path] if clause.path else parts.ctx.fresh("pair")
    source, target = (_typed_id(parts.ctx.variables[name]) for name in (clause.source, clause.target))
    fits = f"{pair}.s = {source} AND {pair}.t = {target} AND {pair}.d BETWEEN {clause.low} AND {clause.high}"
    if clause.path:
        parts.beside.append(f"({_walks(clause, parts.ctx)}) AS {pair}")
        parts.more.append(pair)
        parts.conditions.append(fits)
    else:
        parts.conditions.append(f"EXISTS (SELECT 1 FROM ({_walks(clause, parts.ctx)}) AS {pair} WHERE {fits})")


def _typed_id(bound: Bound) -> str:
    """Ids of different types may be equal; nodes are told apart by both."""
    return f'({bound.ref}."@type" || \':\' || {bound.ref}."@id")'


def _some_edge(clause: tree.Hop, parts: Parts, edge: str, *, typed: bool) -> str:
    tests = []
    for name in (clause.edge, *clause.others):
        kind = f"{edge}.\"@type\" = '{name}' AND " if typed else ""
        tests.append(f"({kind}{_one_edge(clause, parts, name, edge)})")
    return f"({' OR '.join(tests)})"


def _one_edge(clause: tree.Hop, parts: Parts, name: str, edge: str) -> str:
    """An edge of one type connects the ends and satisfies the condition of the traversal."""
    type_ = parts.ctx.schema.edge(name)
    ways = [(clause.source, clause.target), *([(clause.target, clause.source)] if clause.undirected else [])]
    found = []
    for source, target in ways:
        tests = [f'{edge}."@src" = {parts.id_of(source)}', f'{edge}."@dst" = {parts.id_of(target)}']
        for end, wanted in ((source, type_.source), (target, type_.target)):
            bound = parts.ctx.variables[end]
            if bound.kind != f"node:{wanted}":
                tests.append(f"{bound.ref}.\"@type\" = '{wanted}'")
        found.append(f"({' AND '.join(tests)})")
    text = f"({' OR '.join(found)})"
    if clause.walk is not None:
        text += f" AND {expression(clause.walk, replace(parts.ctx, row=edge))}"
    return text


def _walks(clause: tree.Hop, ctx: Context) -> str:
    """Pairs with their distance: the length of the shortest walk. Back to the start there is only a self-loop.

    With a path, the least of the shortest walks: by the ids of its nodes, then by those of its edges.
    """
    steps = []
    for name in (clause.edge, *clause.others):
        type_ = ctx.schema.edge(name)
        edge = ctx.fresh("step")
        where = f" WHERE {expression(clause.walk, replace(ctx, row=edge))}" if clause.walk is not None else ""
        forth = f"'{type_.source}:' || {edge}.\"@src\"", f"'{type_.target}:' || {edge}.\"@dst\""
        for one, other in [forth, *([forth[::-1]] if clause.undirected else [])]:
            steps.append(
                f'SELECT {one} AS s, {other} AS t, {edge}."@id" AS e FROM {quoted("edge:" + name)} AS {edge}{where}'
            )
    step = f"step AS ({' UNION '.join(steps)})"
    if clause.path is None:
        return (
            f"WITH RECURSIVE {step}, walk(s, t, d) AS (SELECT s, t, 1 FROM step UNION "
            f"SELECT walk.s, step.t, walk.d + 1 FROM walk, step WHERE walk.t = step.s AND walk.d < {clause.high}) "
            f"SELECT s, t, min(d) AS d FROM walk WHERE s <> t OR d = 1 GROUP BY s, t"
        )
    id_of = "substr({0}, position(':' IN {0}) + 1)".format
    return (
        f"SELECT s, t, least.d AS d, least.nodes AS nodes, least.edges AS edges FROM ("
        f"WITH RECURSIVE {step}, walk(s, t, d, nodes, edges) AS ("
        f"SELECT s, t, 1, [{id_of('s')}, {id_of('t')}], [e] FROM step UNION "
        f"SELECT walk.s, step.t, walk.d + 1, list_append(walk.nodes, {id_of('step.t')}), "
        f"list_append(walk.edges, step.e) "
        f"FROM walk, step WHERE walk.t = step.s AND walk.d < {clause.high}) "
        f"SELECT s, t, min({{'d': d, 'nodes': nodes, 'edges': edges}}) AS least FROM walk "
        f"WHERE s <> t OR d = 1 GROUP BY s, t)"
    )


@condition.register
def _(clause: tree.Where, parts: Parts) -> None:
    parts.conditions.append(expression(clause.condition, parts.ctx))


@condition.register
def _(clause: tree.Block, parts: Parts) -> None:
    if clause.kind == "optional":
        return
    inner = select(clause.clauses, parts.ctx.inner(), "1")
    parts.conditions.append(f"{'NOT ' if clause.kind == 'not' else ''}EXISTS ({inner})")


def member(item: str, item_type: str, items: str, items_type: str) -> str:
    """Whether a list has an item equal to the given one; unknown when either is null."""
    each = "each_item"
    same = compared("=", item, item_type, each, items_type)
    found = f"len(list_filter({items}, lambda {each}: {same})) > 0"
    return f"CASE WHEN {item} IS NULL OR {items} IS NULL THEN NULL ELSE {found} END"


def waits(clause: tree.Clause, clauses: tuple[tree.Clause, ...], ctx: Context) -> bool:
    """Whether a condition looks at what an `optional` of its block binds, and that one has not been joined yet."""
    if not isinstance(clause, tree.Where | tree.Block) or (
        isinstance(clause, tree.Block) and clause.kind == "optional"
    ):
        return False
    optional = tuple(each for each in clauses if isinstance(each, tree.Block) and each.kind == "optional")
    return bool(tree.mentioned(clause) & exposed(optional) - set(ctx.variables))


def exposed(clauses: tuple[tree.Clause, ...]) -> set[str]:
    """The names that clauses bind for what is around them: of an `either` those that all arms bind."""
    found: set[str] = set()
    for each in clauses:
        if isinstance(each, tree.Bind | tree.Hop):
            found |= tree.mentioned(each)
        elif isinstance(each, tree.Block) and each.kind == "optional":
            found |= exposed(each.clauses)
        elif isinstance(each, tree.Either):
            found |= set.intersection(*map(exposed, each.arms))
    return found


def _written_order(clause: tree.Clause) -> list[str]:
    """The names that a clause binds for what is around it, as they stand in the text."""
    match clause:
        case tree.Bind(var):
            return [var]
        case tree.Hop(source=source, target=target, edge_var=edge_var):
            return [source, *([edge_var] if edge_var else []), target]
        case tree.Block(kind="optional", clauses=clauses):
            return _order_of_names(clauses)
        case tree.Either(arms):
            bound = exposed((clause,))
            return [name for name in _order_of_names(arms[0]) if name in bound]
    return []


def _order_of_names(clauses: tuple[tree.Clause, ...]) -> list[str]:
    """The names that a block binds; what it binds itself is not an optional's, wherever that stands."""
    mine = exposed(tuple(each for each in clauses if not isinstance(each, tree.Block)))
    return [
        name
        for clause in clauses
        for name in _written_order(clause)
        if not (isinstance(clause, tree.Block) and name in mine)
    ]


def _in_text_order(clauses: tuple[tree.Clause, ...], ctx: Context, around: set[str]) -> None:
    """Ties are broken in the order of binding, which is that of the text, blocks that bind for others included."""
    first = dict.fromkeys(ctx.variables, -1)
    names = [name for name in _order_of_names(clauses) if name in first and name not in around]
    first.update({name: at for at, name in reversed(list(enumerate(names)))})
    ordered = sorted(ctx.variables.items(), key=lambda item: first[item[0]])
    ctx.variables.clear()
    ctx.variables.update(ordered)


@singledispatch
def joins(clause: Any, parts: Parts) -> None:
    """Add what a clause joins to the rows of its block: `parts.beside` for all, `parts.later` one after the other."""


def select(clauses: tuple[tree.Clause, ...], ctx: Context, columns: str | None = None, source: str = "") -> str:
    """The rows of a block. `ctx` learns its variables. Columns are the variables of the block, or what is given.

    `source` are the rows of an earlier stage that the block goes on from.
    """
    parts = Parts(ctx)
    around = set(ctx.variables)
    before = [bound.ref for bound in ctx.variables.values()] + [*ctx.values.values()] if source else []
    for clause in clauses:
        binds(clause, parts)
    for clause in clauses:
        joins(clause, parts)
    waiting: list[tree.Clause] = []
    for clause in clauses:
        (waiting if waits(clause, clauses, ctx) else parts.now).append(clause)
    for clause in parts.now:
        condition(clause, parts)
    own = [*before, *(ctx.variables[name].ref for name in parts.tables), *parts.more]
    tables = [*([source] if source else []), *parts.tables.values(), *parts.beside]
    text = f"SELECT {', '.join(own) or '1'}"
    text += f" FROM {', '.join(tables)}" if tables else ""
    text += f" WHERE {' AND '.join(parts.conditions)}" if parts.conditions else ""
    for inner, refs in (one(ctx) for one in parts.later):
        text = (
            f"SELECT {', '.join([*own, *refs]) or '1'} FROM ({text}) AS {ctx.fresh('rows')} "
            f"LEFT JOIN LATERAL ({inner}) AS {ctx.fresh('optional')} ON TRUE"
        )
        own += refs
        ready = [clause for clause in waiting if not waits(clause, clauses, ctx)]
        waiting = [clause for clause in waiting if clause not in ready]
        more = Parts(ctx)
        for clause in ready:
            condition(clause, more)
        if ready:
            text = f"SELECT * FROM ({text}) AS {ctx.fresh('rows')} WHERE {' AND '.join(more.conditions)}"
    _in_text_order(clauses, ctx, around)
    return text if columns is None else f"SELECT {columns} FROM ({text}) AS {ctx.fresh('rows')}"
