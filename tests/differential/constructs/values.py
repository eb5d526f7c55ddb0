"""Computed values: arithmetic, `case`, functions, items of lists. Their meaning is SQL or plain Python."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal

from tests.differential import tree
from tests.differential.constructs.aggregates import Aggregate
from tests.differential.constructs.conditions import OPERATORS, Compare, operand
from tests.differential.making import QueryMaker, Scope, makes
from tests.differential.printing import written
from tests.differential.sql import Context, duck, expression, meaning, sql_type
from tests.differential.types import FLOATS, INTEGERS, NUMBERS, item_of

INTO = {"I32": "I64", "I64": "I64", "U32": "U64", "U64": "U64", "F32": "F64", "F64": "F64"}


def number_type(*types: str) -> str:
    """The type that arithmetic gives: F64 with a float in it, U64 of unsigned integers only, else I64."""
    if any(each in FLOATS for each in types):
        return "F64"
    return "U64" if all(each.startswith("U") for each in types) else "I64"


def _beside(left: tree.Expr, right: tree.Expr) -> tuple[str, str]:
    """The types of two numbers. One that is written out is unsigned beside a U64, if it can be."""
    pair = (left, right)
    unsigned = "U64" in (left.type, right.type)
    one, other = (
        "U64" if unsigned and isinstance(each, tree.Literal) and each.type == "I64" and each.value >= 0 else each.type
        for each in pair
    )
    return one, other


@dataclass(frozen=True)
class Arithmetic(tree.Expr):
    """`left operator right`; on text and lists `+` joins."""

    operator: str
    left: tree.Expr
    right: tree.Expr

    @property
    def type(self) -> str:  # type: ignore[override]
        """The type of the result."""
        if self.left.type in NUMBERS:
            return "F64" if self.operator == "/" else number_type(*_beside(self.left, self.right))
        return "String" if self.left.type == "enum" else self.left.type


@dataclass(frozen=True)
class Negative(tree.Expr):
    """`-item`."""

    item: tree.Expr

    @property
    def type(self) -> str:  # type: ignore[override]
        """I64 or F64."""
        return "F64" if self.item.type in FLOATS else "I64"


@dataclass(frozen=True)
class Case(tree.Expr):
    """`case { when c then v … else w }`, all values of one type."""

    branches: tuple[tuple[tree.Expr, tree.Expr], ...]
    otherwise: tree.Expr

    @property
    def type(self) -> str:  # type: ignore[override]
        """That of the values."""
        return self.otherwise.type


@dataclass(frozen=True)
class Call(tree.Expr):
    """A function of the table below."""

    function: str
    arguments: tuple[tree.Expr, ...]
    type: str

    @property
    def rounded(self) -> int:
        """Libraries differ in the last places of these."""
        return 4 if self.function in ("ln", "exp", "pow") else 0


@dataclass(frozen=True)
class Item(tree.Expr):
    """`list[i]`: from 0, negative from the end, null outside."""

    items: tree.Expr
    index: tree.Expr

    @property
    def type(self) -> str:  # type: ignore[override]
        """That of the items."""
        return item_of(self.items.type) or ""


@written.register
def _(node: Arithmetic) -> str:
    return f"{operand(node.left)} {node.operator} {operand(node.right)}"


@written.register
def _(node: Negative) -> str:
    return f"-({written(node.item)})"


@written.register
def _(node: Case) -> str:
    branches = " ".join(f"when {written(test)} then {written(value)}" for test, value in node.branches)
    return f"case {{ {branches} else {written(node.otherwise)} }}"


@written.register
def _(node: Call) -> str:
    return f"{node.function}({', '.join(written(each) for each in node.arguments)})"


@written.register
def _(node: Item) -> str:
    return f"{operand(node.items)}[{written(node.index)}]"


# --- what they mean


@meaning.register
def _(node: Arithmetic, ctx: Context) -> str:
    left, right = expression(node.left, ctx), expression(node.right, ctx)
    if node.left.type not in NUMBERS:
        return f"({left} || {right})"
    if node.type != "F64":
        wide = f"(CAST({left} AS HUGEINT) {node.operator} CAST({right} AS HUGEINT))"
        divisor = f"CASE WHEN {right} = 0 AND {left} IS NOT NULL THEN error('division by zero') ELSE {wide} END"
        return f"CAST({divisor if node.operator == '%' else wide} AS {sql_type(node.type)})"
    number = f"(CAST({left} AS DOUBLE) {node.operator} CAST({right} AS DOUBLE))"
    if node.operator in "/%":
        number = f"CASE WHEN {right} = 0 AND {left} IS NOT NULL THEN error('division by zero') ELSE {number} END"
    return f"CASE WHEN isfinite({number}) THEN {number} WHEN {number} IS NOT NULL THEN error('not finite') END"


@meaning.register
def _(node: Negative, ctx: Context) -> str:
    wide = "DOUBLE" if node.type == "F64" else "HUGEINT"
    return f"CAST(-CAST({expression(node.item, ctx)} AS {wide}) AS {sql_type(node.type)})"


@meaning.register
def _(node: Case, ctx: Context) -> str:
    branches = " ".join(f"WHEN {expression(test, ctx)} THEN {expression(v, ctx)}" for test, v in node.branches)
    return f"CAST(CASE {branches} ELSE {expression(node.otherwise, ctx)} END AS {sql_type(node.type)})"


@meaning.register
def _(node: Item, ctx: Context) -> str:
    items, index = expression(node.items, ctx), expression(node.index, ctx)
    return f"CASE WHEN {index} < 0 THEN list_extract({items}, {index}) ELSE list_extract({items}, {index} + 1) END"


@meaning.register
def _(node: Call, ctx: Context) -> str:
    arguments = [expression(each, ctx) for each in node.arguments]
    types = [each.type for each in node.arguments]
    return f"CAST({MEANINGS[node.function](arguments, types)} AS {sql_type(node.type)})"


Meaning = Callable[[list[str], list[str]], str]


def plain(name: str) -> Meaning:
    """A function of DuckDB with the same meaning."""
    return lambda arguments, types: f"{name}({', '.join(arguments)})"


def _extreme(name: str) -> Meaning:
    return lambda arguments, types: f"list_{name}(list_filter([{', '.join(arguments)}], lambda each: each IS NOT NULL))"


MEANINGS: dict[str, Meaning] = {
    "coalesce": plain("coalesce"),
    "least": _extreme("min"),
    "greatest": _extreme("max"),
    "lower": plain("py_lower"),
    "upper": plain("py_upper"),
    "trim": plain("py_trim"),
    "length": plain("length"),
    "substring": plain("py_substring"),
    "replace": plain("py_replace"),
    "split": plain("py_split"),
    "join": plain("py_join"),
    "abs": lambda a, t: f"abs(CAST({a[0]} AS {'DOUBLE' if t[0] in FLOATS else 'HUGEINT'}))",
    "round": lambda a, t: f"half_up(CAST({a[0]} AS DOUBLE))" if t[0] in FLOATS else a[0],
    "floor": lambda a, t: f"floor(CAST({a[0]} AS DOUBLE))" if t[0] in FLOATS else a[0],
    "ceil": lambda a, t: f"ceil(CAST({a[0]} AS DOUBLE))" if t[0] in FLOATS else a[0],
    "sqrt": plain("sqrt"),
    "exp": plain("exp"),
    "pow": plain("pow"),
    "year": plain("year"),
    "month": plain("month"),
    "day": plain("day"),
    "hour": plain("hour"),
    "minute": plain("minute"),
    "weekday": plain("isodow"),
    "date_trunc": plain("date_trunc"),
    "days_between": lambda a, t: f"py_{'days' if t[0] == 'Date' else 'full_days'}({', '.join(a)})",
    "seconds_between": plain("py_seconds"),
    "to_string": lambda a, t: f"CAST({a[0]} AS VARCHAR)",
    "to_int": plain("trunc"),
    "to_float": lambda a, t: f"CAST({a[0]} AS DOUBLE)",
    "to_date": lambda a, t: f"CAST({a[0]} AS DATE)",
    "to_datetime": lambda a, t: f"CAST({a[0]} AS TIMESTAMP)",
    "try_to_int": plain("py_try_int"),
    "try_to_date": plain("py_try_date"),
    "size": plain("len"),
}


@duck("py_lower", ["VARCHAR"], "VARCHAR")
def lower(text: str) -> str:
    """Character by character."""
    return "".join(each.lower() if len(each.lower()) == 1 else each for each in text)


@duck("py_upper", ["VARCHAR"], "VARCHAR")
def upper(text: str) -> str:
    """Character by character."""
    return "".join(each.upper() if len(each.upper()) == 1 else each for each in text)


@duck("py_trim", ["VARCHAR"], "VARCHAR")
def trim(text: str) -> str:
    """Without white space around."""
    return text.strip()


@duck("py_substring", ["VARCHAR", "BIGINT", "BIGINT"], "VARCHAR")
def substring(text: str, start: int, count: int) -> str:
    """From a place on, from the end when it is negative."""
    first = max(0, len(text) + start) if start < 0 else start
    return text[first : first + count]


@duck("py_replace", ["VARCHAR", "VARCHAR", "VARCHAR"], "VARCHAR")
def replaced(text: str, old: str, new: str) -> str:
    """An empty text occurs nowhere."""
    return text.replace(old, new) if old else text


@duck("py_split", ["VARCHAR", "VARCHAR"], "VARCHAR[]")
def split(text: str, separator: str) -> list[str]:
    """The parts between separators."""
    return text.split(separator)


@duck("py_join", ["VARCHAR[]", "VARCHAR"], "VARCHAR")
def joined(items: list[str], separator: str) -> str:
    """One behind the other."""
    return separator.join(items)


@duck("py_days", ["DATE", "DATE"], "BIGINT")
def days(one: datetime.date, other: datetime.date) -> int:
    """Whole days between dates."""
    return (other - one).days


@duck("py_full_days", ["TIMESTAMP", "TIMESTAMP"], "BIGINT")
def full_days(one: datetime.datetime, other: datetime.datetime) -> int:
    """Full days of 24 hours, towards zero."""
    return int(Decimal(microseconds(one, other)) / 86_400_000_000)


@duck("py_seconds", ["TIMESTAMP", "TIMESTAMP"], "BIGINT")
def seconds(one: datetime.datetime, other: datetime.datetime) -> int:
    """Full seconds, towards zero."""
    return int(Decimal(microseconds(one, other)) / 1_000_000)


def microseconds(one: datetime.datetime, other: datetime.datetime) -> int:
    """The exact time between two moments."""
    return (other - one) // datetime.timedelta(microseconds=1)


@duck("py_try_int", ["VARCHAR"], "BIGINT", nullable=True)
def try_int(text: str | None) -> int | None:
    """Digits with a sign, or null."""
    return int(text) if text is not None and re.fullmatch(r"[+-]?[0-9]{1,18}", text) else None


@duck("py_try_date", ["VARCHAR"], "DATE", nullable=True)
def try_date(text: str | None) -> datetime.date | None:
    """An ISO date, or null."""
    try:
        return None if text is None or not re.fullmatch(r"\d{4}-\d\d-\d\d", text) else datetime.date.fromisoformat(text)
    except ValueError:
        return None


@duck("half_up", ["DOUBLE"], "DOUBLE")
def half_up(number: float) -> float:
    """The nearest whole number, halves away from zero."""
    return float(Decimal(number).quantize(Decimal(1), ROUND_HALF_UP))


# --- how they are made


def value(q: QueryMaker, scope: Scope, type_: str, depth: int = 1) -> tree.Expr | None:
    """A value of a type: a property, or something computed."""
    if depth and q.chance(0.5):
        made = q.make(f"value {type_}", scope, depth - 1)
        if made is not None:
            return made
    return q.prop(scope, of=lambda each: each.type == type_)


def small(q: QueryMaker) -> tree.Literal:
    """A small integer."""
    return tree.Literal(q.rng.choice((1, 2, 3, 10)), "I64")


@makes("condition", 1.5)
def compare_computed(q: QueryMaker, scope: Scope) -> tree.Expr | None:
    type_ = q.rng.choice(("I64", "F64", "String", "Date"))
    left = value(q, scope, type_)
    right = value(q, scope, type_, 0) if q.chance(0.5) else None
    if left is None:
        return None
    if right is None or right == left:
        plain_value = {"I64": 2, "F64": 0.5, "String": "b", "Date": datetime.date(2025, 1, 1)}[type_]
        right = q.constant(plain_value, type_)
    return Compare(q.rng.choice(OPERATORS), left, right)


@makes("column")
def computed_column(q: QueryMaker, scope: Scope) -> tree.Expr | None:
    made = value(q, scope, q.rng.choice(("I64", "F64", "String", "Date")), 2)
    return None if isinstance(made, tree.Prop) else made


@makes("aggregate", 1.5)
def aggregate_of_computed(q: QueryMaker, scope: Scope) -> tree.Expr | None:
    made = value(q, scope, q.rng.choice(("I64", "String", "Date")), 1)
    if made is None or isinstance(made, tree.Prop):
        return None
    functions = ("count", "min", "max", "sum") if made.type == "I64" else ("count", "min", "max")
    return Aggregate(q.rng.choice(functions), made)


@makes("value I64", 2)
def integer_arithmetic(q: QueryMaker, scope: Scope, depth: int) -> tree.Expr | None:
    left = q.prop(scope, of=lambda each: each.type in ("I32", "U32"))
    if left is None:
        return None
    right = q.prop(scope, of=lambda each: each.type in ("I32", "U32")) if q.chance(0.5) else None
    operator = q.rng.choice("+-*%" if left.type == "I32" else "+*%") if right is None else q.rng.choice("+-*")
    made = Arithmetic(operator, left, right or small(q))
    return made if made.type == "I64" else None


@makes("value I64", 1)
def negative(q: QueryMaker, scope: Scope, depth: int) -> tree.Expr | None:
    item = q.prop(scope, of=lambda each: each.type in ("I32", "U32"))
    return None if item is None else Negative(item)


@makes("value F64", 2)
def float_arithmetic(q: QueryMaker, scope: Scope, depth: int) -> tree.Expr | None:
    left = q.prop(scope, of=lambda each: each.type in FLOATS)
    right = q.prop(scope, of=lambda each: each.type in NUMBERS) if q.chance(0.6) else tree.Literal(0.5, "F64")
    return None if left is None or right is None else Arithmetic(q.rng.choice("+-*"), left, right)


@makes("value F64", 1)
def quotient(q: QueryMaker, scope: Scope, depth: int) -> tree.Expr | None:
    left = q.prop(scope, of=lambda each: each.type in NUMBERS)
    return None if left is None else Arithmetic("/", left, small(q))


@makes("value F64", 1.5)
def function_of_number(q: QueryMaker, scope: Scope, depth: int) -> tree.Expr | None:
    item = q.prop(scope, of=lambda each: each.type in FLOATS)
    if item is None:
        return None
    return Call(q.rng.choice(("abs", "floor", "ceil", "round")), (item,), "F64")


@makes("value String", 2)
def text_function(q: QueryMaker, scope: Scope, depth: int) -> tree.Expr | None:
    item = q.prop(scope, of=lambda each: each.type == "String")
    if item is None:
        return None
    name = q.rng.choice(("lower", "upper", "trim", "substring", "replace"))
    more: dict[str, tuple[tree.Expr, ...]] = {
        "substring": (tree.Literal(q.rng.choice((-2, -1, 0, 1)), "I64"), tree.Literal(q.rng.choice((0, 1, 2)), "I64")),
        "replace": (tree.Literal("a", "String"), tree.Literal("ee", "String")),
    }
    return Call(name, (item, *more.get(name, ())), "String")


@makes("value String", 1)
def joined_texts(q: QueryMaker, scope: Scope, depth: int) -> tree.Expr | None:
    left, right = (q.prop(scope, of=lambda each: each.type == "String") for _ in range(2))
    return None if left is None or right is None else Arithmetic("+", left, right)


@makes("value String", 1)
def number_as_text(q: QueryMaker, scope: Scope, depth: int) -> tree.Expr | None:
    item = q.prop(scope, of=lambda each: each.type in (*INTEGERS, "Bool", "Date"))
    return None if item is None else Call("to_string", (item,), "String")


@makes("value I64", 1)
def measure(q: QueryMaker, scope: Scope, depth: int) -> tree.Expr | None:
    kinds = {"String": ("length",), "Date": ("year", "month", "day", "weekday"), "DateTime": ("hour", "minute", "year")}
    item = q.prop(scope, of=lambda each: each.type in kinds or item_of(each.type) is not None)
    if item is None:
        return None
    return Call(q.rng.choice(kinds.get(item.type, ("size",))), (item,), "I64")


@makes("value I64", 0.7)
def time_between(q: QueryMaker, scope: Scope, depth: int) -> tree.Expr | None:
    kind = q.rng.choice(("Date", "DateTime"))
    one, other = (q.prop(scope, of=lambda each: each.type == kind) for _ in range(2))
    if one is None or other is None:
        return None
    names = ("days_between",) if kind == "Date" else ("days_between", "seconds_between")
    return Call(q.rng.choice(names), (one, other), "I64")


@makes("value Date", 1)
def date_function(q: QueryMaker, scope: Scope, depth: int) -> tree.Expr | None:
    item = q.prop(scope, of=lambda each: each.type in ("Date", "DateTime"))
    if item is None:
        return None
    if item.type == "DateTime":
        return Call("to_date", (item,), "Date")
    return Call("date_trunc", (tree.Literal(q.rng.choice(("year", "month", "week")), "String"), item), "Date")


def first_present(type_: str) -> Callable[..., tree.Expr | None]:
    """`coalesce`, `least`, `greatest` and `case` of a type."""

    def make(q: QueryMaker, scope: Scope, depth: int) -> tree.Expr | None:
        one, other = (q.prop(scope, of=lambda each: each.type == type_) for _ in range(2))
        if one is None or other is None:
            return None
        if q.chance(0.4):
            test = q.make("condition", scope)
            return None if test is None else Case(((test, one),), other)
        return Call(q.rng.choice(("coalesce", "least", "greatest")), (one, other), type_)

    return make


for _type in ("I64", "F64", "String", "Date"):
    makes(f"value {_type}", 1.5, "coalesce or case")(first_present(_type))


@makes("value String", 1)
def item_of_list(q: QueryMaker, scope: Scope, depth: int) -> tree.Expr | None:
    items = q.prop(scope, of=lambda each: each.type == "[String]")
    return None if items is None else Item(items, tree.Literal(q.rng.choice((-1, 0, 1)), "I64"))
