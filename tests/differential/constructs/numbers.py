"""Functions of numbers and moments that `values.py` does not make: roots and powers, digits, conversions, clocks."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Decimal

from tests.differential import tree
from tests.differential.constructs.aggregates import Aggregate
from tests.differential.constructs.conditions import OPERATORS, Compare
from tests.differential.constructs.values import (
    MEANINGS,
    Arithmetic,
    Call,
    Case,
    Item,
    Negative,
    first_present,
    number_type,
    plain,
)
from tests.differential.making import QueryMaker, Scope, makes
from tests.differential.sql import duck
from tests.differential.types import FLOATS, INTEGERS, NUMBERS, item_of

UNITS = ("year", "month", "week", "day", "hour", "minute", "second")


@duck("py_round", ["DOUBLE", "BIGINT"], "DOUBLE")
def rounded(number: float, digits: int) -> float:
    """The nearest number with so many digits behind the point, halves of the decimal text away from zero."""
    return float(Decimal(repr(number)).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP))


MEANINGS["second"] = lambda a, t: f"CAST(floor(second({a[0]})) AS BIGINT)"
MEANINGS["ln"] = plain("ln")
MEANINGS["to_int"] = lambda a, t: f"trunc({a[0]})" if t[0] in FLOATS else a[0]
MEANINGS["to_float"] = lambda a, t: f"CAST({a[0]} AS DOUBLE)"


@makes("column", 1)
def transcendental(q: QueryMaker, scope: Scope) -> tree.Expr | None:
    """Of values that have one, whatever they are: the function is asked for what `abs` leaves."""
    item = q.prop(scope, of=lambda each: each.type in ("I32", "U32", "F32"))
    if item is None:
        return None
    kind = "F64" if item.type in FLOATS else "I64"
    size = Call("abs", (item,), kind)
    name = q.rng.choice(("ln", "pow", "exp", "sqrt"))
    if name == "ln":
        return Call("ln", (Arithmetic("+", size, tree.Literal(1, "I64")),), "F64")
    if name == "exp":
        return Call("exp", (Negative(size),), "F64")
    if name == "pow":
        return Call("pow", (size, tree.Literal(q.rng.choice((2, 0.5, 0)), "F64")), "F64")
    return Call("sqrt", (size,), "F64")


@makes("value I64", 1)
def integer_of(q: QueryMaker, scope: Scope, depth: int) -> tree.Expr | None:
    """A conversion to an integer, or a function of one that stays one."""
    item = q.prop(scope, of=lambda each: each.type in (*NUMBERS, "Bool") and each.type != "U64")
    if item is None:
        return None
    if item.type in INTEGERS:
        return Call("to_int", (item,), "I64") if q.chance(0.3) else Call("abs", (item,), whole(item.type))
    return Call("to_int", (item,), "I64")


def whole(type_: str) -> str:
    """What functions that keep integers make of an integer type."""
    return number_type(type_)


@makes("value I64", 1)
def large_arithmetic(q: QueryMaker, scope: Scope, depth: int) -> tree.Expr | None:
    """Among 64-bit integers, where sums may not fit."""
    left, right = (q.prop(scope, of=lambda each: each.type in INTEGERS) for _ in range(2))
    if left is None or right is None:
        return None
    return Arithmetic(q.rng.choice("+-*"), left, right if q.chance(0.6) else tree.Literal(1, "I64"))


@makes("value F64", 0.7)
def float_of(q: QueryMaker, scope: Scope, depth: int) -> tree.Expr | None:
    item = q.prop(scope, of=lambda each: each.type in (*NUMBERS, "Bool"))
    if item is None:
        return None
    return Negative(item) if item.type in FLOATS and q.chance(0.5) else Call("to_float", (item,), "F64")


@makes("value F64", 0.7)
def remainder(q: QueryMaker, scope: Scope, depth: int) -> tree.Expr | None:
    left = q.prop(scope, of=lambda each: each.type in FLOATS)
    return None if left is None else Arithmetic("%", left, tree.Literal(q.rng.choice((0.5, 2.0, 0.75)), "F64"))


# --- moments


@makes("value I64", 0.6)
def seconds_of_a_moment(q: QueryMaker, scope: Scope, depth: int) -> tree.Expr | None:
    item = q.prop(scope, of=lambda each: each.type == "DateTime")
    name = q.rng.choice(("second", "month", "day", "weekday"))
    return None if item is None else Call(name, (item,), "I64")


@makes("value DateTime", 1)
def truncated_moment(q: QueryMaker, scope: Scope, depth: int) -> tree.Expr | None:
    item = q.prop(scope, of=lambda each: each.type in ("Date", "DateTime"))
    if item is None:
        return None
    if item.type == "Date":
        return Call("to_datetime", (item,), "DateTime")
    return Call("date_trunc", (tree.Literal(q.rng.choice(UNITS), "String"), item), "DateTime")


def _moment(q: QueryMaker, scope: Scope) -> tree.Expr | None:
    return q.make("value DateTime", scope, 0)


@makes("condition", 0.6)
def moments_compared(q: QueryMaker, scope: Scope) -> tree.Expr | None:
    made = _moment(q, scope)
    if made is None:
        return None
    other = q.prop(scope, of=lambda each: each.type == "DateTime") if q.chance(0.5) else None
    fixed = q.constant(datetime.datetime(2026, 1, 2, tzinfo=datetime.UTC), "DateTime")
    return Compare(q.rng.choice(OPERATORS), made, other or fixed)


@makes("column", 0.6)
def moment_column(q: QueryMaker, scope: Scope) -> tree.Expr | None:
    return _moment(q, scope)


# --- choices and constants


def _choice(type_: str) -> Callable[..., tree.Expr | None]:
    """A `case` of several branches, or a choice among three."""

    def make(q: QueryMaker, scope: Scope, depth: int = 0) -> tree.Expr | None:
        found = q.properties(scope, of=lambda each: each.type == type_)
        if not found:
            return None
        chosen = [q.rng.choice(found) for _ in range(3)]
        if q.chance(0.4):
            return Call(q.rng.choice(("coalesce", "least", "greatest")), tuple(chosen), type_)
        tests = [q.make("condition", scope) for _ in range(2)]
        if None in tests:
            return None
        return Case(tuple(zip(tests, chosen[:2], strict=True)), chosen[2])

    return make


for _type in ("I64", "F64", "String", "Date", "DateTime"):
    makes(f"value {_type}", 0.7, "case of several branches")(_choice(_type))
makes("value DateTime", 1, "coalesce or case")(first_present("DateTime"))
for _type in ("Bool", "U32", "U64", "I32"):
    makes("column", 0.3, f"choice of {_type}")(_choice(_type))


@makes("column", 0.4)
def item_of_any_list(q: QueryMaker, scope: Scope) -> tree.Expr | None:
    items = q.prop(scope, of=lambda each: item_of(each.type) in ("I64", "Date"))
    return None if items is None else Item(items, tree.Literal(q.rng.choice((-2, -1, 0, 1)), "I64"))


@makes("aggregate", 0.5)
def aggregate_of_a_constant(q: QueryMaker, scope: Scope) -> tree.Expr | None:
    name = q.rng.choice(("count", "sum", "min", "max", "avg", "collect"))
    if name in ("sum", "avg"):
        return Aggregate(name, tree.Literal(q.rng.choice((1, 2, -3)), "I64"))
    value, type_ = q.rng.choice(((1, "I64"), ("x", "String"), (True, "Bool"), (datetime.date(2026, 1, 2), "Date")))
    return Aggregate(name, q.constant(value, type_))
