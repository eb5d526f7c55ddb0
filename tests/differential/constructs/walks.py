"""More forms of a traversal: several edge types, any that fits, conditions on the edges of a walk, paths."""

from __future__ import annotations

from dataclasses import replace

from tests.differential import tree
from tests.differential.constructs.conditions import OPERATORS, Compare, IsNull
from tests.differential.making import QueryMaker, Scope, makes
from tests.differential.types import SINGLE, EdgeType


def alike(q: QueryMaker, edge: EdgeType) -> list[str]:
    """The other edge types between the same ends."""
    ends = (edge.source, edge.target)
    return [each.name for each in q.schema.edges if each != edge and (each.source, each.target) == ends]


@makes("hop", 1)
def several_edge_types(q: QueryMaker, scope: Scope, source: str, edge: EdgeType, target: str) -> tree.Hop | None:
    others = alike(q, edge)
    if not others:
        return None
    chosen = tuple(q.rng.sample(others, 1 if q.chance(0.8) else min(2, len(others))))
    hop = tree.Hop(source, edge.name, target, others=chosen)
    if q.chance(0.4):
        q.used["edge variable of several types"] += 1
        names = "|".join((edge.name, *chosen))
        return replace(hop, edge_var=scope.bind(q.fresh(scope), f"edge:{names}"))
    if edge.source == edge.target and q.chance(0.5):
        low = q.rng.choice((1, 1, 2))
        return replace(hop, low=low, high=low + q.rng.randint(0, 1), undirected=q.chance(0.3), bounded=True)
    return hop


@makes("hop", 0.6)
def any_edge(q: QueryMaker, scope: Scope, source: str, edge: EdgeType, target: str) -> tree.Hop | None:
    ends = {scope.variables[source], scope.variables[target]}
    if q.is_new or not all(kind.startswith("node:") for kind in ends):
        return None
    hop = tree.Hop(source, edge.name, target, others=tuple(sorted(alike(q, edge))), any_edge=True)
    return replace(hop, edge=min(edge.name, *hop.others, edge.name), others=tuple(sorted({edge.name, *hop.others})[1:]))


@makes("hop", 1.5)
def walk_condition(q: QueryMaker, scope: Scope, source: str, edge: EdgeType, target: str) -> tree.Hop | None:
    properties = [each for each in edge.properties if each.type in SINGLE]
    if not properties:
        return None
    prop = q.rng.choice(properties)
    bare = tree.Bare(prop.name, prop.type)
    if prop.nullable and q.chance(0.3):
        test: tree.Expr = IsNull(bare, negated=q.chance(0.6))
    else:
        there = Scope({"w": f"edge:{edge.name}"})
        operator = q.rng.choice(OPERATORS if prop.type not in ("enum", "Bool") else OPERATORS[:2])
        test = Compare(operator, bare, q.like(tree.Prop("w", prop.name, prop.type), there))
    hop = tree.Hop(source, edge.name, target, walk=test)
    if edge.source == edge.target and q.chance(0.6):
        low = q.rng.choice((1, 1, 2))
        return replace(hop, low=low, high=low + q.rng.randint(0, 2), undirected=q.chance(0.2), bounded=True)
    return hop


@makes("hop", 1)
def path(q: QueryMaker, scope: Scope, source: str, edge: EdgeType, target: str) -> tree.Hop | None:
    if edge.source != edge.target or "@" in scope.variables:
        return None
    low = q.rng.choice((1, 1, 2))
    q.paths += 1
    name = f"path{q.paths}"
    scope.paths.append(name)
    hop = tree.Hop(source, edge.name, target, low, low + q.rng.randint(0, 1), q.chance(0.25), bounded=True, path=name)
    condition = walk_condition(q, scope, source, edge, target) if q.chance(0.2) else None
    return hop if condition is None else replace(hop, walk=condition.walk)


@makes("column", 1)
def part_of_path(q: QueryMaker, scope: Scope) -> tree.Expr | None:
    if not scope.paths:
        return None
    return tree.PathPart(q.rng.choice(scope.paths), q.rng.choice(("hops", "nodes", "edges")))
