"""The functions of the language: constants, aggregates, text predicates and rankings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnigraph.diagnostics import Span, did_you_mean
from omnigraph.query import codes, ir, syntax
from omnigraph.query.check.literals import Misfit, typed
from omnigraph.query.check.places import MUTATION_PLACES, Place
from omnigraph.query.moments import parse_date, parse_datetime
from omnigraph.query.typing import BOOL, DATE, DATETIME, STRING, type_of
from omnigraph.schema.types import INTEGERS, ScalarType, VectorType, is_blob, is_number, is_text

if TYPE_CHECKING:
    from omnigraph.query.check.expressions import ExpressionChecker
CONSTANT_FUNCTIONS = ("date", "datetime", "now")
AGGREGATES = tuple(function.value for function in ir.AggregateFunction)
TEXT_PREDICATES = tuple(predicate.value for predicate in ir.TextPredicate)
RANKINGS = ("nearest", "bm25", "rrf")
FUNCTIONS = (*CONSTANT_FUNCTIONS, *AGGREGATES, *TEXT_PREDICATES, *RANKINGS)


def check_call(checker: ExpressionChecker, call: syntax.Call) -> ir.Expr | None:
    """A call that stands where a value is needed."""
    name = call.function.text
    if name in CONSTANT_FUNCTIONS:
        return _constant(checker, call)
    if name in AGGREGATES:
        return _aggregate(checker, call)
    if name in TEXT_PREDICATES:
        return check_text_predicate(checker, call, conjunctive=False)
    if name in RANKINGS:
        return _ranking(checker, call)
    hint = did_you_mean(name, FUNCTIONS)
    checker.problem(codes.FUNCTION_ARGUMENTS, f"unknown function `{name}`", call.function.span, hint)
    return None


# --- constants


def _constant(checker: ExpressionChecker, call: syntax.Call) -> ir.Expr | None:
    name = call.function.text
    if name == "now":
        return ir.Now() if _count(checker, call, 0, 0) else None
    if not _count(checker, call, 1, 1):
        return None
    argument = call.args[0]
    if not isinstance(argument, syntax.Literal) or not isinstance(argument.value, str):
        example = '"2026-01-02"' if name == "date" else '"2026-01-02T03:04:05Z"'
        message = f"`{name}` takes a string literal: {name}({example})"
        hint = "declare the parameter as Date or DateTime instead" if isinstance(argument, syntax.Variable) else None
        checker.problem(codes.FUNCTION_ARGUMENTS, message, argument.span, hint)
        return None
    try:
        if name == "date":
            return ir.Literal(parse_date(argument.value), DATE)
        return ir.Literal(parse_datetime(argument.value), DATETIME)
    except ValueError as error:
        checker.problem(codes.OPERAND_TYPE, str(error), argument.span)
        return None


# --- aggregates


def _aggregate(checker: ExpressionChecker, call: syntax.Call) -> ir.Expr | None:
    name = call.function.text
    if not _allowed(checker, call, f"the aggregate `{name}`", codes.AGGREGATE_PLACE, {Place.RETURN, Place.ORDER}):
        return None
    if not _count(checker, call, 1, 1):
        return None
    argument = checker.value(call.args[0])
    if argument is None:
        return None
    span = call.args[0].span
    if isinstance(argument, ir.Aggregate):
        checker.problem(codes.AGGREGATE_PLACE, "aggregates cannot be nested", span)
        return None
    if not isinstance(argument, ir.Prop | ir.Entity):
        message = f"`{name}` takes a property or a variable: `{name}($x.p)`"
        checker.problem(codes.AGGREGATE_ARGUMENT, message, span)
        return None
    function = ir.AggregateFunction(name)
    if is_blob(argument.type):
        checker.problem(codes.BLOB_AS_VALUE, f"`{name}` cannot look into a blob", span)
        return None
    if not _can_aggregate(function, argument):
        needs = "a number" if name in {"sum", "avg"} else "a number, text, date or Boolean"
        hint = f"name a property: `${argument.var}.p`" if isinstance(argument, ir.Entity) else None
        message = f"`{name}` needs {needs}, and this is {argument.type}"
        checker.problem(codes.AGGREGATE_ARGUMENT, message, span, hint)
        return None
    return ir.Aggregate(function, argument)


def _can_aggregate(function: ir.AggregateFunction, argument: ir.Prop | ir.Entity) -> bool:
    match function:
        case ir.AggregateFunction.COUNT:
            return True
        case ir.AggregateFunction.SUM | ir.AggregateFunction.AVG:
            return is_number(argument.type)
        case _:
            return is_number(argument.type) or is_text(argument.type) or argument.type in {BOOL, DATE, DATETIME}


# --- search


def check_text_predicate(checker: ExpressionChecker, call: syntax.Call, *, conjunctive: bool) -> ir.Expr | None:
    """`search`, `match_text` or `fuzzy` as a filter of a match block."""
    name = call.function.text
    if not _allowed(checker, call, f"`{name}`", codes.MISPLACED_SEARCH, {Place.MATCH}):
        return None
    if not conjunctive:
        message = f"`{name}` stands alone or is joined by `and`; it cannot be part of another expression"
        checker.problem(codes.MISPLACED_SEARCH, message, call.span, "for the contrary use `not { … }`")
        return None
    if not _count(checker, call, 2, 3 if name == "fuzzy" else 2):
        return None
    prop = _searched(checker, call)
    query = _query_text(checker, call)
    edits = _whole_number(checker, call, 2, least=0)
    if prop is None or query is None or (edits is None and len(call.args) > 2):
        return None
    table_key = checker.scope.variables[prop.var]
    assert table_key is not None
    return ir.TextMatch(ir.TextPredicate(name), prop.var, table_key, prop.name, query, edits)


def _ranking(checker: ExpressionChecker, call: syntax.Call) -> ir.Expr | None:
    name = call.function.text
    if not _allowed(checker, call, f"`{name}`", codes.MISPLACED_SEARCH, {Place.RETURN, Place.ORDER}):
        return None
    if name == "rrf":
        return _rrf(checker, call)
    if not _count(checker, call, 2, 2):
        return None
    return _nearest(checker, call) if name == "nearest" else _bm25(checker, call)


def _bm25(checker: ExpressionChecker, call: syntax.Call) -> ir.Expr | None:
    prop, query = _searched(checker, call), _query_text(checker, call)
    if prop is None or query is None:
        return None
    table_key = checker.scope.variables[prop.var]
    assert table_key is not None
    return ir.Bm25(prop.var, table_key, prop.name, query)


def _nearest(checker: ExpressionChecker, call: syntax.Call) -> ir.Expr | None:
    prop = _property_argument(checker, call)
    if prop is None:
        return None
    if not isinstance(prop.type, VectorType):
        message = f"`nearest` needs a vector property, and `${prop.var}.{prop.name}` is {prop.type}"
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
    table_key = checker.scope.variables[prop.var]
    assert table_key is not None
    return ir.Nearest(prop.var, table_key, prop.name, prop.type.dim, query)


def _rrf(checker: ExpressionChecker, call: syntax.Call) -> ir.Expr | None:
    if not _count(checker, call, 2, 3):
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


def _allowed(checker: ExpressionChecker, call: syntax.Call, what: str, code: str, places: set[Place]) -> bool:
    if checker.place in places:
        return True
    if checker.place in MUTATION_PLACES:
        checker.problem(codes.NOT_IN_MUTATION, f"{what} cannot be used in a mutation", call.span)
    elif checker.place is Place.CONSTANT:
        message = f"a literal or a parameter is needed here, not {what}"
        checker.problem(codes.CONSTANT_NEEDED, message, call.span)
    else:
        message, hint = _place_words(what, call.function.text, checker.place is Place.MATCH)
        checker.problem(code, message, call.span, hint)
    return False


def _place_words(what: str, name: str, in_match: bool) -> tuple[str, str | None]:
    if in_match and name in RANKINGS:
        return f"{what} ranks rows and belongs in `return` or `order`", "filter text with `search(…)`"
    if in_match:
        return f"{what} belongs in `return` or `order`, not in a match block", None
    return f"{what} filters rows and belongs in the match block", "for a score use `bm25(…)`"


def _count(checker: ExpressionChecker, call: syntax.Call, least: int, most: int) -> bool:
    found = len(call.args)
    if least <= found <= most:
        return True
    wanted = f"{least}" if least == most else f"{least} or {most}"
    plural = "argument" if wanted == "1" else "arguments"
    message = f"`{call.function.text}` takes {wanted} {plural}, found {found}"
    checker.problem(codes.FUNCTION_ARGUMENTS, message, call.span)
    return False


def _property_argument(checker: ExpressionChecker, call: syntax.Call) -> ir.Prop | None:
    argument = call.args[0]
    if not isinstance(argument, syntax.Property):
        message = f"`{call.function.text}` needs a property to search: `$x.p`"
        checker.problem(codes.SEARCH_ARGUMENT, message, argument.span)
        return None
    return checker.entity_property(argument)


def _searched(checker: ExpressionChecker, call: syntax.Call) -> ir.Prop | None:
    prop = _property_argument(checker, call)
    if prop is not None and prop.type != STRING:
        message = f"`{call.function.text}` needs a String property, and `${prop.var}.{prop.name}` is {prop.type}"
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
