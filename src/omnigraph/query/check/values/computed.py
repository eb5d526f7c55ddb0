"""Values that are computed: arithmetic, `case`, items of lists, lists of values. Types meet here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from omnigraph.diagnostics import Span
from omnigraph.query import codes, ir
from omnigraph.query.check.values.literals import Misfit, typed
from omnigraph.query.text import syntax
from omnigraph.query.text.print import expression_text
from omnigraph.query.typing import DATE, DATETIME, F64, I64, STRING, U64, arithmetic_type, type_of, unified
from omnigraph.schema.types import (
    INTEGERS,
    EntityType,
    EnumType,
    ListType,
    Scalar,
    ScalarType,
    ValueType,
    is_blob,
    is_number,
    is_text,
)

if TYPE_CHECKING:
    from omnigraph.query.check.values.expressions import ExpressionChecker

_UNITS = {unit.value: unit for unit in ir.TimeUnit}
_CLOCK = frozenset({ir.TimeUnit.HOURS, ir.TimeUnit.MINUTES, ir.TimeUnit.SECONDS})
DURATIONS = tuple(_UNITS)
"""The functions that make a length of time."""


# --- arithmetic


def check_arithmetic(checker: ExpressionChecker, expression: syntax.Arithmetic) -> ir.Expr | None:
    """`left + right`, on numbers, text, lists and moments."""
    if _is_duration(expression.right) or _is_duration(expression.left):
        return _shifted(checker, expression)
    left, right = checker.value(expression.left), checker.value(expression.right)
    if left is None or right is None:
        return None
    for side, written in ((left, expression.left), (right, expression.right)):
        if not _is_operand(checker, side, expression.operator.value, written.span):
            return None
    left, right = adapted(left, right), adapted(right, left)
    first, second = type_of(left), type_of(right)
    assert first is not None
    assert second is not None
    result = _result(expression.operator, first, second)
    if result is None:
        _mismatch(checker, expression, first, second)
        return None
    return ir.Arithmetic(ir.ArithmeticOp(expression.operator.value), left, right, result, expression_text(expression))


def check_negative(checker: ExpressionChecker, expression: syntax.Negative) -> ir.Expr | None:
    """`-item`."""
    item = checker.value(expression.item)
    if item is None or not _is_operand(checker, item, "-", expression.item.span):
        return None
    type_ = type_of(item)
    if type_ is None or not is_number(type_):
        checker.problem(codes.OPERAND_TYPE, f"`-` needs a number, and this is {type_}", expression.item.span)
        return None
    result = F64 if arithmetic_type(type_) == F64 else I64
    return ir.Negate(item, result, expression_text(expression))


def adapted(expr: ir.Expr, other: ir.Expr) -> ir.Expr:
    """A whole number that is written out takes part as U64 beside a U64, which alone does not fit I64."""
    if not isinstance(expr, ir.Literal) or isinstance(expr.value, bool) or not isinstance(expr.value, int):
        return expr
    return ir.Literal(expr.value, U64) if type_of(other) == U64 and expr.value >= 0 else expr


def _result(operator: syntax.ArithmeticOperator, left: ValueType, right: ValueType) -> ValueType | None:
    if is_number(left) and is_number(right):
        return F64 if operator is syntax.ArithmeticOperator.DIVIDE else arithmetic_type(left, right)
    if operator is not syntax.ArithmeticOperator.ADD:
        return None
    if is_text(left) and is_text(right):
        return STRING
    return left if isinstance(left, ListType) and left == right else None


def _is_operand(checker: ExpressionChecker, expr: ir.Expr, sign: str, span: Span) -> bool:
    type_ = type_of(expr)
    if isinstance(expr, ir.Literal) and type_ is None:
        what = "null" if expr.value is None else "an empty list"
        checker.problem(codes.OPERAND_TYPE, f"`{sign}` cannot take {what}, which has no type of its own", span)
        return False
    if isinstance(expr, ir.Entity):
        message = f"`{sign}` computes with values, and this is a bound {type_}"
        checker.problem(codes.OPERAND_TYPE, message, span, "name a property of it")
        return False
    return True


def _mismatch(checker: ExpressionChecker, expression: syntax.Arithmetic, left: ValueType, right: ValueType) -> None:
    sign = expression.operator.value
    hint = None
    moments = {DATE, DATETIME}
    if left in moments and right in moments and sign == "-":
        hint = "use `days_between(a, b)` or `seconds_between(a, b)`"
    elif left in moments or right in moments:
        hint = "move a moment by `days(n)`, `hours(n)` and the like"
    elif sign == "+" and (isinstance(left, ListType) or isinstance(right, ListType)):
        hint = "join lists of one type: `[…]`"
    elif sign == "+" and (is_text(left) or is_text(right)):
        hint = "join text with text: `to_string(…)`"
    message = f"`{sign}` cannot take {left} and {right}"
    checker.problem(codes.OPERAND_TYPE, message, expression.span, hint)


# --- moments


def _is_duration(expression: syntax.Expression) -> bool:
    return isinstance(expression, syntax.Call) and expression.function.text in _UNITS


def misplaced_duration(checker: ExpressionChecker, call: syntax.Call) -> None:
    """Note that a length of time stands alone."""
    name = call.function.text
    message = f"`{name}(…)` stands beside a Date or a DateTime, behind `+` or `-`"
    checker.problem(codes.DURATION_PLACE, message, call.span, f"write `$x.p + {name}(3)`")


def _shifted(checker: ExpressionChecker, expression: syntax.Arithmetic) -> ir.Expr | None:
    duration, other = expression.right, expression.left
    if not _is_duration(duration) and expression.operator is syntax.ArithmeticOperator.ADD:
        duration, other = other, duration
    signs = (syntax.ArithmeticOperator.ADD, syntax.ArithmeticOperator.SUBTRACT)
    if not isinstance(duration, syntax.Call) or not _is_duration(duration) or expression.operator not in signs:
        duration = expression.left if _is_duration(expression.left) else expression.right
        assert isinstance(duration, syntax.Call)
        misplaced_duration(checker, duration)
        return None
    moment = checker.value(other)
    if len(duration.args) != 1 or duration.options or duration.distinct:
        message = f"`{duration.function.text}` takes 1 argument, found {len(duration.args)}"
        checker.problem(codes.FUNCTION_ARGUMENTS, message, duration.span)
        return None
    amount = checker.value(duration.args[0])
    if moment is None or amount is None:
        return None
    type_, count = type_of(moment), type_of(amount)
    if type_ not in {DATE, DATETIME}:
        message = f"`{duration.function.text}(…)` moves a Date or a DateTime, and this is {type_ or 'null'}"
        checker.problem(codes.DURATION_PLACE, message, other.span)
        return None
    if not (isinstance(count, ScalarType) and count.scalar in INTEGERS):
        message = f"`{duration.function.text}` needs an integer, and this is {count or 'null'}"
        checker.problem(codes.FUNCTION_ARGUMENTS, message, duration.args[0].span)
        return None
    unit = _UNITS[duration.function.text]
    result = DATETIME if unit in _CLOCK else type_
    assert result is not None
    backwards = expression.operator is syntax.ArithmeticOperator.SUBTRACT
    return ir.Shift(moment, amount, unit, backwards, result, expression_text(expression))


# --- one type for several values


def check_case(checker: ExpressionChecker, expression: syntax.Case) -> ir.Expr | None:
    """`case { when … then … else … }`."""
    conditions = [checker.condition(condition) for condition, _ in expression.branches]
    written = [*(value for _, value in expression.branches), expression.otherwise]
    values = _one_type(checker, written, [checker.value(value) for value in written], "the values of `case`")
    if values is None or any(condition is None for condition in conditions):
        return None
    items, type_ = values
    branches = tuple((test, value) for test, value in zip(conditions, items[:-1], strict=True) if test is not None)
    return ir.Case(branches, items[-1], type_)


def make_list(checker: ExpressionChecker, expression: syntax.ListLiteral, values: Sequence[ir.Expr]) -> ir.Expr | None:
    """`[a, b]` with values that are known only when the query runs."""
    found = _one_type(checker, expression.items, values, "the items of a list")
    if found is None:
        return None
    items, type_ = found
    if isinstance(type_, EnumType):
        type_ = STRING
    if not isinstance(type_, ScalarType) or is_blob(type_):
        message = f"a list holds single values, and this is {type_}"
        checker.problem(codes.BLOB_OR_LIST_MISUSE, message, expression.span)
        return None
    return ir.ListOf(tuple(items), ListType(type_.scalar))


def _one_type(
    checker: ExpressionChecker,
    written: Sequence[syntax.Expression],
    values: Sequence[ir.Expr | None],
    what: str,
) -> tuple[list[ir.Expr], ValueType] | None:
    """The values, and the type that they are all brought to; literals take the type of the others."""
    checked = [value for value in values if value is not None]
    if len(checked) < len(values):
        return None
    for value, place in zip(checked, written, strict=True):
        if isinstance(value, ir.Entity):
            message = f"{what} are values, and this is a bound {value.type}"
            checker.problem(codes.OPERAND_TYPE, message, place.span, "name a property of it")
            return None
    types = [type_ for value in checked if not isinstance(value, ir.Literal) and (type_ := type_of(value)) is not None]
    literals = [type_ for value in checked if isinstance(value, ir.Literal) and (type_ := type_of(value)) is not None]
    type_ = unified(types or literals) if types or literals else None
    if type_ is not None and types:
        retyped = _literals_as(checked, type_)
        if retyped is not None:
            return retyped, type_
        type_ = unified([*types, *literals])
    if type_ is None:
        names = ", ".join(dict.fromkeys(str(each) for each in [*types, *literals])) or "null"
        message = f"{what} must be of one type, and are {names}"
        checker.problem(codes.OPERAND_TYPE, message, written[-1].span)
        return None
    return list(checked), type_


def _literals_as(values: Sequence[ir.Expr], type_: ValueType) -> list[ir.Expr] | None:
    """The literals among the values as literals of a type; None when one does not fit."""
    made: list[ir.Expr] = []
    for value in values:
        if isinstance(value, ir.Literal) and value.value is not None:
            try:
                made.append(typed(value.value, type_))
            except Misfit:
                return None
        else:
            made.append(value)
    return made


# --- items


def check_index(checker: ExpressionChecker, expression: syntax.Index) -> ir.Expr | None:
    """`list[i]`."""
    items, index = checker.value(expression.item), checker.value(expression.index)
    if items is None or index is None:
        return None
    type_ = type_of(items)
    if not isinstance(type_, ListType):
        what = "an empty list" if isinstance(items, ir.Literal) and items.value == () else str(type_ or "null")
        hint = "take a part of text with `substring(…)`" if type_ is not None and is_text(type_) else None
        message = f"`[…]` takes an item of a list, and this is {what}"
        checker.problem(codes.BLOB_OR_LIST_MISUSE, message, expression.item.span, hint)
        return None
    found = type_of(index)
    if not (isinstance(found, ScalarType) and found.scalar in INTEGERS):
        message = f"the place of an item is an integer, and this is {found or 'null'}"
        checker.problem(codes.OPERAND_TYPE, message, expression.index.span)
        return None
    return ir.Index(items, index, ScalarType(type_.item))


def entity_words(type_: ValueType | None) -> str:
    """A type in words, for messages about values."""
    return f"a bound {type_}" if isinstance(type_, EntityType) else str(type_ or "null")


def list_scalar(type_: ValueType) -> Scalar | None:
    """What a list of such values holds."""
    if isinstance(type_, EnumType):
        return Scalar.STRING
    return type_.scalar if isinstance(type_, ScalarType) and not is_blob(type_) else None
