"""Constructs inside one another: values made of aggregates and of aliases, parts of paths in conditions, Booleans that
are compared, lists that are joined, and conditions of walks that are more than one comparison."""

from __future__ import annotations

from dataclasses import replace

from tests.differential import tree
from tests.differential.constructs.aggregates import Aggregate
from tests.differential.constructs.conditions import OPERATORS, Compare, IsNull, Joined, Member, Not
from tests.differential.constructs.values import Arithmetic, Call, Case
from tests.differential.constructs.walks import alike
from tests.differential.making import QueryMaker, Scope, makes
from tests.differential.oracle import aggregates
from tests.differential.types import SINGLE, EdgeType, item_of
from tests.differential.world import values_of


def _count(q: QueryMaker, scope: Scope) -> Aggregate:
    var = q.rng.choice(scope.named())
    return Aggregate("count", tree.Entity(var, scope.variables[var]))


@makes("aggregate", 1)
def computed_from_aggregates(q: QueryMaker, scope: Scope) -> tree.Expr | None:
    """Two counts together, a word for a count, or a value where there is no greatest one."""
    way = q.rng.choice(("arithmetic", "case", "coalesce"))
    if way == "arithmetic":
        prop = q.prop(scope, of=lambda each: each.type in ("I32", "U32"))
        other = Aggregate("count", prop) if prop is not None else _count(q, scope)
        return Arithmetic(q.rng.choice("+-*"), _count(q, scope), other)
    if way == "case":
        test = Compare(q.rng.choice(OPERATORS), _count(q, scope), tree.Literal(q.rng.choice((1, 2, 3)), "I64"))
        return Case(((test, tree.Literal("many", "String")),), tree.Literal("few", "String"))
    prop = q.prop(scope, of=lambda each: each.type in ("I64", "String", "Date"))
    if prop is None:
        return None
    least = Aggregate(q.rng.choice(("min", "max")), prop)
    return Call("coalesce", (least, tree.Literal(values_of(prop.type)[1], prop.type)), prop.type)


@makes("finish")
def having_of_aggregates(q: QueryMaker, scope: Scope, query: tree.Query) -> tree.Query | None:
    """A condition on an aggregate that is not returned, alone or with another one."""
    own = Scope(scope.own, scope.own)
    if not any(aggregates(each.expr) for each in query.columns) or not own.named():
        return None
    tests = [
        Compare(q.rng.choice(OPERATORS), _count(q, own), tree.Literal(q.rng.choice((0, 1, 2, 3)), "I64"))
        for _ in range(q.rng.choice((1, 1, 2)))
    ]
    prop = q.prop(own, of=lambda each: each.type in ("I64", "String", "Date", "I32"))
    if prop is not None and q.chance(0.5):
        tests.append(IsNull(Aggregate(q.rng.choice(("min", "max")), prop), q.chance(0.5), words=True))
    condition = tests[0] if len(tests) == 1 else Joined(q.rng.choice(("and", "or")), tuple(tests))
    return replace(query, having=Not(condition) if q.chance(0.2) else condition)


@makes("finish")
def alias_used_again(q: QueryMaker, scope: Scope, query: tree.Query) -> tree.Query | None:
    """A later column that is computed from an earlier one by its alias."""
    usable = ("I32", "I64", "U32", "String")
    named = [each for each in query.columns if each.alias and each.expr.type in usable]
    if not named:
        return None
    chosen = q.rng.choice(named)
    alias = tree.Alias(chosen.alias or "", chosen.expr.type)
    if chosen.expr.type == "String":
        again: tree.Expr = Call("length", (alias,), "I64")
    else:
        again = Arithmetic("+", alias, tree.Literal(1, "I64"))
    return replace(query, columns=(*query.columns, tree.Column(again, "again")))


@makes("finish", 0.7)
def having_of_values(q: QueryMaker, scope: Scope, query: tree.Query) -> tree.Query | None:
    """A condition on a column that is no aggregate, by its alias."""
    named = [each for each in query.columns if each.alias and each.expr.type in SINGLE and not aggregates(each.expr)]
    if not named:
        return None
    chosen = q.rng.choice(named)
    alias = tree.Alias(chosen.alias or "", chosen.expr.type)
    ordered = chosen.expr.type not in ("enum", "Bool")
    value = tree.Literal(q.rng.choice(values_of(chosen.expr.type)), chosen.expr.type)
    compared = Compare(q.rng.choice(OPERATORS if ordered else OPERATORS[:2]), alias, value)
    return replace(query, having=IsNull(alias, q.chance(0.7), words=True) if q.chance(0.3) else compared)


@makes("finish", 0.5)
def offset_parameter(q: QueryMaker, scope: Scope, query: tree.Query) -> tree.Query | None:
    offset = q.required(q.rng.randint(0, 3))
    return replace(query, parameters=tuple(q.parameters), offset=offset)


@makes("condition", 2)
def length_of_path(q: QueryMaker, scope: Scope) -> tree.Expr | None:
    """How long a walk is, and whether it goes through a node."""
    if not scope.paths:
        return None
    path = q.rng.choice(scope.paths)
    if q.chance(0.5):
        literal = tree.Literal(q.rng.choice((1, 2)), "I64")
        return Compare(q.rng.choice(OPERATORS), tree.PathPart(path, "hops"), literal)
    ids = [id_ for kind, rows in q.tables.items() if kind.startswith("node:") for id_ in rows]
    if not ids:
        return None
    return Member(tree.PathPart(path, "nodes"), q.constant(q.rng.choice(ids), "String"), q.chance(0.5))


@makes("condition", 0.6)
def booleans_compared(q: QueryMaker, scope: Scope) -> tree.Expr | None:
    """`($p.age > 3) = $p.flag`, or what is unknown taken for false."""
    test = q.make("condition", scope)
    if test is None:
        return None
    flag = q.prop(scope, of=lambda each: each.type == "Bool")
    if flag is not None and q.chance(0.6):
        return Compare(q.rng.choice(("=", "!=")), test, flag)
    return Call("coalesce", (test, tree.Literal(q.chance(0.5), "Bool")), "Bool")


@makes("column", 0.7)
def joined_lists(q: QueryMaker, scope: Scope) -> tree.Expr | None:
    items = q.prop(scope, of=lambda each: item_of(each.type) in ("String", "I64", "Date"))
    if items is None:
        return None
    others = q.properties(scope, of=lambda each: each.type == items.type)
    item = item_of(items.type) or ""
    more = tree.Literal(tuple(q.rng.sample(values_of(item), 2)), items.type)
    return Arithmetic("+", items, q.rng.choice(others) if q.chance(0.4) else more)


@makes("column", 0.7)
def function_of_one_number(q: QueryMaker, scope: Scope) -> tree.Expr | None:
    item = q.prop(scope, of=lambda each: each.type in ("U32", "F64", "I32"))
    if item is None:
        return None
    if item.type == "U32":
        return Call(q.rng.choice(("sqrt", "to_float")), (item,), "F64")
    return Call("to_float", (item,), "F64") if item.type == "I32" else Call("abs", (item,), "F64")


@makes("column", 0.7)
def parts_of_text(q: QueryMaker, scope: Scope) -> tree.Expr | None:
    if (items := q.prop(scope, of=lambda each: each.type == "[String]")) is not None and q.chance(0.5):
        return Call("join", (items, tree.Literal("-", "String")), "String")
    text = q.prop(scope, of=lambda each: each.type == "String")
    return None if text is None else Call("split", (text, tree.Literal(q.rng.choice((" ", "a")), "String")), "[String]")


@makes("hop", 1)
def walk_conditions(q: QueryMaker, scope: Scope, source: str, edge: EdgeType, target: str) -> tree.Hop | None:
    """Several conditions on the edges of a walk, also where those are of several types."""
    others = tuple(alike(q, edge)[:1]) if q.chance(0.4) else ()
    kind = "edge:" + "|".join((edge.name, *others))
    properties = [each for each in q.schema.properties(kind) if each.type in SINGLE]
    if not properties:
        return None
    tests = []
    for prop in (q.rng.choice(properties) for _ in range(2)):
        bare = tree.Bare(prop.name, prop.type)
        if prop.nullable and q.chance(0.4):
            tests.append(IsNull(bare, negated=q.chance(0.5), words=q.chance(0.5)))
            continue
        operator = q.rng.choice(OPERATORS if prop.type not in ("enum", "Bool") else OPERATORS[:2])
        tests.append(Compare(operator, bare, q.like(tree.Prop("w", prop.name, prop.type), Scope({"w": kind}))))
    joined: tree.Expr = Joined(q.rng.choice(("and", "or", "or")), tuple(tests))
    hop = tree.Hop(source, edge.name, target, others=others, walk=Not(joined) if q.chance(0.2) else joined)
    if edge.source == edge.target and q.chance(0.6):
        low = q.rng.choice((1, 1, 2))
        return replace(hop, low=low, high=low + q.rng.randint(0, 2), undirected=q.chance(0.2), bounded=True)
    return hop
