"""Blocks inside a block: `not { … }` and its like."""

from __future__ import annotations

from typing import Any

from tests.differential import tree
from tests.differential.making import QueryMaker, Scope, makes


@makes("block", 2)
def not_block(q: QueryMaker, scope: Scope, depth: int) -> tree.Clause | None:
    return block("not", q, scope, depth)


def block(kind: str, q: QueryMaker, scope: Scope, depth: int) -> tree.Clause | None:
    """A block that uses a variable from outside, or None."""
    inner = scope.inner()
    clauses = q.clauses(inner, depth)
    if not clauses or not (mentioned(clauses) & set(scope.variables)):
        return None
    if len(clauses) > 1:
        q.used[f"{kind} with several clauses"] += 1
    return tree.Block(kind, clauses)


def mentioned(node: Any) -> set[str]:
    """The variables that a part of a query names."""
    if isinstance(node, tuple):
        return {name for each in node for name in mentioned(each)}
    if not isinstance(node, tree.Expr | tree.Clause):
        return set()
    found = {name for each in vars(node).values() for name in mentioned(each)}
    match node:
        case tree.Prop(var) | tree.Entity(var) | tree.Bind(var):
            found.add(var)
        case tree.Hop(source=source, target=target, edge_var=edge_var):
            found |= {source, target, *([edge_var] if edge_var else [])}
    return found
