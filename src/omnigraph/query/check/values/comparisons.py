"""The operators between two operands: which types they take, and how literals adapt to the other side."""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnigraph.diagnostics import Span
from omnigraph.query import codes, ir
from omnigraph.query.check.scope import shown
from omnigraph.query.check.values.literals import INTEGER_RANGES, Misfit, coerce, describe, typed
from omnigraph.query.check.values.own_ids import as_id, id_forms
from omnigraph.query.text import syntax
from omnigraph.query.text.print import expression_text
from omnigraph.query.typing import BOOL, DATE, DATETIME, STRING, type_of
from omnigraph.schema.ids.given_ids import spelled
from omnigraph.schema.patterns import BadPattern, portable_pattern
from omnigraph.schema.types import (
    EntityType,
    EnumType,
    ListType,
    Scalar,
    ScalarType,
    ValueType,
    VectorType,
    is_blob,
    is_number,
    is_text,
)

if TYPE_CHECKING:
    from omnigraph.query.check.values.expressions import ExpressionChecker


def check_comparison(checker: ExpressionChecker, comparison: syntax.Comparison) -> ir.Expr | None:
    """`left operator right` as a typed condition."""
    if comparison.operator is syntax.Operator.IN and _has_parameters(comparison.right):
        return _any_of(checker, comparison, comparison.left, comparison.right)
    if comparison.operator is syntax.Operator.CONTAINS and _has_parameters(comparison.left):
        return _any_of(checker, comparison, comparison.right, comparison.left)
    left, right = checker.value(comparison.left), checker.value(comparison.right)
    if left is None or right is None:
        return None
    match comparison.operator:
        case syntax.Operator.CONTAINS:
            return _contains(checker, comparison, left, right)
        case syntax.Operator.STARTS_WITH | syntax.Operator.ENDS_WITH | syntax.Operator.MATCHES:
            return _on_text(checker, comparison, left, right)
        case syntax.Operator.IN:
            return _in(checker, comparison, left, right)
        case _:
            return _compare(checker, comparison, left, right)


def comparable(left: ValueType, right: ValueType) -> bool:
    """Whether two types have values that can be equal or ordered among each other."""
    if is_number(left) or is_text(left):
        return is_number(left) == is_number(right) and is_text(left) == is_text(right)
    return left == right and left in {BOOL, DATE, DATETIME}


def equals(checker: ExpressionChecker, left: ir.Prop, right: ir.Expr, span: Span) -> ir.Expr | None:
    """The meaning of an inline property: equality, membership on a list, a null test for `null`."""
    if _is_null(right):
        return ir.IsNull(left)
    if isinstance(left.type, ListType) and not isinstance(type_of(right), ListType):
        needle = _adapted(checker, right, ScalarType(left.type.item), span)
        return None if needle is None else ir.Contains(left, needle)
    return _ordered(checker, ir.CompareOp.EQ, left, right, span, span)


def _has_parameters(expression: syntax.Expression) -> bool:
    """Whether this is a list literal with something in it that is known only when the query runs."""
    return isinstance(expression, syntax.ListLiteral) and not all(_is_literal(item) for item in expression.items)


def _is_literal(expression: syntax.Expression) -> bool:
    constant = isinstance(expression, syntax.Call) and expression.function.text in {"date", "datetime"}
    return constant or isinstance(expression, syntax.Literal | syntax.ListLiteral)


def _any_of(
    checker: ExpressionChecker,
    comparison: syntax.Comparison,
    item: syntax.Expression,
    members: syntax.Expression,
) -> ir.Expr | None:
    """`x in [$a, $b]`: equal to one of them, which is the same in three-valued logic."""
    assert isinstance(members, syntax.ListLiteral)
    checked = checker.value(item)
    tests: list[ir.Expr] = []
    for each in members.items:
        value = checker.value(each)
        if value is None or checked is None:
            return None
        if _is_null(value):
            checker.problem(codes.OPERAND_TYPE, "a list cannot hold null", each.span)
            return None
        single = syntax.Comparison(syntax.Operator.EQ, item, each, comparison.span)
        test = _compare(checker, single, checked, value)
        if test is None:
            return None
        tests.append(test)
    return ir.Or(tuple(tests)) if len(tests) > 1 else tests[0]


def _is_null(expr: ir.Expr) -> bool:
    return isinstance(expr, ir.Literal) and expr.value is None


def _compare(
    checker: ExpressionChecker, comparison: syntax.Comparison, left: ir.Expr, right: ir.Expr
) -> ir.Expr | None:
    operator = ir.CompareOp(comparison.operator.value)
    if _is_null(left) or _is_null(right):
        return _null_test(checker, comparison, operator, right if _is_null(left) else left)
    if isinstance(left, ir.Entity) or isinstance(right, ir.Entity):
        return _entities(checker, comparison, operator, left, right)
    return _ordered(checker, operator, left, right, comparison.left.span, comparison.right.span)


def _null_test(
    checker: ExpressionChecker, comparison: syntax.Comparison, operator: ir.CompareOp, item: ir.Expr
) -> ir.Expr | None:
    if operator not in {ir.CompareOp.EQ, ir.CompareOp.NE}:
        message = f"`{operator.value}` with null is never true"
        checker.problem(codes.OPERAND_TYPE, message, comparison.span, "test for null with `= null` or `!= null`")
        return None
    return null_test(checker, item, operator is ir.CompareOp.NE, comparison.span)


def null_test(checker: ExpressionChecker, item: ir.Expr | None, negated: bool, span: Span) -> ir.Expr | None:
    """`item is null`."""
    if isinstance(item, ir.Entity) and not item.nullable:
        message = f"`${shown(item.var)}` is a bound entity and never null"
        checker.problem(codes.OPERAND_TYPE, message, span, "to ask that nothing matches use `not { … }`")
        return None
    return None if item is None else ir.IsNull(item, negated)


def _entities(
    checker: ExpressionChecker,
    comparison: syntax.Comparison,
    operator: ir.CompareOp,
    left: ir.Expr,
    right: ir.Expr,
) -> ir.Expr | None:
    """`$a = $b`: the same entity, by id."""
    if isinstance(left, ir.Entity) and isinstance(right, ir.Entity):
        one, two = shown(left.var), shown(right.var)
        tables = [_tables(checker, one), _tables(checker, two)]
        if not set(tables[0]) & set(tables[1]):
            message = f"`${one}` is a {left.type} and `${two}` a {right.type}: they are never the same"
            checker.problem(codes.OPERAND_TYPE, message, comparison.span)
            return None
        if operator in {ir.CompareOp.EQ, ir.CompareOp.NE}:
            same: ir.Expr = ir.Compare(operator, _id(left), _id(right))
            if len({*tables[0], *tables[1]}) == 1:
                return same
            types = ir.Compare(operator, ir.TypeOf(left.var, left.nullable), ir.TypeOf(right.var, right.nullable))
            return ir.And((same, types)) if operator is ir.CompareOp.EQ else ir.Or((same, types))
        message = f"entities have no order: `{operator.value}` does not apply to `${one}` and `${two}`"
        checker.problem(codes.OPERAND_TYPE, message, comparison.span)
        return None
    entity = left if isinstance(left, ir.Entity) else right
    assert isinstance(entity, ir.Entity)
    name = shown(entity.var)
    message = f"`${name}` is a bound {entity.type} and cannot be compared with a value"
    checker.problem(codes.OPERAND_TYPE, message, comparison.span, f"name a property: `${name}.id`")
    return None


def _tables(checker: ExpressionChecker, name: str) -> tuple[str, ...]:
    return checker.scope.variables[name].tables or ()


def _id(entity: ir.Entity) -> ir.Prop:
    return ir.Prop(entity.var, "id", STRING, entity.nullable)


def _ordered(
    checker: ExpressionChecker,
    operator: ir.CompareOp,
    left: ir.Expr,
    right: ir.Expr,
    left_span: Span,
    right_span: Span,
) -> ir.Expr | None:
    if operator in {ir.CompareOp.EQ, ir.CompareOp.NE}:
        row = checker.row.tables if checker.row is not None else ()
        left, right = as_id(checker.scope, row, right, left), as_id(checker.scope, row, left, right)
    for operand, span in ((left, left_span), (right, right_span)):
        if not _single_value(checker, operand, operator.value, span):
            return None
    if isinstance(left, ir.Literal) and not isinstance(right, ir.Literal):
        adapted = _adapted(checker, left, type_of(right), left_span)
        return None if adapted is None else ir.Compare(operator, adapted, right)
    if isinstance(right, ir.Literal) and not isinstance(left, ir.Literal):
        adapted = _adapted(checker, right, type_of(left), right_span)
        return None if adapted is None else ir.Compare(operator, left, adapted)
    left_type, right_type = type_of(left), type_of(right)
    assert left_type is not None
    assert right_type is not None
    if not comparable(left_type, right_type):
        _mismatch(checker, operator.value, left_type, right_type, right_span)
        return None
    return ir.Compare(operator, left, right)


def _single_value(checker: ExpressionChecker, operand: ir.Expr, operator: str, span: Span) -> bool:
    """Lists, blobs and vectors are not compared as wholes."""
    type_ = type_of(operand)
    if isinstance(operand, ir.Literal) and isinstance(operand.value, tuple):
        type_ = type_ or ListType(Scalar.STRING)
    match type_:
        case ListType():
            message = f"`{operator}` compares single values, and this is a list"
            checker.problem(codes.BLOB_OR_LIST_MISUSE, message, span, "use `contains` or `in`")
            return False
        case VectorType():
            message = f"`{operator}` compares single values, and this is a vector"
            checker.problem(codes.OPERAND_TYPE, message, span, "rank by `nearest(…)` in `order`")
            return False
    if type_ is not None and is_blob(type_):
        message = f"`{operator}` does not apply to a blob; only `= null` and `!= null` do"
        checker.problem(codes.BLOB_OR_LIST_MISUSE, message, span)
        return False
    return True


def _contains(
    checker: ExpressionChecker, comparison: syntax.Comparison, haystack: ir.Expr, needle: ir.Expr
) -> ir.Expr | None:
    type_ = type_of(haystack)
    if isinstance(haystack, ir.Literal) and isinstance(haystack.value, tuple):
        return _in_list(checker, needle, haystack, comparison.right.span, comparison.left.span)
    if isinstance(type_, ListType):
        adapted = _adapted(checker, needle, ScalarType(type_.item), comparison.right.span)
        row = checker.row.tables if checker.row is not None else ()
        return None if adapted is None else ir.Contains(as_id(checker.scope, row, needle, haystack), adapted)
    if type_ is not None and is_text(type_):
        adapted = _adapted(checker, needle, STRING, comparison.right.span)
        return None if adapted is None else ir.Contains(haystack, adapted)
    found = _type_words(haystack)
    message = f"`contains` needs a list or text on its left, and this is {found}"
    checker.problem(codes.OPERAND_TYPE, message, comparison.left.span)
    return None


def _on_text(
    checker: ExpressionChecker, comparison: syntax.Comparison, text: ir.Expr, other: ir.Expr
) -> ir.Expr | None:
    type_ = type_of(text)
    word = comparison.operator.value
    if type_ is None or not is_text(type_):
        message = f"`{word}` needs text on its left, and this is {_type_words(text)}"
        checker.problem(codes.OPERAND_TYPE, message, comparison.left.span)
        return None
    adapted = _adapted(checker, other, STRING, comparison.right.span)
    if adapted is None:
        return None
    match comparison.operator:
        case syntax.Operator.STARTS_WITH:
            return ir.StartsWith(text, adapted)
        case syntax.Operator.ENDS_WITH:
            return ir.EndsWith(text, adapted)
        case _:
            return _matches(checker, comparison, text, adapted)


def _matches(
    checker: ExpressionChecker, comparison: syntax.Comparison, text: ir.Expr, pattern: ir.Expr
) -> ir.Expr | None:
    if isinstance(pattern, ir.Literal):
        try:
            portable_pattern(pattern.value)
        except BadPattern as problem:
            message = f"the pattern is not in the dialect: {problem}"
            hint = "the whole value is matched; `.*` on both sides looks anywhere"
            checker.problem(codes.BAD_PATTERN, message, comparison.right.span, hint)
            return None
    return ir.Matches(text, pattern, expression_text(comparison))


def _in(checker: ExpressionChecker, comparison: syntax.Comparison, item: ir.Expr, items: ir.Expr) -> ir.Expr | None:
    is_list_literal = isinstance(items, ir.Literal) and isinstance(items.value, tuple)
    if not is_list_literal and not isinstance(type_of(items), ListType):
        message = f"`in` needs a list on its right, and this is {_type_words(items)}"
        checker.problem(codes.BLOB_OR_LIST_MISUSE, message, comparison.right.span)
        return None
    return _in_list(checker, item, items, comparison.left.span, comparison.right.span)


def _in_list(
    checker: ExpressionChecker, item: ir.Expr, items: ir.Expr, item_span: Span, items_span: Span
) -> ir.Expr | None:
    if _is_null(item):
        message = "null is in no list"
        checker.problem(codes.OPERAND_TYPE, message, item_span, "test for null with `= null`")
        return None
    if isinstance(item, ir.Entity):
        name = shown(item.var)
        message = f"`${name}` is a bound {item.type} and is in no list"
        checker.problem(codes.OPERAND_TYPE, message, item_span, f"name a property: `${name}.id`")
        return None
    if not _single_value(checker, item, "in", item_span):
        return None
    if isinstance(items, ir.Literal):
        return _in_literal(checker, item, items, items_span)
    row = checker.row.tables if checker.row is not None else ()
    items = as_id(checker.scope, row, item, items)
    items_type = type_of(items)
    assert isinstance(items_type, ListType)
    adapted = _adapted(checker, item, ScalarType(items_type.item), item_span)
    return None if adapted is None else ir.In(adapted, items)


def _in_literal(checker: ExpressionChecker, item: ir.Expr, items: ir.Literal, span: Span) -> ir.Expr | None:
    item_type = type_of(item)
    scalar = Scalar.STRING if isinstance(item_type, EnumType) else _scalar_of(item_type)
    assert item_type is not None
    assert scalar is not None
    row = checker.row.tables if checker.row is not None else ()
    try:
        forms = id_forms(checker.scope, row, item)
        values = tuple(coerce(spelled(forms, value), item_type) for value in items.value)
    except Misfit as misfit:
        if is_number(item_type) and (others := _numbers(items.value)) is not None:
            return ir.In(item, others)
        checker.problem(codes.OPERAND_TYPE, f"in the list: {misfit.message}", span, misfit.hint)
        return None
    return ir.In(item, ir.Literal(values, ListType(scalar)))


def _numbers(values: tuple[object, ...]) -> ir.Literal | None:
    """Numbers of any kind as a list of one type that holds each of them exactly, if there is one."""
    numbers = [value for value in values if isinstance(value, int | float) and _is_number(value)]
    if len(numbers) < len(values):
        return None
    if all(isinstance(value, int) for value in numbers):
        for scalar in (Scalar.I64, Scalar.U64):
            low, high = INTEGER_RANGES[scalar]
            if all(low <= value <= high for value in numbers):
                return ir.Literal(tuple(numbers), ListType(scalar))
        return None
    if all(isinstance(value, float) or abs(value) <= 2**53 for value in numbers):
        return ir.Literal(tuple(float(value) for value in numbers), ListType(Scalar.F64))
    return None


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _scalar_of(type_: ValueType | None) -> Scalar | None:
    return type_.scalar if isinstance(type_, ScalarType) else None


def _adapted(checker: ExpressionChecker, expr: ir.Expr, target: ValueType | None, span: Span) -> ir.Expr | None:
    """`expr` where a value of the type `target` is compared: literals take the type, others must be comparable."""
    assert target is not None
    if isinstance(expr, ir.Literal):
        try:
            return typed(expr.value, target)
        except Misfit as misfit:
            if is_number(target) and _is_number(expr.value):  # numbers of different kinds compare by value
                return expr
            checker.problem(codes.OPERAND_TYPE, misfit.message, span, misfit.hint)
            return None
    found = type_of(expr)
    assert found is not None
    if isinstance(found, ListType):
        message = f"expected a single {target}, found a list"
        checker.problem(codes.BLOB_OR_LIST_MISUSE, message, span)
        return None
    if not comparable(target, found):
        hint = "name a property of it" if isinstance(found, EntityType) else None
        checker.problem(codes.OPERAND_TYPE, f"expected {target}, found {found}", span, hint)
        return None
    return expr


def _mismatch(checker: ExpressionChecker, operator: str, left: ValueType, right: ValueType, span: Span) -> None:
    hint = "a Date and a DateTime are different things" if {left, right} == {DATE, DATETIME} else None
    checker.problem(codes.OPERAND_TYPE, f"`{operator}` cannot compare {left} with {right}", span, hint)


def _type_words(expr: ir.Expr) -> str:
    type_ = type_of(expr)
    if isinstance(expr, ir.Literal):
        return describe(expr.value)
    return str(type_)
