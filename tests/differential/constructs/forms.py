"""More forms of traversals: every form with several edge types, any type, the edge bound, paths and conditions.

The page says that directions, bounds and bindings work with several types as with one; so they are put together freely.
"""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

from tests.differential import tree
from tests.differential.constructs.searching import TextSearch
from tests.differential.constructs.walks import alike
from tests.differential.making import QueryMaker, Scope, makes
from tests.differential.types import EdgeType


@makes("hop", 2)
def free_form(q: QueryMaker, scope: Scope, source: str, edge: EdgeType, target: str) -> tree.Hop | None:
    """One type, several, or any that fits; then a bound edge, bounds, a path, either direction, a condition."""
    names = (edge.name,)
    others = alike(q, edge)
    ends = {scope.variables[source], scope.variables[target]}
    any_edge = not q.is_new and all(kind.startswith("node:") for kind in ends) and q.chance(0.4)
    if any_edge:
        names = tuple(sorted({edge.name, *others}))
    elif others and q.chance(0.5):
        names = (edge.name, q.rng.choice(others))
    kind = "edge:" + "|".join(names)
    loops = edge.source == edge.target
    hop = tree.Hop(source, names[0], target, others=names[1:], any_edge=any_edge, undirected=loops and q.chance(0.3))
    if q.chance(0.4):
        hop = replace(hop, walk=edge_condition(q, kind))
    form = q.rng.random()
    if form < 0.35:
        return replace(hop, edge_var=scope.bind(q.fresh(scope), kind))
    if form < 0.8 and loops:
        low = q.rng.choice((1, 1, 2))
        hop = replace(hop, low=low, high=low + q.rng.randint(0, 2), bounded=True)
    if form > 0.6:
        q.paths += 1
        name = f"path{q.paths}"
        scope.paths.append(name)
        return replace(hop, path=name)
    return hop


def edge_condition(q: QueryMaker, kind: str) -> tree.Expr | None:
    """Any condition over one edge, with its properties by their bare names."""
    there = Scope({"w": kind}, {"w": kind})
    made = q.condition(there, 1)
    return None if made is None else bare(made)


def bare(node: Any) -> Any:
    """The same expression with bare names; None where it says something that a bare name cannot."""
    if isinstance(node, tuple):
        parts = tuple(bare(each) for each in node)
        return None if None in parts else parts
    own = isinstance(node, tree.Prop) and node.name.startswith("@")
    if own or isinstance(node, tree.Entity | TextSearch):
        return None
    if isinstance(node, tree.Prop):
        return tree.Bare(node.name, node.type)
    if not isinstance(node, tree.Expr) or isinstance(node, tree.Literal | tree.Param):
        return node
    inside = {each.name: getattr(node, each.name) for each in fields(node)}  # type: ignore[arg-type]
    inside = {name: value for name, value in inside.items() if isinstance(value, tuple | tree.Expr)}
    changed = {name: bare(value) for name, value in inside.items()}
    return None if None in changed.values() else replace(node, **changed)  # type: ignore[type-var]
