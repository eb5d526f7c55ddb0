"""Mutations: which rows are written, with which values, chosen by which predicate."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from omnigraph.diagnostics import Span, did_you_mean
from omnigraph.query import codes, ir
from omnigraph.query.blob_text import parse_blob
from omnigraph.query.check.scope import UNKNOWN, Scope, shown, suggest_variable
from omnigraph.query.check.values.expressions import ExpressionChecker, Row
from omnigraph.query.check.values.literals import Misfit, typed
from omnigraph.query.check.values.places import Place
from omnigraph.query.ir.expression_parts import variables_of
from omnigraph.query.text import syntax
from omnigraph.query.text.print import expression_text
from omnigraph.query.typing import BLOB, BOOL, F64, STRING, arithmetic_type, type_of
from omnigraph.schema.catalog import Catalog, EdgeType, GraphType, NodeType, column_titles
from omnigraph.schema.types import (
    EntityType,
    EnumType,
    ListType,
    PropertyType,
    Scalar,
    ScalarType,
    ValueType,
    is_blob,
    is_number,
    is_text,
)

_WIDER: dict[Scalar, frozenset[Scalar]] = {
    Scalar.I32: frozenset({Scalar.I64, Scalar.F64}),
    Scalar.U32: frozenset({Scalar.I64, Scalar.U64, Scalar.F64}),
    Scalar.F32: frozenset({Scalar.F64}),
}
"""Number types that hold every value of another."""

_ENDS = {"from": "source", "to": "target"}


def check_statement(statement: syntax.Statement, scope: Scope) -> ir.Statement | None:
    """One statement as IR, or None when it does not hold."""
    match statement:
        case syntax.Insert():
            table = _table(statement.type, scope)
            return None if table is None else _insert(statement, table, scope)
        case syntax.InsertRows():
            table = _table(statement.type, scope)
            return None if table is None else _insert_rows(statement, table, scope)
        case syntax.Update():
            target = _target(statement.type, scope, "update")
            return None if target is None else _update(statement, target, scope)
        case syntax.Delete():
            target = _target(statement.type, scope, "delete")
            return None if target is None else _delete(statement, target, scope)


@dataclass(frozen=True, slots=True)
class _Target:
    """What an update or a delete is about: the rows of a table, or those that a variable is bound to."""

    table: GraphType
    var: str | None

    @property
    def row(self) -> Row:
        """What bare names are properties of."""
        return Row(ir.THIS, (self.table,))


def _target(target: syntax.Name | syntax.Variable, scope: Scope, word: str) -> _Target | None:
    if isinstance(target, syntax.Name):
        table = _table(target, scope)
        return None if table is None else _Target(table, None)
    bound = scope.variables.get(target.name)
    if bound is None:
        if target.name in scope.parameters:
            message, hint = f"`${target.name}` is a parameter", f"write `{word} Type … where id = ${target.name}`"
        elif not scope.variables:
            message = f"`${target.name}` is not bound: there is no match block before the statements"
            hint = f"write `match {{ ${target.name}: Type }}` before them"
        else:
            message = f"`${target.name}` is not bound in the match block"
            hint = suggest_variable(target.name, scope.variables) or "bind it there"
        scope.problems.add(codes.MATCHED_TARGET, message, target.span, hint)
        return None
    if bound.tables is None and not bound.is_path:
        return None
    table = scope.catalog.table(bound.tables[0]) if bound.tables and len(bound.tables) == 1 else None
    if table is None:
        what = "a path" if bound.is_path else "of several types"
        message = f"`{word}` needs entities of one type, and `${target.name}` is {what}"
        scope.problems.add(codes.MATCHED_TARGET, message, target.span, "bind it to one node or edge type")
        return None
    return _Target(table, bound.name)


def _named(scope: Scope, expressions: Iterable[ir.Expr | None], target: str | None = None) -> tuple[str, ...]:
    """The variables of the match that a statement names, in binding order."""
    used = set().union(*(variables_of(each) for each in expressions if each is not None)) | {target}
    return tuple(bound.name for bound in scope.variables.values() if bound.name in used)


def _predicate(written: syntax.Expression | None, target: _Target, scope: Scope) -> ir.Expr | None:
    if written is None:
        return ir.Literal(True, BOOL)
    return ExpressionChecker(scope, Place.WHERE, row=target.row).condition(written)


def _delete(statement: syntax.Delete, target: _Target, scope: Scope) -> ir.Statement | None:
    predicate = _predicate(statement.predicate, target, scope)
    if predicate is None:
        return None
    return ir.Delete(target.table.table_key, predicate, target.var, _named(scope, (predicate,), target.var))


def _insert_rows(statement: syntax.InsertRows, table: GraphType, scope: Scope) -> ir.Statement | None:
    name = statement.rows.name
    parameter = scope.parameters.get(name)
    if parameter is not None and parameter.type == UNKNOWN:
        return None
    if parameter is None or parameter.type != ir.RowsType(table.table_key):
        found = "not declared" if parameter is None else f"{parameter.type}"
        message = f"`insert {table.name} from` needs rows of {table.name}, and `${name}` is {found}"
        hint = f"declare it as `${name}: [{table.name}]`"
        scope.problems.add(codes.ROWS_PARAMETER, message, statement.rows.span, hint)
        return None
    return ir.InsertRows(table.table_key, name, statement.new)


def _table(name: syntax.Name, scope: Scope) -> GraphType | None:
    found: GraphType | None = scope.catalog.node(name.text) or scope.catalog.edge(name.text)
    if found is None:
        hint = did_you_mean(name.text, (each.name for each in scope.catalog.types()))
        if any(interface.name == name.text for interface in scope.catalog.interfaces):
            hint = "an interface holds no rows; name a node type that implements it"
        scope.problems.add(codes.UNKNOWN_MUTATION_TYPE, f"unknown type `{name.text}`", name.span, hint)
    return found


# --- insert


def _insert(statement: syntax.Insert, table: GraphType, scope: Scope) -> ir.Statement | None:
    before = len(scope.problems.found)
    ends: dict[str, ir.Expr | None] = {}
    row_id: ir.Expr | None = None
    assignments: list[ir.Assignment] = []
    given: set[str] = set()
    for item in statement.assignments:
        name = item.name.text
        if _duplicate(item, given, scope):
            continue
        if isinstance(table, EdgeType) and name in _ENDS:
            ends[name] = _end(item, table, scope)
        elif name == "id" and name not in table.by_name:
            row_id = _row_id(item, table, scope)
        else:
            assignment = _assignment(item, table, scope)
            if assignment is not None:
                assignments.append(assignment)
    _check_required(statement, table, given, scope)
    if len(scope.problems.found) > before:
        return None
    values = [*(each.value for each in assignments), *ends.values(), row_id]
    named = _named(scope, values)
    return ir.Insert(
        table.table_key, tuple(assignments), ends.get("from"), ends.get("to"), row_id, statement.new, named
    )


def _end(item: syntax.PropertyValue, table: EdgeType, scope: Scope) -> ir.Expr | None:
    """An end of an edge: a node's id, the value of its key, or a node variable of the match."""
    written = item.value
    bound = scope.variables.get(written.name) if isinstance(written, syntax.Variable) else None
    wanted = table.source if item.name.text == "from" else table.target
    if bound is None or bound.tables is None:
        return _id_or_key(item, wanted, scope)
    if bound.tables != (f"node:{wanted}",):
        found = EntityType(bound.table_key or "")
        message = f"`{item.name.text}` of {table.name} is a {wanted}, and this is a {found}"
        scope.problems.add(codes.ENDPOINT_TYPE, message, written.span)
        return None
    return ir.Prop(bound.name, "id", STRING, bound.nullable)


def _id_or_key(item: syntax.PropertyValue, node: str, scope: Scope) -> ir.Expr | None:
    """An id, or the value of a node's key: for a key of several properties a list of them."""
    found = scope.catalog.node(node)
    key = [found.by_column[column].type for column in found.key] if found is not None else []
    value = ExpressionChecker(scope, Place.ASSIGNED).value(item.value)
    if isinstance(value, ir.Literal):
        if value.value is not None and (_is_id(value.value) or _fits(value.value, key)):
            return value
    elif value is not None and type_of(value) in (STRING, *(key if len(key) == 1 else ())):
        return value
    return None if value is None else _assigned(item, STRING, False, scope)


def _is_id(value: Any) -> bool:
    return isinstance(value, str) or (isinstance(value, int) and not isinstance(value, bool))


def _fits(value: Any, key: Sequence[PropertyType]) -> bool:
    """Whether a literal is a value of the key: a single one, or a list with one for each property."""
    values = value if isinstance(value, tuple) else (value,)
    if len(values) != len(key) or isinstance(value, tuple) != (len(key) > 1):
        return False
    try:
        return all(isinstance(each, str) or typed(each, type_) for each, type_ in zip(values, key))
    except Misfit:
        return False


def _row_id(item: syntax.PropertyValue, table: GraphType, scope: Scope) -> ir.Expr | None:
    if table.key:
        message = f"the id of a {table.name} is derived from its key ({column_titles(table.key)})"
        scope.problems.add(codes.FIXED_PROPERTY, message, item.name.span, "leave `id` out")
        return None
    return _assigned(item, STRING, False, scope)


def _check_required(statement: syntax.Insert, table: GraphType, given: set[str], scope: Scope) -> None:
    missing = [
        each.name
        for each in table.properties
        if not (each.nullable or each.has_default or each.embed is not None) and each.name not in given
    ]
    if isinstance(table, EdgeType):
        missing = [end for end in _ENDS if end not in given] + missing
    if missing:
        names = ", ".join(f"`{name}`" for name in missing)
        verb = "is" if len(missing) == 1 else "are"
        message = f"{names} of {table.name} {verb} required and not given"
        scope.problems.add(codes.MISSING_ASSIGNMENT, message, statement.type.span)


# --- update


def _update(statement: syntax.Update, target: _Target, scope: Scope) -> ir.Statement | None:
    before = len(scope.problems.found)
    table = target.table
    assignments: list[ir.Assignment] = []
    given: set[str] = set()
    for item in statement.assignments:
        if _duplicate(item, given, scope) or _is_fixed(item, table, scope):
            continue
        assignment = _assignment(item, table, scope, target.row)
        if assignment is not None:
            assignments.append(assignment)
    predicate = _predicate(statement.predicate, target, scope)
    if predicate is None or len(scope.problems.found) > before:
        return None
    named = _named(scope, [predicate, *(each.value for each in assignments)], target.var)
    return ir.Update(table.table_key, tuple(assignments), predicate, target.var, named)


def _is_fixed(item: syntax.PropertyValue, table: GraphType, scope: Scope) -> bool:
    """Keys, ids and ends make a row what it is: they do not change."""
    name = item.name.text
    declared = table.by_name.get(name)
    if declared is not None and declared.column in table.key:
        message = f"`{name}` is part of the key of {table.name} and cannot be updated"
    elif name in {"id", "@id"} and name not in table.by_name:
        message = f"the id of a {table.name} cannot be updated"
    elif isinstance(table, EdgeType) and name in {*_ENDS, "src", "dst"} and name not in table.by_name:
        message = f"the ends of an edge cannot be updated (`{name}` of {table.name})"
    else:
        return False
    scope.problems.add(codes.FIXED_PROPERTY, message, item.name.span, "delete the row and insert a new one")
    return True


# --- assignments


def _duplicate(item: syntax.PropertyValue, given: set[str], scope: Scope) -> bool:
    name = item.name.text
    if name in given:
        scope.problems.add(codes.DUPLICATE_ASSIGNMENT, f"`{name}` is assigned twice", item.name.span)
        return True
    given.add(name)
    return False


def _assignment(
    item: syntax.PropertyValue, table: GraphType, scope: Scope, row: Row | None = None
) -> ir.Assignment | None:
    name = item.name.text
    declared = table.by_name.get(name)
    if declared is None:
        names = [*table.by_name, *(_ENDS if isinstance(table, EdgeType) else ())]
        hint = did_you_mean(name, names)
        if isinstance(table, EdgeType) and name in {"src", "dst"}:
            hint = "the ends of an edge are written `from` and `to`"
        elif isinstance(table, NodeType) and name in _ENDS:
            hint = f"{table.name} is a node type; `from` and `to` belong to edges"
        message = f"`{table.name}` has no property `{name}`"
        scope.problems.add(codes.UNKNOWN_MUTATION_PROPERTY, message, item.name.span, hint)
        return None
    value = _assigned(item, declared.type, declared.nullable, scope, row)
    return None if value is None else ir.Assignment(name, value)


def _assigned(
    item: syntax.PropertyValue, target: PropertyType, nullable: bool, scope: Scope, row: Row | None = None
) -> ir.Expr | None:
    """The value as one that the property can store."""
    value = ExpressionChecker(scope, Place.ASSIGNED, row=row).value(item.value)
    if value is None:
        return None
    name, span = item.name.text, item.value.span
    if isinstance(value, ir.Literal):
        if value.value is None:
            if not nullable:
                scope.problems.add(codes.MISSING_ASSIGNMENT, f"`{name}` is required and cannot be null", span)
                return None
            return ir.Literal(None, target)
        return _literal(value, target, name, span, scope)
    found = type_of(value)
    assert found is not None
    if _is_computed(value) and is_number(found) and is_number(target) and _holds(target, found):
        return value if found == target else ir.Convert(value, target, expression_text(item.value))
    if not _assignable(found, target):
        message = f"`{name}` is {target}, and this is {found}"
        scope.problems.add(codes.OPERAND_TYPE, message, span, _declare_hint(value, target))
        return None
    return value


def _literal(value: ir.Literal, target: PropertyType, name: str, span: Span, scope: Scope) -> ir.Expr | None:
    try:
        if is_blob(target):
            if not isinstance(value.value, str):
                raise Misfit("expected a blob as base64 or URI text")
            return ir.Literal(parse_blob(value.value), BLOB)
        return typed(value.value, target)
    except Misfit as misfit:
        scope.problems.add(codes.OPERAND_TYPE, f"`{name}` is {target}: {misfit.message}", span, misfit.hint)
    except ValueError as error:
        scope.problems.add(codes.OPERAND_TYPE, f"`{name}` is {target}: {error}", span)
    return None


def _assignable(found: ValueType, target: PropertyType) -> bool:
    """Whether every value of the one type is a value of the other; text goes into enums and is checked on writing."""
    if found == target or (isinstance(target, EnumType) and is_text(found)):
        return True
    if isinstance(found, ListType) and isinstance(target, ListType):
        return target.item in _WIDER.get(found.item, frozenset())
    if isinstance(found, ScalarType) and isinstance(target, ScalarType):
        return target.scalar in _WIDER.get(found.scalar, frozenset())
    return False


def _is_computed(value: ir.Expr) -> bool:
    return not isinstance(value, ir.Param | ir.Prop | ir.Entity)


def _holds(target: PropertyType, found: ValueType) -> bool:
    """Whether numbers of one kind may go into a property of another: each one is looked at when it is written."""
    return arithmetic_type(target) == F64 or arithmetic_type(found) != F64


def _declare_hint(value: ir.Expr, target: PropertyType) -> str | None:
    if isinstance(value, ir.Entity):
        return f"name a property: `${shown(value.var)}.p`"
    if isinstance(value, ir.Param):
        return f"declare it as `${value.name}: {target}`"
    numbers = is_number(target) and arithmetic_type(target) != F64
    return "convert it with `to_int(…)`" if numbers and type_of(value) == F64 else None


# --- what is read and written


def touched(statement: ir.Statement, catalog: Catalog) -> tuple[set[str], set[str]]:
    """The tables that a statement reads, and those that it can change."""
    table = catalog.table(statement.table_key)
    assert table is not None
    match statement:
        case ir.Insert() | ir.InsertRows():
            if isinstance(table, EdgeType):
                return {f"node:{table.source}", f"node:{table.target}"}, {statement.table_key}
            return set(), {statement.table_key}
        case ir.Update():
            return {statement.table_key}, {statement.table_key}
        case ir.Delete():
            cascade: set[str] = set()
            if isinstance(table, NodeType):
                cascade = {edge.table_key for edge in catalog.edges_touching(table.name)}
            return {statement.table_key} | cascade, {statement.table_key} | cascade
