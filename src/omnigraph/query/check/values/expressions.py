"""Expressions: from what was written to typed IR, or to findings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from omnigraph.diagnostics import Span, did_you_mean
from omnigraph.query import codes, ir
from omnigraph.query.check.scope import (
    UNKNOWN,
    Bound,
    Field,
    Scope,
    common_field,
    common_names,
    field_names,
    find_field,
    suggest_variable,
)
from omnigraph.query.check.values import computed, functions
from omnigraph.query.check.values.comparisons import check_comparison, null_test
from omnigraph.query.check.values.literals import INTEGER_RANGES, default_type
from omnigraph.query.check.values.places import CONSTANT_PLACES, MUTATION_PLACES, RESULT_PLACES, Place
from omnigraph.query.text import syntax
from omnigraph.query.typing import BOOL, STRING, children, type_of
from omnigraph.schema.catalog import GraphType
from omnigraph.schema.types import EntityType, EnumType, Scalar

MAX_ALIAS_NODES = 20_000
"""How large the expressions of one query may become when aliases are replaced by what they stand for."""


@dataclass(slots=True)
class AliasTable:
    """The aliases of a return block so far, and how much their use may still grow the query."""

    expressions: dict[str, ir.Expr] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)
    budget: int = MAX_ALIAS_NODES

    def define(self, name: str, expr: ir.Expr) -> None:
        """Make an alias known to what follows."""
        self.expressions[name] = expr
        self.sizes[name] = _size(expr)


@dataclass(frozen=True, slots=True)
class Row:
    """What bare names are properties of: the row of a mutation (`var` THIS), or the edge of a walk (`var` EDGE)."""

    var: str
    tables: tuple[GraphType, ...]

    @property
    def name(self) -> str:
        """The name of the type, or of the types."""
        return "|".join(table.name for table in self.tables)


@dataclass(slots=True)
class ExpressionChecker:
    """Checks the expressions of one place. `row` is what bare names are properties of, in a mutation or a walk."""

    scope: Scope
    place: Place
    aliases: AliasTable = field(default_factory=AliasTable)
    row: Row | None = None

    def problem(self, code: str, message: str, span: Span, hint: str | None = None) -> None:
        """Note a finding."""
        self.scope.problems.add(code, message, span, hint)

    def constants(self) -> ExpressionChecker:
        """A checker for a place inside this one that takes only literals and parameters."""
        return ExpressionChecker(self.scope, Place.CONSTANT, self.aliases)

    # --- conditions

    def condition(self, expression: syntax.Expression) -> ir.Expr | None:
        """An expression that must be Boolean."""
        match expression:
            case syntax.And(items):
                return self._all(items, ir.And)
            case syntax.Or(items):
                return self._all(items, ir.Or)
            case syntax.Not(item):
                inner = self.condition(item)
                return None if inner is None else ir.Not(inner)
        value = self.value(expression)
        if value is None:
            return None
        type_ = type_of(value)
        if type_ != BOOL:
            what = "null" if type_ is None else f"{type_}" if not isinstance(value, ir.Entity) else f"a {type_}"
            hint = "compare it with something" if type_ is not None else "test for null with `is null`"
            self.problem(codes.NOT_BOOLEAN, f"a condition must be Bool, and this is {what}", expression.span, hint)
            return None
        return value

    def _all(self, items: tuple[syntax.Expression, ...], make: type[ir.And] | type[ir.Or]) -> ir.Expr | None:
        checked = [self.condition(item) for item in items]
        flat: list[ir.Expr] = []
        for item in checked:
            if item is None:
                return None
            flat.extend(item.items if isinstance(item, make) else (item,))
        return make(tuple(flat))

    # --- values

    def value(self, expression: syntax.Expression) -> ir.Expr | None:
        """An expression of any type. None when it does not hold; the reason has been noted."""
        match expression:
            case syntax.Literal():
                return self._literal(expression)
            case syntax.ListLiteral():
                return self._list(expression)
            case syntax.Variable():
                return self._variable(expression)
            case syntax.Property():
                return self._property(expression)
            case syntax.Reference():
                return self._reference(expression)
            case syntax.Call():
                return functions.check_call(self, expression)
            case _:
                return self._composed(expression)

    def _composed(self, expression: syntax.Expression) -> ir.Expr | None:
        if self.place is Place.CONSTANT:
            self.not_constant(_COMPOSED.get(type(expression), "a computed value"), expression.span)
            return None
        match expression:
            case syntax.Comparison():
                return check_comparison(self, expression)
            case syntax.NullTest(item, negated):
                return null_test(self, self.value(item), negated, expression.span)
            case syntax.Arithmetic():
                return computed.check_arithmetic(self, expression)
            case syntax.Negative():
                return computed.check_negative(self, expression)
            case syntax.Case():
                return computed.check_case(self, expression)
            case syntax.Index():
                return computed.check_index(self, expression)
            case _:
                return self.condition(expression)

    def _literal(self, literal: syntax.Literal) -> ir.Expr | None:
        value = literal.value
        if isinstance(value, int) and not isinstance(value, bool):
            low, high = INTEGER_RANGES[Scalar.I64][0], INTEGER_RANGES[Scalar.U64][1]
            if not low <= value <= high:
                self.problem(codes.OPERAND_TYPE, f"{value} does not fit any integer type", literal.span)
                return None
        return ir.Literal(value, default_type(value))

    def _list(self, expression: syntax.ListLiteral) -> ir.Expr | None:
        values: list[ir.Expr] = []
        for item in expression.items:
            checked = self.value(item)
            if checked is None:
                return None
            if isinstance(checked, ir.Literal) and checked.value is None:
                self.problem(codes.OPERAND_TYPE, "a list cannot hold null", item.span)
                return None
            if isinstance(checked, ir.Literal) and isinstance(checked.value, tuple):
                self.problem(codes.BLOB_OR_LIST_MISUSE, "there are no lists of lists", item.span)
                return None
            values.append(checked)
        literals = [value for value in values if isinstance(value, ir.Literal)]
        if len(literals) == len(values):
            constants = tuple(value.value for value in literals)
            return ir.Literal(constants, default_type(constants))
        return computed.make_list(self, expression, values)

    def _variable(self, variable: syntax.Variable) -> ir.Expr | None:
        name = variable.name
        parameter = self.scope.parameters.get(name)
        if parameter is not None:
            if parameter.type == UNKNOWN:
                return None
            if isinstance(parameter.type, ir.RowsType):
                message = f"`${name}` holds rows of a type and is no value"
                self.problem(codes.ROWS_PARAMETER, message, variable.span, f"write `insert … from ${name}`")
                return None
            return ir.Param(name, parameter.type, parameter.nullable)
        if name == "_":
            message = "the anonymous variable `$_` has no value: every use of it is another one"
            self.problem(codes.UNBOUND_VARIABLE, message, variable.span, "give the variable a name")
            return None
        if name in self.scope.variables:
            return self._entity(variable, self.scope.variables[name])
        if self.place in RESULT_PLACES:
            self._unbound(variable, [*self.scope.variables, *self.scope.parameters])
        else:
            hint = suggest_variable(name, self.scope.parameters) or f"declare it: `query …(${name}: String)`"
            self.problem(codes.UNDECLARED_PARAMETER, f"parameter `${name}` is not declared", variable.span, hint)
        return None

    def _unbound(self, variable: syntax.Variable, known: Sequence[str]) -> None:
        name = variable.name
        if name in self.scope.left_behind:
            message = f"`${name}` is not known behind a `with` that does not list it"
            self.problem(codes.UNBOUND_VARIABLE, message, variable.span, f"pass it on: `with {{ ${name}, … }}`")
            return
        if name in self.scope.inside:
            message = f"`${name}` belongs to the block that binds it and is not known outside"
            hint = "`optional` hands on what it binds, and `either` what all of its arms bind"
            self.problem(codes.UNBOUND_VARIABLE, message, variable.span, hint)
            return
        nearest = suggest_variable(name, known)
        self.problem(codes.UNBOUND_VARIABLE, f"`${name}` is not bound in the match block", variable.span, nearest)

    def _entity(self, variable: syntax.Variable, bound: Bound) -> ir.Expr | None:
        name = variable.name
        if bound.is_path:
            message = f"`${name}` is a path and no value"
            hint = f"look into it with `hops(${name})`, `nodes(${name})` or `edges(${name})`"
            self.problem(codes.PATH_USE, message, variable.span, hint)
            return None
        if bound.table_key is None:
            return None
        if self.place in CONSTANT_PLACES:
            self.not_constant(f"the entity `${name}`", variable.span)
            return None
        if self.place is Place.WALK:
            self._outside_walk(f"`${name}`", variable.span)
            return None
        return ir.Entity(bound.name, EntityType(bound.table_key), bound.nullable)

    def _property(self, expression: syntax.Property) -> ir.Expr | None:
        name = expression.variable.name
        if name in self.scope.parameters:
            message = f"`${name}` is a parameter and has no properties"
            self.problem(codes.UNBOUND_VARIABLE, message, expression.span)
            return None
        if self.place in MUTATION_PLACES and name not in self.scope.variables:
            if self.scope.variables:
                message = f"`${name}` is not bound in the match block"
                hint = suggest_variable(name, self.scope.variables)
            else:
                message = f"`${name}` is not bound: there is no match block before the statements"
                hint = f"write `{expression.name.text}` for the property of the row" if self.row is not None else None
            self.problem(codes.UNBOUND_VARIABLE, message, expression.variable.span, hint)
            return None
        prop = self.entity_property(expression)
        if prop is not None and self.place in CONSTANT_PLACES:
            self.not_constant(f"the property `${name}.{expression.name.text}`", expression.span)
            return None
        if prop is not None and self.place is Place.WALK:
            self._outside_walk(f"`${name}.{expression.name.text}`", expression.span)
            return None
        return prop

    def entity_property(self, expression: syntax.Property) -> ir.Prop | ir.TypeOf | None:
        """`$x.p` on a bound variable, wherever it stands."""
        name = expression.variable.name
        bound = self.scope.variables.get(name)
        if bound is None:
            if name == "_":
                message = "the anonymous variable `$_` has no properties: every use of it is another one"
                self.problem(codes.UNBOUND_VARIABLE, message, expression.variable.span, "give the variable a name")
            else:
                self._unbound(expression.variable, list(self.scope.variables))
            return None
        if bound.is_path:
            parts = f"look into it with `hops(${name})`, `nodes(${name})` or `edges(${name})`"
            self.problem(codes.PATH_USE, f"`${name}` is a path and has no properties", expression.span, parts)
            return None
        if bound.table_key is None or bound.tables is None:
            return None
        if expression.name.text == "@type":
            return ir.TypeOf(bound.name, bound.nullable)
        found = common_field(self.scope.catalog, bound.tables, bound.interface, expression.name.text)
        if found is None:
            hint = self._missing_hint(bound, expression.name.text)
            message = f"`{EntityType(bound.table_key)}` has no property `{expression.name.text}`"
            if expression.name.text in common_names(self.scope.catalog, bound.tables, bound.interface):
                message = f"`{expression.name.text}` is not of one type in all of `{EntityType(bound.table_key)}`"
                hint = "ask for it in an `optional`, or an arm of an `either`, for each of these types"
            self.problem(codes.UNKNOWN_PROPERTY, message, expression.name.span, hint)
            return None
        return ir.Prop(bound.name, found.name, found.type, found.nullable or bound.nullable, found.declared)

    def _missing_hint(self, bound: Bound, name: str) -> str | None:
        assert bound.tables is not None
        if name.startswith("@"):
            own = ["@id", "@type"] + (["@src", "@dst"] if bound.tables[0].startswith("edge:") else [])
            return did_you_mean(name, own) or f"there are {', '.join(own)}"
        hint = did_you_mean(name, common_names(self.scope.catalog, bound.tables, bound.interface))
        if hint is None and len(bound.tables) > 1:
            return "only properties that all of these types share can be used"
        return hint

    def _reference(self, reference: syntax.Reference) -> ir.Expr | None:
        name = reference.name
        if self.row is not None:
            return self._row_field(reference, self.row)
        if self.place in CONSTANT_PLACES or self.place is Place.ASSIGNED:
            hint = f'write "{name}" for a string, or `${name}` for a parameter'
            self.not_constant(f"the name `{name}`", reference.span, hint)
            return None
        if name in self.aliases.expressions:
            return self._alias(reference)
        if name in self.scope.columns:
            return self.scope.columns[name]
        known = [*self.aliases.expressions, *self.scope.columns]
        hint = did_you_mean(name, known) or f"a property is written `$x.{name}`"
        where = "earlier in this return" if self.place is Place.RETURN else "in the return block"
        self.problem(codes.UNBOUND_VARIABLE, f"`{name}` is not an alias defined {where}", reference.span, hint)
        return None

    def _alias(self, reference: syntax.Reference) -> ir.Expr | None:
        name = reference.name
        self.aliases.budget -= self.aliases.sizes[name]
        if self.aliases.budget < 0:
            message = f"the expressions become too large (over {MAX_ALIAS_NODES} parts) when aliases are put in"
            self.problem(codes.EXPRESSION_SIZE, message, reference.span)
            return None
        return self.aliases.expressions[name]

    def _row_field(self, reference: syntax.Reference, row: Row) -> ir.Expr | None:
        name = reference.name
        if name == "@type":
            return ir.TypeOf(row.var) if len(row.tables) > 1 else ir.Literal(row.tables[0].name, STRING)
        found = _shared(row, name)
        if found is None:
            known = [each for each in field_names(row.tables[0]) if _shared(row, each) is not None]
            hint = did_you_mean(name, known) or f'write "{name}" for a string'
            if any(name in each.type.values for each in row.tables[0].properties if isinstance(each.type, EnumType)):
                hint = f'write "{name}" for the value of an enum'
            message = f"`{row.name}` has no property `{name}`"
            if all(find_field(table, name) is not None for table in row.tables):
                message = f"`{name}` is not of one type in all of `{row.name}`"
                hint = "follow each of these types in an arm of an `either`, with a condition of its own"
            code = codes.UNKNOWN_PROPERTY if self.place is Place.WALK else codes.UNKNOWN_MUTATION_PROPERTY
            self.problem(code, message, reference.span, hint)
            return None
        return ir.Prop(row.var, found.name, found.type, found.nullable, found.declared)

    def not_constant(self, what: str, span: Span, hint: str | None = None) -> None:
        """Note that a constant is needed here."""
        self.problem(codes.CONSTANT_NEEDED, f"a literal or a parameter is needed here, not {what}", span, hint)

    def _outside_walk(self, what: str, span: Span) -> None:
        message = f"the condition of a traversal looks at its edges only, not at {what}"
        hint = "bare names are the edge's properties; compare other variables in a filter of their own"
        self.problem(codes.WALK_CONDITION, message, span, hint)


_COMPOSED = {
    syntax.Comparison: "a comparison",
    syntax.NullTest: "a comparison",
    syntax.And: "a condition",
    syntax.Or: "a condition",
    syntax.Not: "a condition",
}


def _shared(row: Row, name: str) -> Field | None:
    """The field that all types of a row have."""
    found = [find_field(table, name) for table in row.tables]
    known = [each for each in found if each is not None]
    if len(known) < len(found) or any(each.type != known[0].type for each in known):
        return None
    return Field(known[0].name, known[0].type, any(each.nullable for each in known), known[0].declared)


def _size(expr: ir.Expr) -> int:
    return 1 + sum(_size(child) for child in children(expr))
