"""Match blocks: which variables there are, what they are, and whether every clause holds together.

Types do not depend on the order of the clauses: an edge type fixes the types of its ends, wherever it is written. So
all bindings of a block are collected first, then the traversals, and only then are expressions looked at.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from omnigraph.diagnostics import did_you_mean
from omnigraph.query import codes, ir, syntax
from omnigraph.query.check.blocks import Binding, Block, Condition, Hop, Without
from omnigraph.query.check.comparisons import equals
from omnigraph.query.check.expressions import ExpressionChecker
from omnigraph.query.check.places import Place
from omnigraph.query.check.scope import Scope, field_names, find_field, lower_first, node_type
from omnigraph.query.typing import variables_of
from omnigraph.schema.catalog import EdgeType
from omnigraph.schema.types import ListType, VectorType, is_blob


@dataclass(slots=True)
class MatchChecker:
    """Checks the blocks of one query. Anonymous variables are numbered through the whole query."""

    anonymous: int = 0

    def block(self, clauses: Sequence[syntax.Clause], scope: Scope) -> Block:
        """Check one block. Adds what it binds to the variables of `scope`."""
        return _BlockChecker(self, scope, set(scope.variables)).check(clauses)

    def fresh(self) -> str:
        """A name for another anonymous variable."""
        self.anonymous += 1
        return f"$_{self.anonymous}"


@dataclass(slots=True)
class _BlockChecker:
    match: MatchChecker
    scope: Scope
    outer: set[str]
    used: set[str] = field(default_factory=set)
    order: list[str] = field(default_factory=list)
    names: dict[int, str] = field(default_factory=dict)
    """The variable that a `Variable` of the syntax tree stands for, by identity: each `$_` is its own."""

    def check(self, clauses: Sequence[syntax.Clause]) -> Block:
        self._name_variables(clauses)
        for clause in clauses:
            if isinstance(clause, syntax.Bind):
                self._declare(clause)
        edges = {id(c): self._traverse(c) for c in clauses if isinstance(c, syntax.Traversal)}
        checked: list[Binding | Hop | Condition | Without] = []
        for clause in clauses:
            match clause:
                case syntax.Bind():
                    checked.extend(self._bind(clause))
                case syntax.Traversal():
                    hop = self._hop(clause, edges[id(clause)])
                    checked.extend([hop] if hop is not None else [])
                case syntax.FilterClause(expression):
                    predicate = ExpressionChecker(self.scope, Place.MATCH).condition(expression)
                    if predicate is not None:
                        self.used |= variables_of(predicate)
                        checked.append(Condition(predicate))
                case syntax.NotBlock():
                    checked.append(self._without(clause))
        variables = tuple(
            ir.Variable(name, key) for name in self.order if (key := self.scope.variables[name]) is not None
        )
        return Block(tuple(checked), variables)

    # --- names

    def _name_variables(self, clauses: Sequence[syntax.Clause]) -> None:
        """Find the variables that the block binds, in the order of the text."""
        for clause in clauses:
            match clause:
                case syntax.Bind(variable):
                    self._name(variable)
                case syntax.Traversal(source, _, target, _, _, edge_variable):
                    for end in (source, edge_variable, target):
                        if end is not None:
                            self._name(end)

    def _name(self, variable: syntax.Variable) -> None:
        if variable.name == "_":
            name = self.match.fresh()
        else:
            name = variable.name
            if name in self.scope.parameters:
                message = f"`${name}` is a parameter and cannot be bound in the match block"
                hint = "rename the variable or the parameter"
                self.scope.problems.add(codes.PARAMETER_DECLARATION, message, variable.span, hint)
        self.names[id(variable)] = name
        if name in self.outer:
            self.used.add(name)
        elif name not in self.order:
            self.order.append(name)
            self.scope.variables[name] = None

    def _table_of(self, variable: syntax.Variable) -> str | None:
        return self.scope.variables.get(self.names[id(variable)])

    # --- types

    def _declare(self, bind: syntax.Bind) -> None:
        type_ = node_type(self.scope, bind.type)
        self._settle(bind.variable, None if type_ is None else type_.table_key, f"bound as `{bind.type.text}`")

    def _settle(self, variable: syntax.Variable, table_key: str | None, reason: str) -> None:
        """Give the variable its type, or note that it has another one already."""
        name = self.names[id(variable)]
        known = self.scope.variables.get(name)
        if known is None or table_key is None:
            self.scope.variables[name] = known or table_key
            return
        if known == table_key:
            return
        kind, known_type = known.split(":", 1)
        if kind == "edge":
            message = f"`${name}` is bound to an edge and cannot be used as a node"
            self.scope.problems.add(codes.EDGE_BINDING, message, variable.span)
            return
        message = f"`${name}` is a {known_type} and cannot be {reason}"
        self.scope.problems.add(codes.ENDPOINT_TYPE, message, variable.span)

    def _traverse(self, traversal: syntax.Traversal) -> EdgeType | None:
        """Find the edge type and type both ends and the edge variable by it."""
        edge = self.scope.catalog.edge(traversal.edge.text)
        if edge is None:
            known = [lower_first(each.name) for each in self.scope.catalog.edges]
            hint = did_you_mean(traversal.edge.text, known)
            message = f"unknown edge type `{traversal.edge.text}`"
            self.scope.problems.add(codes.UNKNOWN_EDGE, message, traversal.edge.span, hint)
            return None
        if not self._reversed(traversal, edge):
            written = traversal.edge.text
            self._settle(traversal.source, f"node:{edge.source}", f"the start of `{written}` ({_ends(edge)})")
            self._settle(traversal.target, f"node:{edge.target}", f"the end of `{written}` ({_ends(edge)})")
        if traversal.edge_variable is not None:
            self._bind_edge(traversal.edge_variable, edge)
        return edge

    def _reversed(self, traversal: syntax.Traversal, edge: EdgeType) -> bool:
        """Whether both ends have the types of the edge, the wrong way round: one finding that says so."""
        if edge.source == edge.target or traversal.undirected:
            return False
        ends = (self._table_of(traversal.source), self._table_of(traversal.target))
        swapped = (f"node:{edge.target}", f"node:{edge.source}")
        if ends != swapped and not (None in ends and (ends[0] == swapped[0] or ends[1] == swapped[1])):
            return False
        source, target = traversal.source.name, traversal.target.name
        message = f"`{traversal.edge.text}` goes from {edge.source} to {edge.target}, and this is the other way round"
        hint = f"write `${target} {traversal.edge.text} ${source}`"
        self.scope.problems.add(codes.ENDPOINT_TYPE, message, traversal.span, hint)
        return True

    def _bind_edge(self, variable: syntax.Variable, edge: EdgeType) -> None:
        name = self.names[id(variable)]
        if self.scope.variables.get(name) is not None:
            message = f"`${name}` is bound already; an edge variable is bound once"
            self.scope.problems.add(codes.EDGE_BINDING, message, variable.span)
            return
        self.scope.variables[name] = edge.table_key

    # --- clauses

    def _bind(self, bind: syntax.Bind) -> list[Binding | Condition]:
        name = self.names[id(bind.variable)]
        conditions: list[ir.Expr] = []
        seen: set[str] = set()
        for item in bind.properties:
            if item.name.text in seen:
                message = f"property `{item.name.text}` is given twice"
                self.scope.problems.add(codes.DUPLICATE_ASSIGNMENT, message, item.name.span)
                continue
            seen.add(item.name.text)
            condition = self._inline(bind, name, item)
            if condition is not None:
                conditions.append(condition)
        table_key = self.scope.variables[name]
        if table_key is None:
            return []
        binding = Binding(name, table_key)
        if not conditions:
            return [binding]
        return [binding, Condition(conditions[0] if len(conditions) == 1 else ir.And(tuple(conditions)))]

    def _inline(self, bind: syntax.Bind, variable: str, item: syntax.PropertyValue) -> ir.Expr | None:
        value = ExpressionChecker(self.scope, Place.CONSTANT).value(item.value)
        table = self.scope.catalog.node(bind.type.text)
        if table is None:
            return None
        found = find_field(table, item.name.text)
        if found is None:
            hint = did_you_mean(item.name.text, field_names(table))
            message = f"`{table.name}` has no property `{item.name.text}`"
            self.scope.problems.add(codes.UNKNOWN_PROPERTY, message, item.name.span, hint)
            return None
        if value is None:
            return None
        prop = ir.Prop(variable, found.name, found.type, found.nullable)
        is_null = isinstance(value, ir.Literal) and value.value is None
        if (is_blob(found.type) or isinstance(found.type, VectorType)) and not is_null:
            what = "a blob" if is_blob(found.type) else "a vector"
            message = f"`{found.name}` is {what} and cannot be matched by a value"
            self.scope.problems.add(codes.BLOB_OR_LIST_MISUSE, message, item.span)
            return None
        if isinstance(found.type, ListType) and isinstance(value, ir.Literal) and isinstance(value.value, tuple):
            message = f"`{found.name}` is a list: an inline value asks for one member of it"
            self.scope.problems.add(codes.BLOB_OR_LIST_MISUSE, message, item.value.span)
            return None
        return equals(ExpressionChecker(self.scope, Place.MATCH), prop, value, item.value.span)

    def _hop(self, traversal: syntax.Traversal, edge: EdgeType | None) -> Hop | None:
        bounds = self._bounds(traversal, edge)
        if edge is None or bounds is None:
            return None
        if traversal.undirected and edge.source != edge.target:
            message = f"`{edge.name}` goes from {edge.source} to {edge.target}; `<…>` needs both ends of one type"
            hint = f"write `$a {lower_first(edge.name)} $b`"
            self.scope.problems.add(codes.UNDIRECTED_UNLIKE_ENDS, message, traversal.edge.span, hint)
            return None
        edge_variable = traversal.edge_variable
        return Hop(
            self.names[id(traversal.source)],
            self.names[id(traversal.target)],
            f"node:{edge.source}",
            f"node:{edge.target}",
            edge.name,
            traversal.undirected,
            *bounds,
            None if edge_variable is None else self.names[id(edge_variable)],
        )

    def _bounds(self, traversal: syntax.Traversal, edge: EdgeType | None) -> tuple[int, int] | None:
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
        elif high > 1 and edge is not None and edge.source != edge.target:
            problem = f"`{edge.name}` goes from {edge.source} to {edge.target}, so it cannot be followed twice"
        if problem is not None:
            self.scope.problems.add(codes.TRAVERSAL_BOUNDS, problem, bounds.span)
            return None
        assert low is not None
        assert high is not None
        return (low, high)

    def _without(self, clause: syntax.NotBlock) -> Without:
        inner = _BlockChecker(self.match, self.scope.inner(), set(self.scope.variables))
        problems_before = len(self.scope.problems.found)
        block = inner.check(clause.clauses)
        used = inner.used & inner.outer
        if not used and len(self.scope.problems.found) == problems_before:
            message = "a `not` block must use at least one variable that is bound outside of it"
            self.scope.problems.add(codes.UNRELATED_NOT_BLOCK, message, clause.span)
        self.used |= used
        return Without(block, tuple(name for name in self.scope.variables if name in used))


def _ends(edge: EdgeType) -> str:
    return f"{edge.source} -> {edge.target}"
