"""Dates and moments that are moved by days, hours and the like, and functions in the forms that give null."""

from __future__ import annotations

import calendar
import datetime
import re
from dataclasses import dataclass

from tests.differential import tree
from tests.differential.constructs.conditions import OPERATORS, Compare, operand
from tests.differential.constructs.values import MEANINGS, Call, plain
from tests.differential.making import QueryMaker, Scope, makes
from tests.differential.printing import written
from tests.differential.sql import Context, duck, expression, meaning
from tests.differential.types import NUMBERS

UNITS = {"days": 86_400, "weeks": 604_800, "hours": 3_600, "minutes": 60, "seconds": 1}
CALENDAR = {"months": 1, "years": 12}
CLOCK = ("hours", "minutes", "seconds")
EVERY = (*UNITS, *CALENDAR)


@dataclass(frozen=True)
class Shift(tree.Expr):
    """`moment + days(n)`, `days(n) + moment` or `moment - days(n)`."""

    moment: tree.Expr
    amount: tree.Expr
    unit: str
    sign: str = "+"
    turned: bool = False

    @property
    def type(self) -> str:  # type: ignore[override]
        """A date that is moved by a time of day becomes a moment."""
        return "DateTime" if self.unit in CLOCK else self.moment.type


@written.register
def _(node: Shift) -> str:
    length = f"{node.unit}({written(node.amount)})"
    if node.turned and node.sign == "+":
        return f"{length} + {operand(node.moment)}"
    return f"{operand(node.moment)} {node.sign} {length}"


@meaning.register
def _(node: Shift, ctx: Context) -> str:
    moment = f"CAST({expression(node.moment, ctx)} AS TIMESTAMP)"
    amount = f"{node.sign}CAST({expression(node.amount, ctx)} AS BIGINT)"
    if node.unit in CALENDAR:
        moved = f"py_months_later({moment}, {amount} * {CALENDAR[node.unit]})"
    else:
        moved = f"py_moved({moment}, {amount} * {UNITS[node.unit]})"
    return f"CAST({moved} AS {'TIMESTAMP' if node.type == 'DateTime' else 'DATE'})"


@duck("py_moved", ["TIMESTAMP", "BIGINT"], "TIMESTAMP")
def moved(moment: datetime.datetime, seconds: int) -> datetime.datetime:
    """So many seconds later."""
    return moment + datetime.timedelta(seconds=seconds)


@duck("py_months_later", ["TIMESTAMP", "BIGINT"], "TIMESTAMP")
def months_later(moment: datetime.datetime, count: int) -> datetime.datetime:
    """The same day of another month, or its last one."""
    months = moment.year * 12 + moment.month - 1 + count
    year, month = months // 12, months % 12 + 1
    return moment.replace(year=year, month=month, day=min(moment.day, calendar.monthrange(year, month)[1]))


def shift(q: QueryMaker, scope: Scope, kinds: tuple[str, ...], units: tuple[str, ...]) -> Shift | None:
    """Something of these types moved by one of these units."""
    moment = q.prop(scope, of=lambda each: each.type in kinds)
    if moment is None:
        return None
    amount = q.prop(scope, of=lambda each: each.type == "U32") if q.chance(0.2) else None
    if amount is not None:
        units = tuple(each for each in units if each == "seconds") or ("seconds",)
        if "DateTime" not in kinds:
            amount, units = None, ("days",)
    number = amount or q.constant(q.rng.choice((-40, -1, 0, 1, 3, 30)), "I64")
    return Shift(moment, number, q.rng.choice(units), q.rng.choice("++-"), q.chance(0.2))


@makes("value Date", 2)
def shifted_date(q: QueryMaker, scope: Scope, depth: int) -> tree.Expr | None:
    return shift(q, scope, ("Date",), ("days", "weeks", "months", "years"))


@makes("condition", 1)
def shifted_moment(q: QueryMaker, scope: Scope) -> tree.Expr | None:
    """A moment that was moved, against a constant or another one."""
    made = shift(q, scope, ("Date", "DateTime"), CLOCK) or shift(q, scope, ("DateTime",), EVERY)
    if made is None:
        return None
    other = q.prop(scope, of=lambda each: each.type == made.type) if q.chance(0.5) else None
    fixed = datetime.datetime(2026, 1, 2, 3, tzinfo=datetime.UTC)
    right = other or q.constant(fixed if made.type == "DateTime" else fixed.date(), made.type)
    return Compare(q.rng.choice(OPERATORS), made, right)


@makes("column", 1)
def shifted_column(q: QueryMaker, scope: Scope) -> tree.Expr | None:
    return shift(q, scope, ("DateTime",), EVERY) or shift(q, scope, ("Date",), EVERY)


# --- forms that give null


@duck("py_try_float", ["VARCHAR"], "DOUBLE", nullable=True)
def try_float(text: str | None) -> float | None:
    """A number as text, or null."""
    if text is None or not re.fullmatch(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?", text):
        return None
    return float(text)


@duck("py_try_divide", ["DOUBLE", "DOUBLE"], "DOUBLE", nullable=True)
def try_divide(one: float | None, other: float | None) -> float | None:
    """A quotient, or null where there is none."""
    return None if one is None or not other else one / other


@duck("py_try_datetime", ["VARCHAR"], "TIMESTAMP", nullable=True)
def try_datetime(text: str | None) -> datetime.datetime | None:
    """A moment in UTC as text, or null."""
    if text is None or not re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", text):
        return None
    return datetime.datetime.fromisoformat(text).replace(tzinfo=None)


MEANINGS["try_to_float"] = plain("py_try_float")
MEANINGS["try_to_datetime"] = plain("py_try_datetime")
MEANINGS["try_divide"] = lambda a, t: f"py_try_divide({', '.join(f'CAST({each} AS DOUBLE)' for each in a)})"

TEXTS = {
    "try_to_int": ("12", "-3", "x", "", "1.5"),
    "try_to_float": ("1.5", "-3", "1e3", "x", ""),
    "try_to_date": ("2026-01-02", "2026-02-30", "x"),
    "try_to_datetime": ("2026-01-02T03:04:05Z", "x", "2026-01-02"),
}
GIVES = {"try_to_int": "I64", "try_to_float": "F64", "try_to_date": "Date", "try_to_datetime": "DateTime"}


def attempt(q: QueryMaker, scope: Scope, name: str) -> tree.Expr | None:
    """A conversion of a text that is there, or of one that is written out."""
    prop = q.prop(scope, of=lambda each: each.type == "String")
    text: tree.Expr | None = prop if q.chance(0.5) else q.constant(q.rng.choice(TEXTS[name]), "String")
    return None if text is None else Call(name, (text,), GIVES[name])


@makes("column", 1)
def attempted(q: QueryMaker, scope: Scope) -> tree.Expr | None:
    return attempt(q, scope, q.rng.choice([*TEXTS]))


@makes("value I64", 0.7)
def attempted_integer(q: QueryMaker, scope: Scope, depth: int) -> tree.Expr | None:
    return attempt(q, scope, "try_to_int")


@makes("value Date", 0.7)
def attempted_date(q: QueryMaker, scope: Scope, depth: int) -> tree.Expr | None:
    return attempt(q, scope, "try_to_date")


@makes("value F64", 1)
def attempted_quotient(q: QueryMaker, scope: Scope, depth: int) -> tree.Expr | None:
    left, right = (q.prop(scope, of=lambda each: each.type in NUMBERS) for _ in range(2))
    return None if left is None or right is None else Call("try_divide", (left, right), "F64")
