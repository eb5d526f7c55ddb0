"""`return distinct`, `having`, `offset`, `nulls first`, and `with`: what a query says around its columns."""

from __future__ import annotations

from dataclasses import replace

from tests.differential import tree
from tests.differential.constructs.aggregates import Aggregate
from tests.differential.constructs.conditions import OPERATORS, Compare
from tests.differential.making import QueryMaker, Scope, makes
from tests.differential.oracle import aggregates
from tests.differential.types import NUMBERS, SINGLE, family


@makes("finish")
def having(q: QueryMaker, scope: Scope, query: tree.Query) -> tree.Query | None:
    named = [each for each in query.columns if each.alias and aggregates(each.expr)]
    numbers = [each for each in named if each.expr.type in NUMBERS]
    if not numbers:
        return None
    chosen = q.rng.choice(numbers)
    value = tree.Literal(q.rng.choice((0, 1, 2)) if chosen.expr.type != "F64" else 0.5, chosen.expr.type)
    return replace(query, having=Compare(q.rng.choice(OPERATORS), tree.Alias(chosen.alias, chosen.expr.type), value))


@makes("finish")
def distinct_rows(q: QueryMaker, scope: Scope, query: tree.Query) -> tree.Query | None:
    exprs = [each.expr for each in query.columns]
    if any(aggregates(each) for each in exprs) or not all(each.type in SINGLE or ":" in each.type for each in exprs):
        return None
    names = {each.alias for each in query.columns}
    keys = [key for key in query.order if key.expr in exprs or getattr(key.expr, "name", None) in names]
    keys = [key for key in keys if isinstance(key.expr, tree.Alias) or key.expr in exprs]
    return replace(query, distinct=True, order=tuple(keys))


@makes("finish")
def offset(q: QueryMaker, scope: Scope, query: tree.Query) -> tree.Query | None:
    return replace(query, offset=tree.Literal(q.rng.randint(0, 3), "I64"))


@makes("finish")
def nulls_first_or_last(q: QueryMaker, scope: Scope, query: tree.Query) -> tree.Query | None:
    if not query.order:
        return None
    return replace(query, order=tuple(replace(key, nulls=q.rng.choice(("first", "last"))) for key in query.order))


@makes("stage")
def with_stage(q: QueryMaker, scope: Scope) -> tuple[tree.Stage, Scope] | None:
    """Some variables and some values are handed on; a block goes on from them."""
    nodes = [name for name in scope.own if name[0] != "_" and scope.own[name].startswith("node:")]
    if not nodes:
        return None
    edges = [name for name in scope.own if name[0] != "_" and scope.own[name].startswith("edge:")]
    nodes += [name for name in edges if "|" not in scope.own[name] and q.chance(0.4)]
    own = Scope(scope.own, scope.own)
    kept = q.rng.sample(nodes, 1 if q.chance(0.7) else min(2, len(nodes)))
    columns = [tree.Column(tree.Entity(name, scope.own[name])) for name in kept]
    order: tuple[tree.OrderKey, ...] = ()
    if q.chance(0.5):
        made = q.make("aggregate", own)
        if isinstance(made, Aggregate) and made.type in SINGLE:
            columns.append(tree.Column(made, "total"))
    elif (prop := q.single(own)) is not None and q.chance(0.6):
        columns.append(tree.Column(prop, "total"))
    last = columns[-1]
    where = None
    if last.alias and last.expr.type in NUMBERS and q.chance(0.4):
        zero = tree.Literal(0 if last.expr.type not in ("F32", "F64") else 0.0, last.expr.type)
        where = Compare(q.rng.choice((">=", "!=", ">")), tree.Alias("total", last.expr.type), zero)
    if last.alias and q.chance(0.4):
        order = (tree.OrderKey(tree.Alias("total", last.expr.type), q.rng.choice(("", "desc"))),)
    limit = tree.Literal(q.rng.randint(1, 4), "I64") if q.chance(0.4) else None
    offset = tree.Literal(q.rng.randint(0, 2), "I64") if q.chance(0.1) else None
    distinct = not any(aggregates(each.expr) for each in columns) and q.chance(0.3)
    if distinct:
        q.used["with distinct"] += 1
    after = Scope({name: scope.own[name] for name in kept}, {name: scope.own[name] for name in kept})
    after.values = {"total": last.expr.type} if last.alias else {}
    clauses = q.clauses(after, 1)
    return tree.Stage(tuple(columns), where, order, limit, clauses, offset, distinct), after


@makes("condition", 2)
def value_of_a_stage(q: QueryMaker, scope: Scope) -> tree.Expr | None:
    """What an earlier stage computed, compared with a property."""
    if not scope.values:
        return None
    name, type_ = q.rng.choice(list(scope.values.items()))
    prop = q.prop(scope, of=lambda each: each.type in SINGLE and family(each.type) == family(type_))
    ordered = type_ not in ("enum", "Bool")
    if prop is None or prop.type == "enum":
        return None
    return Compare(q.rng.choice(OPERATORS if ordered else OPERATORS[:2]), prop, tree.Alias(name, type_))


@makes("column", 2)
def value_of_a_stage_as_column(q: QueryMaker, scope: Scope) -> tree.Expr | None:
    if not scope.values:
        return None
    name, type_ = q.rng.choice(list(scope.values.items()))
    return tree.Alias(name, type_)
