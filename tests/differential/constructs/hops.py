"""The forms of a traversal: plain, either direction, several hops, with the edge bound."""

from __future__ import annotations

from tests.differential import tree
from tests.differential.making import QueryMaker, Scope, makes
from tests.differential.types import EdgeType


@makes("hop", 3)
def plain_hop(q: QueryMaker, scope: Scope, source: str, edge: EdgeType, target: str) -> tree.Hop:
    return tree.Hop(source, edge.name, target)


@makes("hop", 4)
def edge_variable(q: QueryMaker, scope: Scope, source: str, edge: EdgeType, target: str) -> tree.Hop:
    undirected = edge.source == edge.target and q.chance(0.2)
    var = scope.bind(q.fresh(scope), f"edge:{edge.name}")
    return tree.Hop(source, edge.name, target, edge_var=var, undirected=undirected)


@makes("hop", 1.5)
def undirected_hop(q: QueryMaker, scope: Scope, source: str, edge: EdgeType, target: str) -> tree.Hop | None:
    return tree.Hop(source, edge.name, target, undirected=True) if edge.source == edge.target else None


@makes("hop", 2)
def several_hops(q: QueryMaker, scope: Scope, source: str, edge: EdgeType, target: str) -> tree.Hop | None:
    if edge.source != edge.target:
        return tree.Hop(source, edge.name, target, bounded=True)
    low = q.rng.choice((1, 1, 2, 3))
    high = low + q.rng.randint(0, 2)
    return tree.Hop(source, edge.name, target, low, high, q.chance(0.3), bounded=True)
