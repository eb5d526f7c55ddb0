"""Aggregates: where they may stand, and what they can be of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnigraph.query import codes, ir
from omnigraph.query.check.scope import shown
from omnigraph.query.check.values.calls import allowed, has_count
from omnigraph.query.check.values.places import RESULT_PLACES
from omnigraph.query.text import syntax
from omnigraph.query.text.print import expression_text
from omnigraph.query.typing import BOOL, DATE, DATETIME, children, type_of
from omnigraph.schema.types import ValueType, is_blob, is_number, is_text

if TYPE_CHECKING:
    from omnigraph.query.check.values.expressions import ExpressionChecker


def check_aggregate(checker: ExpressionChecker, call: syntax.Call) -> ir.Expr | None:
    """`count(…)` and the like."""
    name = call.function.text
    what = f"the aggregate `{name}`"
    if not allowed(checker, call, what, codes.AGGREGATE_PLACE, RESULT_PLACES) or not has_count(checker, call, 1, 1):
        return None
    argument = checker.value(call.args[0])
    span = call.args[0].span
    if argument is None:
        return None
    if has_aggregate(argument):
        checker.problem(codes.AGGREGATE_PLACE, "aggregates cannot be nested", span)
        return None
    function = ir.AggregateFunction(name)
    type_ = type_of(argument)
    if type_ is None:
        message = f"`{name}` needs a value with a type, and this is {'null' if _is_null(argument) else 'an empty list'}"
        checker.problem(codes.AGGREGATE_ARGUMENT, message, span)
        return None
    if is_blob(type_):
        checker.problem(codes.BLOB_AS_VALUE, f"`{name}` cannot look into a blob", span)
        return None
    if not _can_aggregate(function, type_):
        numbers = {"sum", "avg", "median", "stddev"}
        needs = "a number" if name in numbers else "a number, text, date or Boolean"
        hint = None
        if isinstance(argument, ir.Entity):
            owner = shown(argument.var)
            hint = f"name a property: `${owner}.p`" if name != "collect" else f"collect ids: `${owner}.@id`"
        message = f"`{name}` needs {needs}, and this is {type_}"
        checker.problem(codes.AGGREGATE_ARGUMENT, message, span, hint)
        return None
    return ir.Aggregate(function, argument, call.distinct, expression_text(call))


def _is_null(expr: ir.Expr) -> bool:
    return isinstance(expr, ir.Literal) and expr.value is None


def _can_aggregate(function: ir.AggregateFunction, type_: ValueType) -> bool:
    match function:
        case ir.AggregateFunction.COUNT:
            return True
        case ir.AggregateFunction.MIN | ir.AggregateFunction.MAX | ir.AggregateFunction.COLLECT:
            return is_number(type_) or is_text(type_) or type_ in {BOOL, DATE, DATETIME}
        case _:
            return is_number(type_)


def has_aggregate(expr: ir.Expr) -> bool:
    """Whether an aggregate is in the expression."""
    return isinstance(expr, ir.Aggregate) or any(has_aggregate(child) for child in children(expr))
