"""The functions of the language: constants, aggregates, text predicates and rankings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnigraph.diagnostics import Span, did_you_mean
from omnigraph.query import codes, ir, syntax
from omnigraph.query.check.computed import DURATIONS, adapted, entity_words, misplaced_duration
from omnigraph.query.check.literals import Misfit as LiteralMisfit
from omnigraph.query.check.literals import typed
from omnigraph.query.check.places import CONSTANT_PLACES, MUTATION_PLACES, RESULT_PLACES, Place
from omnigraph.query.check.scope import shown
from omnigraph.query.functions.signatures import UNITS, Misfit, result_of
from omnigraph.query.functions.table import FUNCTIONS, Function, NullRule
from omnigraph.query.moments import parse_date, parse_datetime
from omnigraph.query.print import expression_text
from omnigraph.query.typing import BOOL, DATE, DATETIME, I64, STRING, children, is_nullable, type_of
from omnigraph.schema.types import (
    INTEGERS,
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
    from omnigraph.query.check.expressions import ExpressionChecker
CONSTANT_FUNCTIONS = ("date", "datetime", "now")
AGGREGATES = tuple(function.value for function in ir.AggregateFunction)
TEXT_PREDICATES = tuple(predicate.value for predicate in ir.TextPredicate)
RANKINGS = ("nearest", "bm25", "rrf")
PATH_FUNCTIONS = tuple(part.value for part in ir.PathPart)
ALL_FUNCTIONS = (
    *CONSTANT_FUNCTIONS,
    *AGGREGATES,
    *TEXT_PREDICATES,
    *RANKINGS,
    *PATH_FUNCTIONS,
    *DURATIONS,
    *FUNCTIONS,
)
"""Every name that can be called, for suggestions and completion."""

_TEXT_PLACES = frozenset({Place.MATCH, Place.RETURN, Place.ORDER, Place.HAVING})


def check_call(checker: ExpressionChecker, call: syntax.Call) -> ir.Expr | None:
    """A call that stands where a value is needed."""
    name = call.function.text
    if call.distinct and name not in AGGREGATES:
        message = f"`distinct` belongs into an aggregate, and `{name}` is none"
        checker.problem(codes.FUNCTION_ARGUMENTS, message, call.span)
        return None
    if call.options and name != "nearest":
        message = f"`{name}` has no argument called `{call.options[0].label.text}`"
        checker.problem(codes.FUNCTION_ARGUMENTS, message, call.options[0].span)
        return None
    if name in CONSTANT_FUNCTIONS:
        return _constant(checker, call)
    if name in AGGREGATES:
        return _aggregate(checker, call)
    if name in TEXT_PREDICATES:
        return _text_predicate(checker, call)
    if name in RANKINGS:
        return _ranking(checker, call)
    if name in PATH_FUNCTIONS:
        return _path_part(checker, call)
    if name in FUNCTIONS:
        return _scalar_function(checker, call)
    if name in DURATIONS:
        misplaced_duration(checker, call)
        return None
    hint = did_you_mean(name, ALL_FUNCTIONS)
    checker.problem(codes.FUNCTION_ARGUMENTS, f"unknown function `{name}`", call.function.span, hint)
    return None


# --- functions of the table


def _scalar_function(checker: ExpressionChecker, call: syntax.Call) -> ir.Expr | None:
    function = FUNCTIONS[call.function.text]
    if checker.place is Place.CONSTANT:
        checker.not_constant(f"`{function.name}(…)`", call.span)
        return None
    fitting = [each for each in function.signatures if each.takes(len(call.args))]
    if not fitting:
        _wrong_count(checker, call, function)
        return None
    args = [checker.value(arg) for arg in call.args]
    if any(arg is None for arg in args):
        return None
    checked = _adapted_numbers([arg for arg in args if arg is not None])
    unit = next((index for index in range(len(args)) if fitting[0].kind(index) == "Unit"), None)
    if unit is not None and not _is_unit(checker, call, checked, unit):
        return None
    types = [type_of(arg) for arg in checked]
    outcomes = [result_of(signature, types) for signature in fitting]
    for outcome in outcomes:
        if not isinstance(outcome, Misfit):
            nullable = _can_be_null(function, checked)
            return ir.Call(function.name, tuple(checked), outcome, nullable, expression_text(call))
    misfits = [outcome for outcome in outcomes if isinstance(outcome, Misfit)]
    _wrong_argument(checker, call, checked, misfits)
    return None


def _adapted_numbers(args: list[ir.Expr]) -> list[ir.Expr]:
    """Whole numbers that are written out as the kind of the other arguments."""
    numbers = [arg for arg in args if not isinstance(arg, ir.Literal)]
    return [adapted(arg, numbers[0]) if numbers else arg for arg in args]


def _can_be_null(function: Function, args: list[ir.Expr]) -> bool:
    if function.null is NullRule.FIRST:
        return all(is_nullable(arg) for arg in args)
    return function.null is NullRule.NULLABLE or any(is_nullable(arg) for arg in args)


def _is_unit(checker: ExpressionChecker, call: syntax.Call, args: list[ir.Expr], index: int) -> bool:
    unit = args[index]
    if not isinstance(unit, ir.Literal) or unit.value not in UNITS:
        given = unit.value if isinstance(unit, ir.Literal) and isinstance(unit.value, str) else None
        message = f"`{call.function.text}` needs the name of a unit of time here: one of {', '.join(UNITS)}"
        hint = None if given is None else did_you_mean(given, UNITS)
        checker.problem(codes.FUNCTION_ARGUMENTS, message, call.args[index].span, hint)
        return False
    if unit.value in {"hour", "minute", "second"} and any(type_of(arg) == DATE for arg in args):
        checker.problem(codes.FUNCTION_ARGUMENTS, f"a Date has no {unit.value}", call.args[index].span)
        return False
    return True


def _wrong_count(checker: ExpressionChecker, call: syntax.Call, function: Function) -> None:
    least = min(each.required for each in function.signatures)
    most = [each.most for each in function.signatures]
    if None in most:
        wanted = f"{least} or more"
    else:
        top = max(each for each in most if each is not None)
        wanted = f"{least}" if least == top else f"{least} to {top}"
    plural = "argument" if wanted == "1" else "arguments"
    message = f"`{function.name}` takes {wanted} {plural}, found {len(call.args)}"
    checker.problem(codes.FUNCTION_ARGUMENTS, message, call.span, f"it is `{function.signatures[0].text}`")


def _wrong_argument(checker: ExpressionChecker, call: syntax.Call, args: list[ir.Expr], misfits: list[Misfit]) -> None:
    index = max(misfit.index for misfit in misfits)
    wanted = " or ".join(dict.fromkeys(misfit.wanted for misfit in misfits if misfit.index == index))
    found = type_of(args[index])
    message = f"`{call.function.text}` needs {wanted} here, and this is {entity_words(found)}"
    hint = "use `length(…)`" if call.function.text == "size" and found is not None and is_text(found) else None
    checker.problem(codes.FUNCTION_ARGUMENTS, message, call.args[index].span, hint)


# --- paths


def _path_part(checker: ExpressionChecker, call: syntax.Call) -> ir.Expr | None:
    name = call.function.text
    if not _count(checker, call, 1, 1):
        return None
    argument = call.args[0]
    bound = checker.scope.variables.get(argument.name) if isinstance(argument, syntax.Variable) else None
    if bound is None or not bound.is_path or checker.place in CONSTANT_PLACES or checker.place is Place.WALK:
        message = f"`{name}` looks into a path that a traversal binds"
        hint = f"write `$a knows{{1,3}} $b as $path` and `{name}($path)`"
        checker.problem(codes.PATH_USE, message, argument.span, hint)
        return None
    part = ir.PathPart(name)
    type_ = I64 if part is ir.PathPart.HOPS else ListType(Scalar.STRING)
    return ir.PathValue(bound.name, part, type_, bound.nullable)


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
    what = f"the aggregate `{name}`"
    if not _allowed(checker, call, what, codes.AGGREGATE_PLACE, RESULT_PLACES) or not _count(checker, call, 1, 1):
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


# --- search


def _text_predicate(checker: ExpressionChecker, call: syntax.Call) -> ir.Expr | None:
    """`search`, `match_all`, `match_text` or `fuzzy`: a Boolean."""
    name = call.function.text
    if not _allowed(checker, call, f"`{name}`", codes.MISPLACED_SEARCH, _TEXT_PLACES):
        return None
    if not _count(checker, call, 2, 3 if name == "fuzzy" else 2):
        return None
    prop = _searched(checker, call)
    query = _query_text(checker, call)
    edits = _whole_number(checker, call, 2, least=0)
    if prop is None or query is None or (edits is None and len(call.args) > 2):
        return None
    table_key = _table_key(checker, call)
    return ir.TextMatch(ir.TextPredicate(name), prop.var, table_key, prop.name, query, edits)


def _ranking(checker: ExpressionChecker, call: syntax.Call) -> ir.Expr | None:
    name = call.function.text
    if not _allowed(checker, call, f"`{name}`", codes.MISPLACED_SEARCH, RESULT_PLACES):
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
        except LiteralMisfit as misfit:
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


def _allowed(checker: ExpressionChecker, call: syntax.Call, what: str, code: str, places: frozenset[Place]) -> bool:
    if checker.place in places:
        return True
    if checker.place in MUTATION_PLACES:
        checker.problem(codes.NOT_IN_MUTATION, f"{what} cannot be used in a mutation", call.span)
    elif checker.place in CONSTANT_PLACES:
        checker.not_constant(what, call.span)
    elif checker.place is Place.WALK:
        message = f"{what} cannot stand in the condition of a traversal"
        checker.problem(codes.WALK_CONDITION, message, call.span)
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
