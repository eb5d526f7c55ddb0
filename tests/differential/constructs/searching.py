"""Search: text predicates by the tokens of plain Python, and rankings by the distance of vectors.

Scores of `bm25` are left out: they depend on statistics, which may lag.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace

from tests.differential import tree
from tests.differential.making import QueryMaker, Scope, makes
from tests.differential.oracle import aggregates
from tests.differential.printing import written
from tests.differential.sql import Context, duck, expression, meaning
from tests.differential.world import values_of

QUERIES = ("graph", "night", "Engines light", "graph night", "night graph", "grpah", "ligt", "xyz", "")


@dataclass(frozen=True)
class TextSearch(tree.Expr):
    """`search`, `match_text`, `match_all` or `fuzzy`."""

    function: str
    text: tree.Expr
    query: tree.Expr
    edits: int | None = None
    """How many a `fuzzy` allows, where it says so."""
    type: str = "Bool"


@dataclass(frozen=True)
class Nearest(tree.Expr):
    """`nearest($x.vec, q)`: a distance; alone in `order` it keeps the rows that have one."""

    vector: tree.Expr
    query: tree.Expr
    type: str = "F64"
    ranking = True


@written.register
def _(node: TextSearch) -> str:
    edits = "" if node.edits is None else f", {node.edits}"
    return f"{node.function}({written(node.text)}, {written(node.query)}{edits})"


@written.register
def _(node: Nearest) -> str:
    return f"nearest({written(node.vector)}, {written(node.query)})"


@meaning.register
def _(node: TextSearch, ctx: Context) -> str:
    allowed = f", {-1 if node.edits is None else node.edits}" if node.function == "fuzzy" else ""
    return f"py_{node.function}({expression(node.text, ctx)}, {expression(node.query, ctx)}{allowed})"


@meaning.register
def _(node: Nearest, ctx: Context) -> str:
    return f"py_distance({expression(node.vector, ctx)}, {expression(node.query, ctx)})"


def tokens(text: str) -> list[str]:
    """Runs of letters and digits, in lower case."""
    return re.findall(r"[^\W_]+", text.lower())


@duck("py_search", ["VARCHAR", "VARCHAR"], "BOOLEAN")
def any_token(text: str, query: str) -> bool:
    """One of the tokens is there."""
    return bool({*tokens(text)} & {*tokens(query)})


@duck("py_match_all", ["VARCHAR", "VARCHAR"], "BOOLEAN")
def all_tokens(text: str, query: str) -> bool:
    """All of the tokens are there, and there is one."""
    return bool(tokens(query)) and {*tokens(query)} <= {*tokens(text)}


@duck("py_match_text", ["VARCHAR", "VARCHAR"], "BOOLEAN")
def phrase(text: str, query: str) -> bool:
    """The tokens are there one right behind the other."""
    words, wanted = tokens(text), tokens(query)
    return bool(wanted) and any(words[at : at + len(wanted)] == wanted for at in range(len(words)))


@duck("py_fuzzy", ["VARCHAR", "VARCHAR", "INTEGER"], "BOOLEAN")
def near_token(text: str, query: str, allowed: int) -> bool:
    """A token is there within an edit distance: as said, or none up to 2 letters, 1 up to 5, else 2."""
    words = tokens(text)
    return any(
        edits(token, word) <= (allowed if allowed >= 0 else 0 if len(token) <= 2 else 1 if len(token) <= 5 else 2)
        for token in tokens(query)
        for word in words
    )


def edits(one: str, other: str) -> int:
    """Letters inserted, deleted or replaced."""
    if not one or not other:
        return len(one) + len(other)
    changed = edits(one[1:], other[1:]) + (one[0] != other[0])
    return changed if one[0] == other[0] else min(changed, edits(one[1:], other) + 1, edits(one, other[1:]) + 1)


@duck("py_distance", ["REAL[]", "REAL[]"], "DOUBLE")
def distance(one: list[float], other: list[float]) -> float:
    """The cosine distance, to as many digits as are the same however it is computed."""
    product = sum(a * b for a, b in zip(one, other, strict=True))
    return round(1 - product / (math.hypot(*one) * math.hypot(*other)), 6)


@makes("condition", 0.8, "search inside")
@makes("whole condition", 1)
def text_search(q: QueryMaker, scope: Scope) -> tree.Expr | None:
    prop = q.prop(scope, of=lambda each: each.type == "String")
    if prop is None:
        return None
    functions = [name for name in ("search", "match_text", "match_all", "fuzzy") if name not in q.without]
    function = q.rng.choice(functions)
    edits = q.rng.choice((0, 1, 2)) if function == "fuzzy" and q.chance(0.4) else None
    return TextSearch(function, prop, q.constant(q.rng.choice(QUERIES), "String"), edits)


@makes("finish", 2)
def nearest(q: QueryMaker, scope: Scope, query: tree.Query) -> tree.Query | None:
    own = Scope(scope.own, scope.own)
    prop = q.prop(own, of=lambda each: each.type == "Vector")
    if prop is None or any(aggregates(each.expr) for each in query.columns):
        return None
    ranking = Nearest(prop, some_vector(q))
    limit = tree.Literal(q.rng.choice((1, 2, 5, 50)), "I64")
    order = (tree.OrderKey(ranking), *query.order[:1])
    return replace(query, parameters=tuple(q.parameters), order=order, limit=limit)


def some_vector(q: QueryMaker) -> tree.Expr:
    """A vector that is written out, or a parameter that must be given."""
    value = tuple(q.rng.choice(values_of("Vector")))
    if q.chance(0.6):
        return tree.Literal(value, "Vector")
    name = f"p{len(q.parameters)}"
    q.parameters.append(tree.Parameter(name, "Vector", value))
    return tree.Param(name, "Vector")
