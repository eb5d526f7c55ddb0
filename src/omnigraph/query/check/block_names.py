"""The names of a match block: what each variable is called in the IR, and which types it has so far."""

from __future__ import annotations

from dataclasses import dataclass, field

from omnigraph.diagnostics import did_you_mean
from omnigraph.query import codes, ir
from omnigraph.query.check import blocks
from omnigraph.query.check.scope import Bound, Scope, common_field, node_types
from omnigraph.query.check.scope import common_names as shared_names
from omnigraph.query.check.values.comparisons import equals
from omnigraph.query.check.values.expressions import ExpressionChecker
from omnigraph.query.check.values.places import Place
from omnigraph.query.text import syntax
from omnigraph.schema.types import EntityType, ListType, Scalar, VectorType, is_blob


@dataclass(slots=True)
class VariableNames:
    """The variables of one query. Names are unique in the whole query, anonymous variables are numbered."""

    anonymous: int = 0
    taken: set[str] = field(default_factory=set)
    variables: list[Bound] = field(default_factory=list)

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
class BlockNames:
    """The variables that one block names, and the nodes that it binds."""

    match: VariableNames
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
