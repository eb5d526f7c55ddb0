"""Traversals: which edge types they may take, and what that says about their ends.

An edge type that is named alone fixes the types of both ends. Of several, or of `*`, those remain that fit the ends;
since one traversal may narrow the ends of another, this is repeated until nothing changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from omnigraph.diagnostics import did_you_mean
from omnigraph.query import codes
from omnigraph.query.check.scope import Bound, Scope, joined_key, lower_first
from omnigraph.query.text import syntax
from omnigraph.schema.catalog import EdgeType
from omnigraph.schema.types import EntityType

ANY = "*"


@dataclass(slots=True)
class Walk:
    """A traversal while its types are being found out."""

    written: syntax.Traversal
    source: Bound
    target: Bound
    edges: list[EdgeType]
    bounds: tuple[int, int]
    failed: bool = False
    named: list[EdgeType] = field(default_factory=list)

    @property
    def is_alone(self) -> bool:
        """Whether exactly one edge type is named."""
        return not self.written.alternatives and self.written.edge.text != ANY


def named_edges(scope: Scope, traversal: syntax.Traversal) -> list[EdgeType]:
    """The edge types that a traversal names, all of them for `*`; unknown names are findings."""
    names = (traversal.edge, *traversal.alternatives)
    if any(name.text == ANY for name in names):
        if len(names) > 1:
            scope.problems.add(codes.UNKNOWN_EDGE, "`*` is any edge type and needs no alternatives", names[1].span)
        return [each for each in scope.catalog.edges if not traversal.undirected or each.source == each.target]
    found: list[EdgeType] = []
    for name in names:
        edge = scope.catalog.edge(name.text)
        if edge is None:
            hint = did_you_mean(name.text, [lower_first(each.name) for each in scope.catalog.edges])
            scope.problems.add(codes.UNKNOWN_EDGE, f"unknown edge type `{name.text}`", name.span, hint)
        elif edge in found:
            scope.problems.add(codes.UNKNOWN_EDGE, f"`{name.text}` is named twice", name.span)
        else:
            found.append(edge)
    return sorted(found, key=lambda edge: edge.name)


def narrow(scope: Scope, walks: Sequence[Walk]) -> None:
    """Find out the types of several edges and of their ends, as far as they say something about each other."""
    waiting = [walk for walk in walks if not walk.is_alone and walk.edges]
    for walk in waiting:
        walk.named = list(walk.edges)
    changed = True
    while changed:
        changed = False
        for walk in waiting:
            changed |= _narrow_one(walk)
    for walk in waiting:
        _report(scope, walk)


def _narrow_one(walk: Walk) -> bool:
    before = (walk.source.tables, walk.target.tables, tuple(walk.edges))
    sources, targets, used = _reachable(walk)
    walk.edges = [edge for edge in walk.edges if edge.name in used]
    if sources and targets:
        walk.source.tables = _in_order(sources)
        walk.target.tables = _in_order(targets)
    return before != (walk.source.tables, walk.target.tables, tuple(walk.edges))


def _reachable(walk: Walk) -> tuple[set[str], set[str], set[str]]:
    """The tables at both ends between which a walk within the bounds is possible, and the edge types on such walks."""
    steps = [(f"node:{edge.source}", f"node:{edge.target}", edge.name) for edge in walk.edges]
    if walk.written.undirected:
        steps += [(end, start, name) for start, end, name in steps]
    starts = set(walk.source.tables) if walk.source.tables is not None else {start for start, _, _ in steps}
    ends = set(walk.target.tables) if walk.target.tables is not None else {end for _, end, _ in steps}
    low, high = walk.bounds
    high = min(high, low + 2 * len(steps) + 2)
    layers = [starts]
    for _ in range(high):
        layers.append({end for start, end, _ in steps if start in layers[-1]})
    sources: set[str] = set()
    targets: set[str] = set()
    used: set[str] = set()
    for length in range(low, high + 1):
        reached = layers[length] & ends
        if not reached:
            continue
        targets |= reached
        for place in range(length - 1, -1, -1):
            taken = [step for step in steps if step[1] in reached and step[0] in layers[place]]
            used |= {name for _, _, name in taken}
            reached = {start for start, _, _ in taken}
        sources |= reached
    return sources, targets, used


def _in_order(tables: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(tables))


def _report(scope: Scope, walk: Walk) -> None:
    """Findings for edges that can never be taken; `*` just leaves them out."""
    traversal = walk.written
    if not walk.edges:
        walk.failed = True
        ends = f"{_words(walk.source)} to {_words(walk.target)}"
        what = "no edge type leads" if traversal.edge.text == ANY else "none of these edge types leads"
        scope.problems.add(codes.NO_FITTING_EDGE, f"{what} from {ends}", traversal.edge.span)
        return
    if traversal.edge.text == ANY:
        return
    for name in (traversal.edge, *traversal.alternatives):
        edge = scope.catalog.edge(name.text)
        if edge is not None and edge not in walk.edges and edge in walk.named:
            ends = f"{_words(walk.source)} to {_words(walk.target)}"
            message = f"`{name.text}` ({edge.source} -> {edge.target}) does not lead from {ends}"
            scope.problems.add(codes.NO_FITTING_EDGE, message, name.span)
            walk.failed = True


def _words(bound: Bound) -> str:
    return "any node" if not bound.tables else str(EntityType(bound.table_key or joined_key(bound.tables)))
