"""The traversals of a match block: their edge types, their ends, their bounds, what they bind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from omnigraph.query import codes, ir
from omnigraph.query.check import blocks
from omnigraph.query.check.block_names import BlockNames
from omnigraph.query.check.hops import Walk, named_edges
from omnigraph.query.check.scope import Bound, lower_first
from omnigraph.query.check.values.expressions import ExpressionChecker, Row
from omnigraph.query.check.values.places import Place
from omnigraph.query.text import syntax
from omnigraph.schema.catalog import EdgeType


@dataclass(slots=True)
class BlockWalks(BlockNames):
    """The traversals of one block."""

    def _walk(self, traversal: syntax.Traversal) -> Walk:
        """Find the edge types; one that is named alone types both ends."""
        edges = named_edges(self.scope, traversal)
        source, target = self.bounds[id(traversal.source)], self.bounds[id(traversal.target)]
        bounds = self._hop_bounds(traversal, edges)
        walk = Walk(traversal, source, target, edges, bounds or (1, 1), failed=bounds is None or not edges)
        for end in (traversal.source, traversal.target):
            known = self.bounds[id(end)]
            if known.is_path or (known.tables and known.tables[0].startswith("edge:")):
                self._not_a_node(end, known)
                walk.failed = True
                walk.edges = []
        if walk.edges and walk.is_alone and not self._reversed(traversal, edges[0]):
            edge, written = edges[0], traversal.edge.text
            self._settle(traversal.source, (f"node:{edge.source}",), f"the start of `{written}` ({_ends(edge)})")
            self._settle(traversal.target, (f"node:{edge.target}",), f"the end of `{written}` ({_ends(edge)})")
        for edge in edges:
            self._check_undirected(traversal, edge, walk)
        self._bind_edge(walk)
        return walk

    def _not_a_node(self, variable: syntax.Variable, bound: Bound) -> None:
        if bound.is_path:
            message = f"`${variable.name}` is a path and cannot be used as a node"
            self.scope.problems.add(codes.PATH_USE, message, variable.span)
        else:
            message = f"`${variable.name}` is bound to an edge and cannot be used as a node"
            self.scope.problems.add(codes.EDGE_BINDING, message, variable.span)

    def _check_undirected(self, traversal: syntax.Traversal, edge: EdgeType, walk: Walk) -> None:
        if traversal.undirected and edge.source != edge.target:
            message = f"`{edge.name}` goes from {edge.source} to {edge.target}; `<…>` needs both ends of one type"
            hint = f"write `$a {lower_first(edge.name)} $b`"
            self.scope.problems.add(codes.UNDIRECTED_UNLIKE_ENDS, message, traversal.edge.span, hint)
            walk.failed = True

    def _reversed(self, traversal: syntax.Traversal, edge: EdgeType) -> bool:
        """Whether both ends have the types of the edge, the wrong way round: one finding that says so."""
        if edge.source == edge.target or traversal.undirected:
            return False
        ends = (self.bounds[id(traversal.source)].tables, self.bounds[id(traversal.target)].tables)
        swapped = ((f"node:{edge.target}",), (f"node:{edge.source}",))
        if ends != swapped and not (None in ends and (ends[0] == swapped[0] or ends[1] == swapped[1])):
            return False
        source, target = traversal.source.name, traversal.target.name
        message = f"`{traversal.edge.text}` goes from {edge.source} to {edge.target}, and this is the other way round"
        hint = f"write `${target} {traversal.edge.text} ${source}`"
        self.scope.problems.add(codes.ENDPOINT_TYPE, message, traversal.span, hint)
        return True

    def _bind_edge(self, walk: Walk) -> None:
        variable = walk.written.edge_variable
        if variable is None:
            return
        bound = self.bounds[id(variable)]
        if bound.tables is not None or bound.is_path:
            message = f"`${variable.name}` is bound already; an edge variable is bound once"
            self.scope.problems.add(codes.EDGE_BINDING, message, variable.span)
            walk.failed = True
        elif walk.edges:
            bound.tables = tuple(edge.table_key for edge in walk.edges)

    def _narrowed(self, walk: Walk) -> None:
        """The types of an edge variable, when it is known which edges remain; and the path."""
        traversal = walk.written
        if traversal.edge_variable is not None and walk.edges and not walk.failed:
            self.bounds[id(traversal.edge_variable)].tables = tuple(edge.table_key for edge in walk.edges)
        if traversal.path is not None:
            self._bind_path(traversal, traversal.path)

    def _bind_path(self, traversal: syntax.Traversal, path: syntax.Variable) -> None:
        name = path.name
        if traversal.edge_variable is not None:
            message = "a traversal binds its edge or its path, not both"
            self.scope.problems.add(codes.EDGE_BINDING, message, path.span)
            return
        if name in self.scope.parameters or name in self.scope.variables or name == "_":
            message = "a path needs a name" if name == "_" else f"`${name}` is bound already; a path is bound once"
            self.scope.problems.add(codes.PATH_USE, message, path.span)
            return
        bound = self.match.bind(name)
        bound.is_path = True
        self.scope.variables[name] = bound
        self.bounds[id(path)] = bound
        self.paths.append(bound.name)

    def _hop(self, walk: Walk) -> blocks.Hop | None:
        traversal = walk.written
        where = None
        if traversal.where is not None and walk.edges:
            row = Row(ir.EDGE, tuple(walk.edges))
            where = ExpressionChecker(self.scope, Place.WALK, row=row).condition(traversal.where)
            walk.failed |= where is None
        if walk.failed or not walk.edges:
            return None
        edge_variable, path = traversal.edge_variable, traversal.path
        return blocks.Hop(
            walk.source.name,
            walk.target.name,
            tuple(edge.name for edge in walk.edges),
            traversal.undirected,
            *walk.bounds,
            None if edge_variable is None else self.bounds[id(edge_variable)].name,
            where,
            self.bounds[id(path)].name if path is not None and id(path) in self.bounds else None,
        )

    def _hop_bounds(self, traversal: syntax.Traversal, edges: Sequence[EdgeType]) -> tuple[int, int] | None:
        bounds = traversal.bounds
        if bounds is None:
            return (1, 1)
        low, high = bounds.low, bounds.high
        problem = None
        if traversal.edge_variable is not None:
            message = "an edge can be bound over a single hop only"
            self.scope.problems.add(codes.EDGE_BINDING, message, bounds.span, "leave out the bounds")
            return None
        if low is None or high is None:
            problem = "the bounds of a traversal must be finite: `{1,3}`"
        elif low < 1:
            problem = f"a traversal has at least one hop, and this asks for {low}"
        elif high < low:
            problem = f"the upper bound {high} is below the lower bound {low}"
        elif high > 1 and len(edges) == 1 and edges[0].source != edges[0].target:
            edge = edges[0]
            problem = f"`{edge.name}` goes from {edge.source} to {edge.target}, so it cannot be followed twice"
        if problem is not None:
            self.scope.problems.add(codes.TRAVERSAL_BOUNDS, problem, bounds.span)
            return None
        assert low is not None
        assert high is not None
        return (low, high)


def _ends(edge: EdgeType) -> str:
    return f"{edge.source} -> {edge.target}"
