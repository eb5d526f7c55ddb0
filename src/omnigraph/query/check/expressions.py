"""Expressions: from what was written to typed IR, or to findings."""

from __future__ import annotations

from dataclasses import dataclass, field

from omnigraph.diagnostics import Span, did_you_mean
from omnigraph.query import codes, ir, syntax
from omnigraph.query.check import functions
from omnigraph.query.check.comparisons import check_comparison
from omnigraph.query.check.literals import INTEGER_RANGES, default_type
from omnigraph.query.check.places import CONSTANT_PLACES, MUTATION_PLACES, Place
from omnigraph.query.check.scope import Scope, field_names, find_field, suggest_variable
from omnigraph.query.typing import BOOL, children, type_of
from omnigraph.schema.catalog import GraphType
from omnigraph.schema.types import EntityType, Scalar

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


@dataclass(slots=True)
class ExpressionChecker:
    """Checks the expressions of one place. `row` is the table that bare names are properties of, in a mutation."""

    scope: Scope
    place: Place
    aliases: AliasTable = field(default_factory=AliasTable)
    row: GraphType | None = None

    def problem(self, code: str, message: str, span: Span, hint: str | None = None) -> None:
        """Note a finding."""
        self.scope.problems.add(code, message, span, hint)

    def constants(self) -> ExpressionChecker:
        """A checker for a place inside this one that takes only literals and parameters."""
        place = Place.ASSIGNED if self.place in MUTATION_PLACES else Place.CONSTANT
        return ExpressionChecker(self.scope, place, self.aliases, self.row)

    # --- conditions

    def condition(self, expression: syntax.Expression, *, conjunctive: bool = True) -> ir.Expr | None:
        """An expression that must be Boolean. `conjunctive`: not under `or` or `not`, so a search may stand here."""
        match expression:
            case syntax.And(items):
                return self._all(items, ir.And, conjunctive)
            case syntax.Or(items):
                return self._all(items, ir.Or, False)
            case syntax.Not(item):
                inner = self.condition(item, conjunctive=False)
                return None if inner is None else ir.Not(inner)
            case syntax.Call(function) if function.text in functions.TEXT_PREDICATES:
                return functions.check_text_predicate(self, expression, conjunctive=conjunctive)
        value = self.value(expression)
        if value is None:
            return None
        type_ = type_of(value)
        if type_ != BOOL:
            what = "null" if type_ is None else f"{type_}" if not isinstance(value, ir.Entity) else f"a {type_}"
            hint = "compare it with something" if type_ is not None else "test for null with `= null`"
            self.problem(codes.NOT_BOOLEAN, f"a condition must be Bool, and this is {what}", expression.span, hint)
            return None
        return value

    def _all(
        self, items: tuple[syntax.Expression, ...], make: type[ir.And] | type[ir.Or], conjunctive: bool
    ) -> ir.Expr | None:
        checked = [self.condition(item, conjunctive=conjunctive) for item in items]
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
            case syntax.Comparison():
                if self.place in CONSTANT_PLACES:
                    self._not_constant("a comparison", expression.span)
                    return None
                return check_comparison(self, expression)
            case syntax.And() | syntax.Or() | syntax.Not():
                if self.place in CONSTANT_PLACES:
                    self._not_constant("a condition", expression.span)
                    return None
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
        values: list[ir.Literal] = []
        for item in expression.items:
            checked = self.constants().value(item)
            if checked is None:
                return None
            if isinstance(checked, ir.Param | ir.Now):
                self.problem(
                    codes.CONSTANT_NEEDED,
                    "a list literal holds literals only",
                    item.span,
                    "pass the whole list as a parameter",
                )
                return None
            assert isinstance(checked, ir.Literal)
            if checked.value is None:
                self.problem(codes.OPERAND_TYPE, "a list cannot hold null", item.span)
                return None
            if isinstance(checked.value, tuple):
                self.problem(codes.BLOB_OR_LIST_MISUSE, "there are no lists of lists", item.span)
                return None
            values.append(checked)
        constants = tuple(value.value for value in values)
        return ir.Literal(constants, default_type(constants))

    def _variable(self, variable: syntax.Variable) -> ir.Expr | None:
        name = variable.name
        parameter = self.scope.parameters.get(name)
        if parameter is not None:
            if isinstance(parameter.type, ir.RowsType):
                message = f"`${name}` holds rows of a type and is no value"
                self.problem(codes.PARAMETER_DECLARATION, message, variable.span, f"write `insert … from ${name}`")
                return None
            return ir.Param(name, parameter.type, parameter.nullable)
        if name == "_":
            message = "the anonymous variable `$_` has no value: every use of it is another one"
            self.problem(codes.UNBOUND_VARIABLE, message, variable.span, "give the variable a name")
            return None
        if name in self.scope.variables:
            table_key = self.scope.variables[name]
            if table_key is None:
                return None
            if self.place in CONSTANT_PLACES:
                self._not_constant(f"the entity `${name}`", variable.span)
                return None
            return ir.Entity(name, EntityType(table_key))
        if self.place in {Place.RETURN, Place.ORDER}:
            hint = suggest_variable(name, [*self.scope.variables, *self.scope.parameters])
            self.problem(codes.UNBOUND_VARIABLE, f"`${name}` is not bound in the match block", variable.span, hint)
        else:
            hint = suggest_variable(name, self.scope.parameters) or f"declare it: `query …(${name}: String)`"
            self.problem(codes.UNDECLARED_PARAMETER, f"parameter `${name}` is not declared", variable.span, hint)
        return None

    def _property(self, expression: syntax.Property) -> ir.Expr | None:
        name = expression.variable.name
        if name in self.scope.parameters:
            message = f"`${name}` is a parameter and has no properties"
            self.problem(codes.UNBOUND_VARIABLE, message, expression.span)
            return None
        if self.place in MUTATION_PLACES:
            message = f"`${name}` is not bound: a mutation binds no variables"
            hint = f"write `{expression.name.text}` for the property of the row" if self.place is Place.WHERE else None
            self.problem(codes.UNBOUND_VARIABLE, message, expression.variable.span, hint)
            return None
        prop = self.entity_property(expression)
        if prop is not None and self.place is Place.CONSTANT:
            self._not_constant(f"the property `${name}.{expression.name.text}`", expression.span)
            return None
        return prop

    def entity_property(self, expression: syntax.Property) -> ir.Prop | None:
        """`$x.p` on a bound variable, wherever it stands."""
        name = expression.variable.name
        if name not in self.scope.variables:
            hint = suggest_variable(name, self.scope.variables)
            if name == "_":
                message = "the anonymous variable `$_` has no properties: every use of it is another one"
                hint = "give the variable a name"
            else:
                message = f"`${name}` is not bound in the match block"
            self.problem(codes.UNBOUND_VARIABLE, message, expression.variable.span, hint)
            return None
        table_key = self.scope.variables[name]
        table = None if table_key is None else self.scope.catalog.table(table_key)
        if table is None:
            return None
        found = find_field(table, expression.name.text)
        if found is None:
            hint = did_you_mean(expression.name.text, field_names(table))
            message = f"`{table.name}` has no property `{expression.name.text}`"
            self.problem(codes.UNKNOWN_PROPERTY, message, expression.name.span, hint)
            return None
        return ir.Prop(name, found.name, found.type, found.nullable)

    def _reference(self, reference: syntax.Reference) -> ir.Expr | None:
        name = reference.name
        if self.place in CONSTANT_PLACES:
            hint = f'write "{name}" for a string, or `${name}` for a parameter'
            self._not_constant(f"the name `{name}`", reference.span, hint)
            return None
        if self.place is Place.WHERE:
            assert self.row is not None
            found = find_field(self.row, name)
            if found is None:
                hint = did_you_mean(name, field_names(self.row)) or f'write "{name}" for a string'
                message = f"`{self.row.name}` has no property `{name}`"
                self.problem(codes.UNKNOWN_MUTATION_PROPERTY, message, reference.span, hint)
                return None
            return ir.Prop(ir.THIS, found.name, found.type, found.nullable)
        if name not in self.aliases.expressions:
            hint = did_you_mean(name, self.aliases.expressions) or f"a property is written `$x.{name}`"
            where = "earlier in this return" if self.place is Place.RETURN else "in the return block"
            self.problem(codes.UNBOUND_VARIABLE, f"`{name}` is not an alias defined {where}", reference.span, hint)
            return None
        self.aliases.budget -= self.aliases.sizes[name]
        if self.aliases.budget < 0:
            message = f"the expressions become too large (over {MAX_ALIAS_NODES} parts) when aliases are put in"
            self.problem(codes.EXPRESSION_SIZE, message, reference.span)
            return None
        return self.aliases.expressions[name]

    def _not_constant(self, what: str, span: Span, hint: str | None = None) -> None:
        self.problem(codes.CONSTANT_NEEDED, f"a literal or a parameter is needed here, not {what}", span, hint)


def _size(expr: ir.Expr) -> int:
    return 1 + sum(_size(child) for child in children(expr))
