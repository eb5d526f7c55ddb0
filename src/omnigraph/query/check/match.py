"""Match blocks: which variables there are, what they are, and whether every clause holds together.

Types do not depend on the order of the clauses: an edge type fixes the types of its ends, wherever it is written. So
all bindings of a block are collected first, then the traversals, then what nested blocks bind, and only then are
expressions looked at.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from omnigraph.diagnostics import did_you_mean
from omnigraph.query import codes, ir
from omnigraph.query.check import blocks
from omnigraph.query.check.hops import Walk, named_edges, narrow
from omnigraph.query.check.scope import Bound, Scope, common_field, lower_first, node_types, shown
from omnigraph.query.check.scope import common_names as shared_names
from omnigraph.query.check.values.comparisons import equals
from omnigraph.query.check.values.expressions import ExpressionChecker, Row
from omnigraph.query.check.values.places import Place
from omnigraph.query.check.written_names import common_names, own_variables
from omnigraph.query.ir.walk import columns_of, variables_of
from omnigraph.query.text import syntax
from omnigraph.schema.catalog import EdgeType
from omnigraph.schema.types import EntityType, ListType, Scalar, VectorType, is_blob


@dataclass(slots=True)
class MatchChecker:
    """Checks the blocks of one query. Names are unique in the whole query, anonymous variables are numbered."""

    anonymous: int = 0
    taken: set[str] = field(default_factory=set)
    variables: list[Bound] = field(default_factory=list)

    def block(self, clauses: Sequence[syntax.Clause], scope: Scope) -> blocks.Block:
        """Check one block. Adds what it binds to the variables of `scope`."""
        return _BlockChecker(self, scope, set(scope.variables)).check(clauses)

    def bind(self, written: str) -> Bound:
        """A new variable, under a name that no other one has."""
        if written == "_":
            self.anonymous += 1
            name = f"$_{self.anonymous}"
        else:
            name, count = written, 1
            while name in self.taken:
                count += 1
                name = f"{written}#{count}"
        self.taken.add(name)
        bound = Bound(name)
        self.variables.append(bound)
        return bound


@dataclass(slots=True)
class _BlockChecker:
    match: MatchChecker
    scope: Scope
    outer: set[str]
    """The written names that are bound around the block."""
    used: set[str] = field(default_factory=set)
    """The variables, by their names in the IR, that the block and blocks inside it look at."""
    columns: set[str] = field(default_factory=set)
    bounds: dict[int, Bound] = field(default_factory=dict)
    """What a `Variable` of the syntax tree stands for, by identity: each `$_` is its own."""
    paths: list[str] = field(default_factory=list)
    given: dict[str, str] = field(default_factory=dict)
    """Names in the IR that are settled already: those of the variables that all arms of an `either` bind."""
    of_optionals: dict[int, list[str]] = field(default_factory=dict)
    """The written names that each `optional` of this block binds, by the identity of its clause."""

    def check(self, clauses: Sequence[syntax.Clause]) -> blocks.Block:
        around = {name: bound.tables for name, bound in self.scope.variables.items()}
        own = [variable for clause in clauses for variable in own_variables(clause)]
        for variable in own:
            self._name(variable)
        for clause in clauses:
            if isinstance(clause, syntax.Bind):
                self._declare(clause)
        walks = {id(clause): self._walk(clause) for clause in clauses if isinstance(clause, syntax.Traversal)}
        narrow(self.scope, list(walks.values()))
        for walk in walks.values():
            self._narrowed(walk)
        nested = self._nested_bindings(clauses)
        checked: list[blocks.Clause] = self._type_tests(around)
        for at, clause in enumerate(clauses):
            later = [name for each in clauses[at:] for name in self.of_optionals.get(id(each), ())]
            match clause:
                case syntax.Bind():
                    checked.extend(self._bind(clause))
                case syntax.Traversal():
                    hop = self._hop(walks[id(clause)])
                    checked.extend([hop] if hop is not None else [])
                case syntax.FilterClause(expression):
                    self._filter(ExpressionChecker(self.scope, Place.MATCH).condition(expression), checked)
                case syntax.NotBlock(inner):
                    checked.append(blocks.Without(*self._within(inner, clause, later, related="not")))
                case syntax.ExistsBlock(inner):
                    checked.append(blocks.Exists(*self._within(inner, clause, later, related="exists")))
                case syntax.OptionalBlock() | syntax.EitherBlock():
                    checked.append(nested[id(clause)])
        return self._finished(checked, own)

    def _finished(self, checked: Sequence[blocks.Clause], own: Sequence[syntax.Variable]) -> blocks.Block:
        edges = {clause.edge_variable for clause in checked if isinstance(clause, blocks.Hop)}
        bounds = [self.bounds[id(variable)] for variable in own if variable.name not in self.outer]
        mine = {bound.name: found for bound in bounds if (found := bound.variable()) is not None}
        order: dict[str, ir.Variable] = {}
        for clause in checked:
            match clause:
                case blocks.Binding(name):
                    order |= {each: mine[each] for each in (name,) if each in mine}
                case blocks.Hop():
                    ends = [each for each in (clause.source, clause.edge_variable, clause.target) if each is not None]
                    order |= {
                        each: mine[each] for each in ends if each is not None and each in mine and each not in order
                    }
                case blocks.Maybe(block):
                    order |= {each.name: _nullable(each) for each in block.variables if each.name not in order}
                case blocks.OneOf():
                    order |= {each.name: each for each in clause.binds}
        order |= {name: variable for name, variable in mine.items() if name not in order}
        nodes = tuple(variable for name, variable in order.items() if name in mine and name not in edges)
        return blocks.Block(tuple(checked), tuple(order.values()), nodes, tuple(self.paths))

    # --- names

    def _name(self, variable: syntax.Variable) -> None:
        name = variable.name
        if name != "_" and name in self.scope.parameters:
            message = f"`${name}` is a parameter and cannot be bound in the match block"
            hint = "rename the variable or the parameter"
            self.scope.problems.add(codes.PARAMETER_DECLARATION, message, variable.span, hint)
        known = None if name == "_" else self.scope.variables.get(name)
        if known is None:
            known = self._new(name)
            if name != "_":
                self.scope.variables[name] = known
        elif name in self.outer:
            self.used.add(known.name)
        self.bounds[id(variable)] = known

    def _new(self, name: str) -> Bound:
        return Bound(self.given[name]) if name in self.given else self.match.bind(name)

    def _type_tests(self, around: dict[str, tuple[str, ...] | None]) -> list[blocks.Clause]:
        """A variable from outside that is narrowed here, or may be null: said as a condition of this block."""
        tests: list[blocks.Clause] = []
        for name in sorted(self.outer):
            bound, before = self.scope.variables[name], around[name]
            if bound.name not in self.used or bound.tables is None or before is None:
                continue
            if bound.tables != before:
                names = tuple(table.split(":", 1)[1] for table in bound.tables)
                tests.append(
                    blocks.Condition(
                        ir.In(ir.TypeOf(bound.name, bound.nullable), ir.Literal(names, ListType(Scalar.STRING)))
                    )
                )
            if bound.nullable and any(each is bound for each in self.bounds.values()):
                entity = ir.Entity(bound.name, EntityType(bound.table_key or ""), True)
                tests.append(blocks.Condition(ir.IsNull(entity, negated=True)))
        return tests

    # --- types

    def _declare(self, bind: syntax.Bind) -> None:
        types = node_types(self.scope, bind.type)
        bound = self.bounds[id(bind.variable)]
        if types is None:
            return
        if bound.tables is None:
            bound.tables, bound.interface = types.tables, types.interface
            return
        self._settle(bind.variable, types.tables, f"bound as `{bind.type.text}`")
        if types.interface is None:
            bound.interface = None

    def _settle(self, variable: syntax.Variable, tables: tuple[str, ...], reason: str) -> None:
        """Narrow the types of a variable, or note that it has another one already."""
        bound = self.bounds[id(variable)]
        if bound.tables is None:
            bound.tables = tables
            return
        common = tuple(table for table in bound.tables if table in tables)
        if common:
            bound.tables = common
            return
        if bound.tables[0].startswith("edge:"):
            message = f"`${variable.name}` is bound to an edge and cannot be used as a node"
            self.scope.problems.add(codes.EDGE_BINDING, message, variable.span)
            return
        message = f"`${variable.name}` is a {EntityType(bound.table_key or '')} and cannot be {reason}"
        self.scope.problems.add(codes.ENDPOINT_TYPE, message, variable.span)

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

    # --- clauses

    def _filter(self, predicate: ir.Expr | None, checked: list[blocks.Clause]) -> None:
        if predicate is not None:
            self._note(predicate)
            checked.append(blocks.Condition(predicate))

    def _note(self, predicate: ir.Expr) -> None:
        self.used |= variables_of(predicate)
        self.columns |= columns_of(predicate)

    def _bind(self, bind: syntax.Bind) -> list[blocks.Clause]:
        bound = self.bounds[id(bind.variable)]
        conditions: list[ir.Expr] = []
        seen: set[str] = set()
        for item in bind.properties:
            if item.name.text in seen:
                message = f"property `{item.name.text}` is given twice"
                self.scope.problems.add(codes.DUPLICATE_ASSIGNMENT, message, item.name.span)
                continue
            seen.add(item.name.text)
            condition = self._inline(bind, bound, item)
            if condition is not None:
                conditions.append(condition)
        if bound.tables is None:
            return []
        binding = blocks.Binding(bound.name)
        if not conditions:
            return [binding]
        return [binding, blocks.Condition(conditions[0] if len(conditions) == 1 else ir.And(tuple(conditions)))]

    def _inline(self, bind: syntax.Bind, bound: Bound, item: syntax.PropertyValue) -> ir.Expr | None:
        value = ExpressionChecker(self.scope, Place.INLINE).value(item.value)
        if self.scope.catalog.node(bind.type.text) is None and bound.interface != bind.type.text:
            return None
        if bound.tables is None:
            return None
        found = common_field(self.scope.catalog, bound.tables, bound.interface, item.name.text)
        if found is None:
            hint = did_you_mean(item.name.text, shared_names(self.scope.catalog, bound.tables, bound.interface))
            message = f"`{bind.type.text}` has no property `{item.name.text}`"
            self.scope.problems.add(codes.UNKNOWN_PROPERTY, message, item.name.span, hint)
            return None
        if value is None:
            return None
        prop = ir.Prop(bound.name, found.name, found.type, found.nullable or bound.nullable, found.declared)
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

    # --- blocks inside

    def _within(
        self, clauses: Sequence[syntax.Clause], clause: syntax.Clause, later: Sequence[str], related: str
    ) -> tuple[blocks.Block, tuple[str, ...], tuple[str, ...]]:
        """A block inside this one, with the variables and the columns from outside that it uses.

        What an `optional` binds `later` in the text is another block's: here such a name is free.
        """
        before = len(self.scope.problems.found)
        scope = self.scope.inner()
        for name in later:
            del scope.variables[name]
        block, inner, columns = self._inside(clauses, scope)
        if not inner and len(self.scope.problems.found) == before:
            article = "an" if related == "exists" else "a"
            message = f"{article} `{related}` block must use at least one variable that is bound outside of it"
            self.scope.problems.add(codes.UNRELATED_NOT_BLOCK, message, clause.span)
        return block, self._in_order(inner), tuple(sorted(columns))

    def _inside(
        self, clauses: Sequence[syntax.Clause], scope: Scope, given: dict[str, str] | None = None
    ) -> tuple[blocks.Block, set[str], set[str]]:
        """A block inside this one; the variables of this one that it uses, and the columns that it reads."""
        names = {bound.name for bound in self.scope.variables.values()}
        inner = _BlockChecker(self.match, scope, set(scope.variables), given=given or {})
        block = inner.check(clauses)
        self.columns |= inner.columns
        used = inner.used & names
        self.used |= used
        return block, used, inner.columns

    def _in_order(self, names: set[str]) -> tuple[str, ...]:
        return tuple(bound.name for bound in self.scope.variables.values() if bound.name in names)

    def _nested_bindings(self, clauses: Sequence[syntax.Clause]) -> dict[int, blocks.Clause]:
        """Check the blocks that bind variables for this one: every `either` first, then every `optional`, in order."""
        nested: dict[int, blocks.Clause] = {}
        for clause in clauses:
            if isinstance(clause, syntax.EitherBlock):
                nested[id(clause)] = self._either(clause)
        for clause in clauses:
            if isinstance(clause, syntax.OptionalBlock):
                nested[id(clause)] = self._optional(clause)
        return nested

    def _optional(self, clause: syntax.OptionalBlock) -> blocks.Maybe:
        scope = self.scope.inner()
        block, used, columns = self._inside(clause.clauses, scope, self.given)
        maybe = blocks.Maybe(block, self._in_order(used), tuple(sorted(columns)))
        mine = [name for name in scope.variables if name not in self.scope.variables]
        for name in mine:
            scope.variables[name].nullable = True
            self.scope.variables[name] = scope.variables[name]
        self.of_optionals[id(clause)] = mine
        self.paths.extend(block.paths)
        return maybe

    def _either(self, clause: syntax.EitherBlock) -> blocks.OneOf:
        shared = [name for name in common_names(clause) if name not in self.scope.variables]
        bounds = {name: self._new(name) for name in shared}
        names = {name: bound.name for name, bound in bounds.items()}
        arms: list[blocks.Block] = []
        used: set[str] = set()
        columns: set[str] = set()
        for arm in clause.arms:
            scope = self.scope.inner()
            block, seen, read = self._inside(arm.clauses, scope, names)
            used |= seen
            columns |= read
            arms.append(block)
            for name in shared:
                self._join_types(bounds[name], scope.variables[name], clause)
        for name in shared:
            self.scope.variables[name] = bounds[name]
        binds = tuple(found for name in shared if (found := bounds[name].variable()) is not None)
        return blocks.OneOf(tuple(arms), self._in_order(used), tuple(sorted(columns)), binds)

    def _join_types(self, bound: Bound, arm: Bound, clause: syntax.EitherBlock) -> None:
        """A variable that all arms bind has the types of all of them."""
        if arm.tables is None:
            return
        if bound.tables is None:
            bound.tables, bound.interface = arm.tables, arm.interface
        else:
            if bound.tables[0].split(":")[0] != arm.tables[0].split(":")[0]:
                message = f"`${shown(bound.name)}` is a node in one arm and an edge in another"
                self.scope.problems.add(codes.EDGE_BINDING, message, clause.span)
                return
            bound.interface = bound.interface if bound.interface == arm.interface else None
            bound.tables = tuple(sorted({*bound.tables, *arm.tables}))
        bound.nullable |= arm.nullable


def _nullable(variable: ir.Variable) -> ir.Variable:
    return ir.Variable(variable.name, variable.table_key, variable.tables, True, variable.written)


def _ends(edge: EdgeType) -> str:
    return f"{edge.source} -> {edge.target}"
