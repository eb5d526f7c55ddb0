"""What all calls have in common: where they may stand, and how many arguments they have."""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnigraph.query import codes, ir
from omnigraph.query.check.values.places import CONSTANT_PLACES, MUTATION_PLACES, Place
from omnigraph.query.text import syntax

if TYPE_CHECKING:
    from omnigraph.query.check.values.expressions import ExpressionChecker

AGGREGATES = tuple(function.value for function in ir.AggregateFunction)
TEXT_PREDICATES = tuple(predicate.value for predicate in ir.TextPredicate)
RANKINGS = ("nearest", "bm25", "rrf")


def allowed(checker: ExpressionChecker, call: syntax.Call, what: str, code: str, places: frozenset[Place]) -> bool:
    """Whether a call may stand where it stands; a finding if not."""
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
        hint = "filter text with `search(…)`" if name == "bm25" else "sort by it in `order`, with a `limit`"
        return f"{what} ranks rows and belongs in `return` or `order`", hint
    if in_match:
        return f"{what} belongs in `return`, `with`, `having` or `order`, not in a match block", None
    return f"{what} filters rows and belongs in the match block", "for a score use `bm25(…)`"


def has_count(checker: ExpressionChecker, call: syntax.Call, least: int, most: int) -> bool:
    """Whether a call has so many arguments; a finding if not."""
    found = len(call.args)
    if least <= found <= most:
        return True
    wanted = f"{least}" if least == most else f"{least} or {most}"
    plural = "argument" if wanted == "1" else "arguments"
    message = f"`{call.function.text}` takes {wanted} {plural}, found {found}"
    checker.problem(codes.FUNCTION_ARGUMENTS, message, call.span)
    return False
