"""`return`, `order` and `limit`: the columns of the result, their names and types, and how rows are sorted."""

from __future__ import annotations

from dataclasses import dataclass

from omnigraph.diagnostics import Span
from omnigraph.query import codes, ir, syntax
from omnigraph.query.check.expressions import AliasTable, ExpressionChecker
from omnigraph.query.check.places import Place
from omnigraph.query.check.scope import Scope
from omnigraph.query.typing import STRING, children, is_nullable, type_of
from omnigraph.schema.types import INTEGERS, ListType, ScalarType, VectorType, is_blob

MAX_RANKINGS = 50
"""Different rankings in one query: each is a step of the plan."""


@dataclass(frozen=True, slots=True)
class OrderedBy:
    """One sort key. `descending` is None when no direction was written; `direct`: no alias stands for it."""

    expr: ir.Expr
    descending: bool | None
    direct: bool


@dataclass(frozen=True, slots=True)
class CheckedResult:
    """Columns as written, aliases put in: they may hold aggregates and rankings, which lowering takes apart."""

    columns: tuple[ir.Column, ...]
    order: tuple[OrderedBy, ...]
    limit: ir.Expr | None
    grouped: bool


def check_result(read: syntax.Read, scope: Scope) -> CheckedResult:
    """Check everything after the match block."""
    aliases = AliasTable()
    columns: list[ir.Column] = []
    places: list[Span] = []
    names: dict[str, Span] = {}
    for projection in read.projections:
        column = _column(projection, scope, aliases)
        name = _name(projection, column)
        if name is not None:
            if name in names:
                message = f"two columns are called `{name}`"
                scope.problems.add(codes.DUPLICATE_COLUMN, message, projection.span, "name one with `as`")
            names.setdefault(name, projection.span)
        if column is not None:
            columns.append(column)
            places.append(projection.span)
    order = [(key, checked) for key in read.order if (checked := _order_key(key, scope, aliases)) is not None]
    limit = None if read.limit is None else _limit(read.limit, scope)
    grouped = any(has_aggregate(column.expr) for column in columns)
    _check_grouping(columns, places, order, grouped, scope)
    _check_rankings(read, columns, order, scope)
    return CheckedResult(tuple(columns), tuple(checked for _, checked in order), limit, grouped)


# --- columns


def _column(projection: syntax.Projection, scope: Scope, aliases: AliasTable) -> ir.Column | None:
    checker = ExpressionChecker(scope, Place.RETURN, aliases)
    expr = checker.value(projection.expression)
    if expr is None:
        return None
    type_ = type_of(expr)
    span = projection.expression.span
    if type_ is None:
        checker.problem(codes.OPERAND_TYPE, "this value has no type of its own", span, "return a typed value")
        return None
    if is_blob(type_):
        checker.problem(codes.BLOB_AS_VALUE, "a blob cannot be returned by a query", span)
        return None
    if projection.alias is not None:
        aliases.define(projection.alias.text, expr)
    name = _name(projection, None)
    if name is None:
        what = "a literal" if isinstance(expr, ir.Literal) else "a comparison"
        checker.problem(codes.UNNAMED_COLUMN, f"{what} needs a name in `return`", span, "add `as name`")
        return None
    return ir.Column(name, expr, type_, is_nullable(expr))


def _name(projection: syntax.Projection, column: ir.Column | None) -> str | None:
    """The alias, else `x.p`, else `x`, else the function with its argument; comparisons and literals have none."""
    if column is not None:
        return column.name
    if projection.alias is not None:
        return projection.alias.text
    return _own_name(projection.expression)


def _own_name(expression: syntax.Expression) -> str | None:
    match expression:
        case syntax.Property(variable, name):
            return f"{variable.name}.{name.text}"
        case syntax.Variable(name) | syntax.Reference(name):
            return name
        case syntax.Call(function, ()):
            return function.text
        case syntax.Call(function, (first, *_)):
            inner = _own_name(first)
            return None if inner is None else f"{function.text}({inner})"
        case _:
            return None


def has_aggregate(expr: ir.Expr) -> bool:
    """Whether an aggregate is in the expression."""
    return isinstance(expr, ir.Aggregate) or any(has_aggregate(child) for child in children(expr))


# --- order and limit


def _order_key(key: syntax.OrderKey, scope: Scope, aliases: AliasTable) -> OrderedBy | None:
    checker = ExpressionChecker(scope, Place.ORDER, aliases)
    expr = checker.value(key.expression)
    if expr is None:
        return None
    span = key.expression.span
    type_ = type_of(expr)
    if isinstance(expr, ir.Entity):
        return OrderedBy(ir.Prop(expr.var, "id", STRING), key.descending, True)
    if type_ is None:
        checker.problem(codes.OPERAND_TYPE, "null cannot be sorted by", span)
        return None
    if is_blob(type_):
        checker.problem(codes.BLOB_AS_VALUE, "rows cannot be sorted by a blob", span)
        return None
    if isinstance(type_, ListType | VectorType):
        what = "a list" if isinstance(type_, ListType) else "a vector"
        checker.problem(codes.BLOB_OR_LIST_MISUSE, f"rows cannot be sorted by {what}", span)
        return None
    return OrderedBy(expr, key.descending, not isinstance(key.expression, syntax.Reference))


def _limit(expression: syntax.Expression, scope: Scope) -> ir.Expr | None:
    checker = ExpressionChecker(scope, Place.CONSTANT)
    value = checker.value(expression)
    if value is None:
        return None
    type_ = type_of(value)
    fits = isinstance(type_, ScalarType) and type_.scalar in INTEGERS
    hint = None
    if fits and isinstance(value, ir.Literal):
        fits = 0 <= value.value < 2**63
    if fits and isinstance(value, ir.Param) and value.nullable:
        fits, hint = False, f"make `${value.name}` required"
    if not fits:
        message = "`limit` needs a non-negative integer or an integer parameter"
        checker.problem(codes.LIMIT_VALUE, message, expression.span, hint)
        return None
    return value


# --- rules across the clauses


def _check_grouping(
    columns: list[ir.Column],
    places: list[Span],
    order: list[tuple[syntax.OrderKey, OrderedBy]],
    grouped: bool,
    scope: Scope,
) -> None:
    """In a grouped query, what is sorted or computed after grouping is made of aggregates and group keys."""
    if not grouped:
        for key, checked in order:
            if has_aggregate(checked.expr):
                message = "an aggregate in `order` needs one in `return`, which groups the rows"
                scope.problems.add(codes.AGGREGATE_PLACE, message, key.span)
        return
    keys = {column.expr for column in columns if not has_aggregate(column.expr)}
    for column, span in zip(columns, places, strict=True):
        if has_aggregate(column.expr):
            _check_grouped(column.expr, keys, span, scope)
    for key, checked in order:
        _check_grouped(checked.expr, keys, key.span, scope)


def _check_grouped(expr: ir.Expr, keys: set[ir.Expr], span: Span, scope: Scope) -> None:
    if expr in keys or isinstance(expr, ir.Aggregate):
        return
    match expr:
        case ir.Prop(var, name):
            if name == "id" and any(isinstance(key, ir.Entity) and key.var == var for key in keys):
                return
            message = f"`${var}.{name}` is not returned, so it has no single value in a group"
        case ir.Entity(var):
            message = f"`${var}` is not returned, so it has no single value in a group"
        case ir.Nearest() | ir.Bm25() | ir.Rrf():
            message = "a ranking that is not returned has no single value in a group"
        case _:
            for child in children(expr):
                _check_grouped(child, keys, span, scope)
            return
    scope.problems.add(codes.AGGREGATE_PLACE, message, span, "return it, or aggregate it")


def _check_rankings(
    read: syntax.Read, columns: list[ir.Column], order: list[tuple[syntax.OrderKey, OrderedBy]], scope: Scope
) -> None:
    expressions = [column.expr for column in columns] + [checked.expr for _, checked in order]
    spans = [p.expression for p in read.projections] + [key.expression for key in read.order]
    rankings: set[ir.Expr] = set()
    for expr in expressions:
        _collect_rankings(expr, rankings)
    if len(rankings) > MAX_RANKINGS:
        message = f"the query computes {len(rankings)} different rankings; at most {MAX_RANKINGS} are allowed"
        scope.problems.add(codes.EXPRESSION_SIZE, message, spans[0].span)
    if read.limit is not None:
        return
    if any(_has(expr, ir.Rrf) for expr in expressions):
        span = _call_span(spans, "rrf")
        scope.problems.add(codes.RRF_WITHOUT_LIMIT, "`rrf` needs a `limit`", span, "add `limit 10`")
    elif any(_has(expr, ir.Nearest) for expr in expressions):
        span = _call_span(spans, "nearest")
        scope.problems.add(codes.NEAREST_WITHOUT_LIMIT, "`nearest` needs a `limit`", span, "add `limit 10`")


def _collect_rankings(expr: ir.Expr, found: set[ir.Expr]) -> None:
    if isinstance(expr, ir.Nearest | ir.Bm25 | ir.Rrf):
        found.add(expr)
        return
    for child in children(expr):
        _collect_rankings(child, found)


def _has(expr: ir.Expr, kind: type) -> bool:
    return isinstance(expr, kind) or any(_has(child, kind) for child in children(expr))


def _call_span(expressions: list[syntax.Expression], function: str) -> Span:
    """Where the function is called first."""
    stack = list(reversed(expressions))
    while stack:
        expression = stack.pop()
        match expression:
            case syntax.Call(name, args):
                if name.text == function:
                    return expression.span
                stack.extend(reversed(args))
            case syntax.Comparison(_, left, right):
                stack.extend((right, left))
            case syntax.And(items) | syntax.Or(items):
                stack.extend(reversed(items))
            case syntax.Not(item):
                stack.append(item)
    return expressions[0].span
