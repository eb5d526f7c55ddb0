"""The functions of the language: constants, aggregates, text predicates and rankings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnigraph.diagnostics import did_you_mean
from omnigraph.query import codes, ir
from omnigraph.query.check.values.aggregates import check_aggregate
from omnigraph.query.check.values.calls import AGGREGATES, RANKINGS, TEXT_PREDICATES, has_count
from omnigraph.query.check.values.computed import DURATIONS, adapted, entity_words, misplaced_duration
from omnigraph.query.check.values.places import CONSTANT_PLACES, Place
from omnigraph.query.check.values.searches import check_ranking, check_text_predicate
from omnigraph.query.functions.signatures import UNITS, Misfit, result_of
from omnigraph.query.functions.table import FUNCTIONS, Function, NullRule
from omnigraph.query.moments import parse_date, parse_datetime
from omnigraph.query.text import syntax
from omnigraph.query.text.print import expression_text
from omnigraph.query.typing import DATE, DATETIME, I64, is_nullable, type_of
from omnigraph.schema.types import (
    ListType,
    Scalar,
    is_text,
)

if TYPE_CHECKING:
    from omnigraph.query.check.values.expressions import ExpressionChecker
CONSTANT_FUNCTIONS = ("date", "datetime", "now")
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
        return check_aggregate(checker, call)
    if name in TEXT_PREDICATES:
        return check_text_predicate(checker, call)
    if name in RANKINGS:
        return check_ranking(checker, call)
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
        _wronghas_count(checker, call, function)
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


def _wronghas_count(checker: ExpressionChecker, call: syntax.Call, function: Function) -> None:
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
    if not has_count(checker, call, 1, 1):
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
        return ir.Now() if has_count(checker, call, 0, 0) else None
    if not has_count(checker, call, 1, 1):
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
