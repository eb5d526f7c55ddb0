"""Searches: text predicates, which are Booleans, and rankings, which are scores."""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnigraph.diagnostics import Span, did_you_mean
from omnigraph.query import codes, ir
from omnigraph.query.check.scope import shown
from omnigraph.query.check.values.calls import allowed, has_count
from omnigraph.query.check.values.literals import Misfit, typed
from omnigraph.query.check.values.places import RESULT_PLACES, Place
from omnigraph.query.text import syntax
from omnigraph.query.typing import STRING, type_of
from omnigraph.schema.types import INTEGERS, ScalarType, VectorType

if TYPE_CHECKING:
    from omnigraph.query.check.values.expressions import ExpressionChecker

_TEXT_PLACES = frozenset({Place.MATCH, Place.RETURN, Place.ORDER, Place.HAVING})


def check_text_predicate(checker: ExpressionChecker, call: syntax.Call) -> ir.Expr | None:
    """`search`, `match_all`, `match_text` or `fuzzy`: a Boolean."""
    name = call.function.text
    if not allowed(checker, call, f"`{name}`", codes.MISPLACED_SEARCH, _TEXT_PLACES):
        return None
    if not has_count(checker, call, 2, 3 if name == "fuzzy" else 2):
        return None
    prop = _searched(checker, call)
    query = _query_text(checker, call)
    edits = _whole_number(checker, call, 2, least=0)
    if prop is None or query is None or (edits is None and len(call.args) > 2):
        return None
    table_key = _table_key(checker, call)
    return ir.TextMatch(ir.TextPredicate(name), prop.var, table_key, prop.name, query, edits)


def check_ranking(checker: ExpressionChecker, call: syntax.Call) -> ir.Expr | None:
    """`nearest(…)`, `bm25(…)` or `rrf(…)`."""
    name = call.function.text
    if not allowed(checker, call, f"`{name}`", codes.MISPLACED_SEARCH, RESULT_PLACES):
        return None
    if name == "rrf":
        return _rrf(checker, call)
    if not has_count(checker, call, 2, 2):
        return None
    return _nearest(checker, call) if name == "nearest" else _bm25(checker, call)


def _bm25(checker: ExpressionChecker, call: syntax.Call) -> ir.Expr | None:
    prop, query = _searched(checker, call), _query_text(checker, call)
    if prop is None or query is None:
        return None
    return ir.Bm25(prop.var, _table_key(checker, call), prop.name, query)


def _nearest(checker: ExpressionChecker, call: syntax.Call) -> ir.Expr | None:
    prop = _property_argument(checker, call)
    if prop is None:
        return None
    if not isinstance(prop.type, VectorType):
        message = f"`nearest` needs a vector property, and `${shown(prop.var)}.{prop.name}` is {prop.type}"
        checker.problem(codes.SEARCH_ARGUMENT, message, call.args[0].span)
        return None
    query = checker.constants().value(call.args[1])
    if query is None:
        return None
    span = call.args[1].span
    if isinstance(query, ir.Literal) and isinstance(query.value, tuple):
        try:
            query = typed(query.value, prop.type)
        except Misfit as misfit:
            checker.problem(codes.SEARCH_ARGUMENT, misfit.message, span, misfit.hint)
            return None
    found = type_of(query)
    if found not in {prop.type, STRING}:
        message = f"`nearest` needs {prop.type} or text to look for, and this is {found or 'null'}"
        checker.problem(codes.SEARCH_ARGUMENT, message, span)
        return None
    exact = _exact(checker, call)
    if exact is None:
        return None
    return ir.Nearest(prop.var, _table_key(checker, call), prop.name, prop.type.dim, query, exact)


def _exact(checker: ExpressionChecker, call: syntax.Call) -> bool | None:
    """Whether `exact: true` is said."""
    exact = False
    for option in call.options:
        value = option.value
        if option.label.text != "exact":
            hint = did_you_mean(option.label.text, ["exact"])
            message = f"`nearest` has no argument called `{option.label.text}`"
            checker.problem(codes.FUNCTION_ARGUMENTS, message, option.span, hint)
            return None
        if not isinstance(value, syntax.Literal) or not isinstance(value.value, bool):
            checker.problem(codes.FUNCTION_ARGUMENTS, "`exact` is `true` or `false`", value.span)
            return None
        exact = value.value
    return exact


def _table_key(checker: ExpressionChecker, call: syntax.Call) -> str:
    """The table that is searched, or a key that stands for several."""
    argument = call.args[0]
    assert isinstance(argument, syntax.Property)
    bound = checker.scope.variables[argument.variable.name]
    assert bound.tables is not None
    key = bound.table_key if len(bound.tables) > 1 else bound.tables[0]
    assert key is not None
    return key


def _rrf(checker: ExpressionChecker, call: syntax.Call) -> ir.Expr | None:
    if not has_count(checker, call, 2, 3):
        return None
    rankings: list[ir.Nearest | ir.Bm25] = []
    for argument in call.args[:2]:
        ranking = checker.value(argument)
        if ranking is None:
            return None
        if not isinstance(ranking, ir.Nearest | ir.Bm25):
            message = "`rrf` fuses two rankings: `nearest(…)` or `bm25(…)`"
            checker.problem(codes.FUNCTION_ARGUMENTS, message, argument.span)
            return None
        rankings.append(ranking)
    k = _whole_number(checker, call, 2, least=1)
    if k is None and len(call.args) > 2:
        return None
    return ir.Rrf(rankings[0], rankings[1], k)


# --- arguments


def _property_argument(checker: ExpressionChecker, call: syntax.Call) -> ir.Prop | None:
    argument = call.args[0]
    if not isinstance(argument, syntax.Property):
        message = f"`{call.function.text}` needs a property to search: `$x.p`"
        checker.problem(codes.SEARCH_ARGUMENT, message, argument.span)
        return None
    found = checker.entity_property(argument)
    if isinstance(found, ir.TypeOf):
        checker.problem(codes.SEARCH_ARGUMENT, "`@type` cannot be searched", argument.span)
        return None
    return found


def _searched(checker: ExpressionChecker, call: syntax.Call) -> ir.Prop | None:
    prop = _property_argument(checker, call)
    if prop is not None and prop.type != STRING:
        message = f"`{call.function.text}` needs a String property, and `${shown(prop.var)}.{prop.name}` is {prop.type}"
        checker.problem(codes.SEARCH_ARGUMENT, message, call.args[0].span)
        return None
    return prop


def _query_text(checker: ExpressionChecker, call: syntax.Call) -> ir.Expr | None:
    query = checker.constants().value(call.args[1])
    if query is None:
        return None
    if type_of(query) != STRING:
        message = f"`{call.function.text}` looks for text, and this is {type_of(query) or 'null'}"
        checker.problem(codes.SEARCH_ARGUMENT, message, call.args[1].span)
        return None
    return query


def _whole_number(checker: ExpressionChecker, call: syntax.Call, index: int, least: int) -> ir.Expr | None:
    """An optional integer argument, a literal or a parameter."""
    if len(call.args) <= index:
        return None
    argument = call.args[index]
    value = checker.constants().value(argument)
    if value is None:
        return None
    type_ = type_of(value)
    fits = isinstance(type_, ScalarType) and type_.scalar in INTEGERS
    if fits and isinstance(value, ir.Literal):
        fits = least <= value.value <= 2**31 - 1
    if fits and isinstance(value, ir.Param):
        fits = not value.nullable
    if not fits:
        _not_whole(checker, call, argument.span, least)
        return None
    return value


def _not_whole(checker: ExpressionChecker, call: syntax.Call, span: Span, least: int) -> None:
    message = f"`{call.function.text}` needs an integer of {least} or more here"
    checker.problem(codes.FUNCTION_ARGUMENTS, message, span)
