"""Mutations: which rows are written, with which values, chosen by which predicate."""

from __future__ import annotations

from omnigraph.diagnostics import Span, did_you_mean
from omnigraph.query import codes, ir, syntax
from omnigraph.query.blobs import parse_blob
from omnigraph.query.check.expressions import ExpressionChecker
from omnigraph.query.check.literals import Misfit, typed
from omnigraph.query.check.places import Place
from omnigraph.query.check.scope import Scope
from omnigraph.query.typing import BLOB, STRING, type_of
from omnigraph.schema.catalog import Catalog, EdgeType, GraphType, NodeType
from omnigraph.schema.types import EnumType, ListType, PropertyType, Scalar, ScalarType, ValueType, is_blob, is_text

_WIDER: dict[Scalar, frozenset[Scalar]] = {
    Scalar.I32: frozenset({Scalar.I64, Scalar.F64}),
    Scalar.U32: frozenset({Scalar.I64, Scalar.U64, Scalar.F64}),
    Scalar.F32: frozenset({Scalar.F64}),
}
"""Number types that hold every value of another."""

_ENDS = {"from": "source", "to": "target"}


def check_statement(statement: syntax.Statement, scope: Scope) -> ir.Statement | None:
    """One statement as IR, or None when it does not hold."""
    table = _table(statement.type, scope)
    if table is None:
        return None
    match statement:
        case syntax.Insert():
            return _insert(statement, table, scope)
        case syntax.Update():
            return _update(statement, table, scope)
        case syntax.Delete():
            predicate = ExpressionChecker(scope, Place.WHERE, row=table).condition(statement.predicate)
            return None if predicate is None else ir.Delete(table.table_key, predicate)


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
            ends[name] = _assigned(item, STRING, False, scope)
        elif name == "id":
            row_id = _row_id(item, table, scope)
        else:
            assignment = _assignment(item, table, scope)
            if assignment is not None:
                assignments.append(assignment)
    _check_required(statement, table, given, scope)
    if len(scope.problems.found) > before:
        return None
    return ir.Insert(table.table_key, tuple(assignments), ends.get("from"), ends.get("to"), row_id)


def _row_id(item: syntax.PropertyValue, table: GraphType, scope: Scope) -> ir.Expr | None:
    if table.key:
        message = f"the id of a {table.name} is derived from its key ({', '.join(table.key)})"
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


def _update(statement: syntax.Update, table: GraphType, scope: Scope) -> ir.Statement | None:
    before = len(scope.problems.found)
    assignments: list[ir.Assignment] = []
    given: set[str] = set()
    for item in statement.assignments:
        if _duplicate(item, given, scope) or _is_fixed(item, table, scope):
            continue
        assignment = _assignment(item, table, scope)
        if assignment is not None:
            assignments.append(assignment)
    predicate = ExpressionChecker(scope, Place.WHERE, row=table).condition(statement.predicate)
    if predicate is None or len(scope.problems.found) > before:
        return None
    return ir.Update(table.table_key, tuple(assignments), predicate)


def _is_fixed(item: syntax.PropertyValue, table: GraphType, scope: Scope) -> bool:
    """Keys, ids and ends make a row what it is: they do not change."""
    name = item.name.text
    if name in table.key:
        message = f"`{name}` is part of the key of {table.name} and cannot be updated"
    elif name == "id":
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


def _assignment(item: syntax.PropertyValue, table: GraphType, scope: Scope) -> ir.Assignment | None:
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
    value = _assigned(item, declared.type, declared.nullable, scope)
    return None if value is None else ir.Assignment(name, value)


def _assigned(item: syntax.PropertyValue, target: PropertyType, nullable: bool, scope: Scope) -> ir.Expr | None:
    """The value as one that the property can store."""
    value = ExpressionChecker(scope, Place.ASSIGNED).value(item.value)
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


def _declare_hint(value: ir.Expr, target: PropertyType) -> str | None:
    return f"declare it as `${value.name}: {target}`" if isinstance(value, ir.Param) else None


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
