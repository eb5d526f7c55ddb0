"""`bm25` and `rrf` in `order`: best first, rows with a score only.

A query of one word over texts that have a word at most once is ranked by their lengths alone, whatever the statistics
(which may lag): the shorter text is the better one. So the order is known without a formula.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tests.differential import tree
from tests.differential.constructs.searching import Nearest, some_vector, tokens
from tests.differential.making import QueryMaker, Scope, makes
from tests.differential.oracle import aggregates
from tests.differential.printing import written
from tests.differential.sql import Context, duck, expression, meaning

WORDS = ("graph", "Night", "light", "engines", "a", "xyz")


@dataclass(frozen=True)
class Bm25(tree.Expr):
    """`bm25($x.text, q)`: higher is better, so it sorts downwards."""

    text: tree.Expr
    query: tree.Expr
    type: str = "F64"
    ranking = True
    best_first = "DESC"


@dataclass(frozen=True)
class Rrf(tree.Expr):
    """`rrf(a, b[, k])`: the sum of `1 / (k + rank)` over both rankings, among the rows that were matched."""

    first: tree.Expr
    second: tree.Expr
    k: int | None = None
    type: str = "F64"
    ranking = True
    best_first = "DESC"
    over_rows = True


@written.register
def _(node: Bm25) -> str:
    return f"bm25({written(node.text)}, {written(node.query)})"


@written.register
def _(node: Rrf) -> str:
    k = "" if node.k is None else f", {node.k}"
    return f"rrf({written(node.first)}, {written(node.second)}{k})"


@meaning.register
def _(node: Bm25, ctx: Context) -> str:
    return f"py_shortness({expression(node.text, ctx)}, {expression(node.query, ctx)})"


@meaning.register
def _(node: Rrf, ctx: Context) -> str:
    shares = []
    for ranking in (node.first, node.second):
        score = expression(ranking, ctx)
        down = getattr(ranking, "best_first", "ASC")
        place = f"dense_rank() OVER (ORDER BY {score} {down} NULLS LAST, {_id(ranking, ctx)})"
        share = f"CAST(1 AS DOUBLE) / CAST({60 if node.k is None else node.k} + {place} AS DOUBLE)"
        shares.append((score, f"CASE WHEN {score} IS NULL THEN CAST(0 AS DOUBLE) ELSE {share} END"))
    (one, share), (two, other) = shares
    return f"CASE WHEN {one} IS NULL AND {two} IS NULL THEN NULL ELSE {share} + {other} END"


def _id(ranking: tree.Expr, ctx: Context) -> str:
    prop = ranking.text if isinstance(ranking, Bm25) else ranking.vector
    return f'{ctx.variables[prop.var].ref}."@id", {ctx.variables[prop.var].ref}."@type"'


@duck("py_shortness", ["VARCHAR", "VARCHAR"], "DOUBLE", nullable=True)
def shortness(text: str | None, query: str | None) -> float | None:
    """The better the shorter, for a text that has the word."""
    if text is None or query is None or not {*tokens(text)} & {*tokens(query)}:
        return None
    assert len(tokens(text)) == len({*tokens(text)})
    return 1 / len(tokens(text))


def _by_text(q: QueryMaker, scope: Scope) -> Bm25 | None:
    """Over texts of one type: each type scores by its own statistics, so equal texts of two types may differ."""
    own = {name: kind for name, kind in scope.own.items() if not kind.startswith("interface:")}
    prop = q.prop(Scope(own, own), of=lambda each: each.type == "String")
    if prop is None or prop.name == "name":
        return None
    return Bm25(prop, q.constant(q.rng.choice(WORDS), "String"))


def _by_vector(q: QueryMaker, scope: Scope) -> Nearest | None:
    prop = q.prop(scope, of=lambda each: each.type == "Vector")
    return None if prop is None else Nearest(prop, some_vector(q))


@makes("finish", 2)
def bm25(q: QueryMaker, scope: Scope, query: tree.Query) -> tree.Query | None:
    ranking = _by_text(q, Scope(scope.own, scope.own))
    if ranking is None or any(aggregates(each.expr) for each in query.columns):
        return None
    limit = query.limit if q.chance(0.3) else tree.Literal(q.rng.choice((1, 2, 5, 50)), "I64")
    order = (tree.OrderKey(ranking), *query.order[:1])
    return replace(query, parameters=tuple(q.parameters), order=order, limit=limit)


@makes("finish", 2)
def rrf(q: QueryMaker, scope: Scope, query: tree.Query) -> tree.Query | None:
    own = Scope(scope.own, scope.own)
    first, second = _by_text(q, own), _by_vector(q, own) if q.chance(0.7) else _by_text(q, own)
    if first is None or second is None or any(aggregates(each.expr) for each in query.columns):
        return None
    pair = (first, second) if q.chance(0.5) else (second, first)
    ranking = Rrf(*pair, q.rng.choice((None, 1, 10)))
    limit = tree.Literal(q.rng.choice((1, 2, 5, 50)), "I64")
    order = (tree.OrderKey(ranking), *query.order[:1])
    return replace(query, parameters=tuple(q.parameters), order=order, limit=limit)
