"""The one table of functions: what each takes and gives, how it treats null, how it fails, and what it means.

The checker, both engines, the reference page and completion are made from it. The meaning is a function on Arrow
(`Function.kernel`), found by name so that compiling a query needs no Arrow.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from importlib import import_module
from typing import Any

from omnigraph.query.functions.signatures import Signature, parse_signature

Kernel = Callable[..., Any]
"""`kernel(args, result)`: the values of a call. `args` are Arrow arrays of one length, or scalars that stand for the
same value in every row, at least one of them an array; `result` is the Arrow type of the answer. Raises
`CannotCompute`.
"""


class NullRule(StrEnum):
    """What null among the arguments does."""

    STRICT = "null if an argument is null"
    FIRST = "null if all arguments are null"
    NULLABLE = "null if an argument is null, or where there is no answer"


@dataclass(frozen=True, slots=True)
class Example:
    """An expression and what it gives, both in the language; `gives` None: it is an error."""

    expression: str
    gives: str | None


@dataclass(frozen=True)
class Function:
    """One function of the language. `fails` says in words for which values it is an error; empty: for none."""

    name: str
    group: str
    signatures: tuple[Signature, ...]
    doc: str
    examples: tuple[Example, ...]
    meaning: str
    null: NullRule = NullRule.STRICT
    errors: str = ""

    @property
    def fails(self) -> bool:
        """Whether some values are an error."""
        return bool(self.errors)

    @cached_property
    def kernel(self) -> Kernel:
        """The meaning on Arrow."""
        module, _, name = self.meaning.partition(".")
        found: Kernel = getattr(import_module(f"omnigraph.query.functions.kernels.{module}"), name)
        return found


def _function(
    group: str,
    meaning: str,
    signatures: str | tuple[str, ...],
    doc: str,
    *examples: tuple[str, str | None],
    null: NullRule = NullRule.STRICT,
    errors: str = "",
) -> Function:
    texts = (signatures,) if isinstance(signatures, str) else signatures
    parsed = tuple(parse_signature(text) for text in texts)
    shown = tuple(Example(*example) for example in examples)
    return Function(parsed[0].name, group, parsed, doc, shown, meaning, null, errors)


def _table(*functions: Function) -> Mapping[str, Function]:
    return {function.name: function for function in functions}


_CONVERSION = "the text, or the number, cannot be converted"

FUNCTIONS: Mapping[str, Function] = _table(
    # --- choosing
    _function(
        "Choosing",
        "choosing.coalesce",
        "coalesce(T, T...) -> T",
        "The first argument that is not null.",
        ("coalesce(null, 3, 4)", "3"),
        ('coalesce(null, "none")', '"none"'),
        null=NullRule.FIRST,
    ),
    _function(
        "Choosing",
        "choosing.least",
        "least(Single, Single...) -> Single",
        "The smallest of the arguments that are not null, in the order of `order`.",
        ("least(3, 1.5, 2)", "1.5"),
        ('least("b", null, "a")', '"a"'),
        null=NullRule.FIRST,
    ),
    _function(
        "Choosing",
        "choosing.greatest",
        "greatest(Single, Single...) -> Single",
        "The greatest of the arguments that are not null, in the order of `order`.",
        ("greatest(3, 1, 2)", "3"),
        ('greatest(date("2026-01-01"), date("2025-01-01"))', 'date("2026-01-01")'),
        null=NullRule.FIRST,
    ),
    # --- text
    _function(
        "Text",
        "text.lower",
        "lower(String) -> String",
        "The text in lower case, character by character.",
        ('lower("ÉmiLe")', '"émile"'),
    ),
    _function(
        "Text",
        "text.upper",
        "upper(String) -> String",
        "The text in upper case, character by character.",
        ('upper("Émile")', '"ÉMILE"'),
    ),
    _function(
        "Text",
        "text.trim",
        "trim(String) -> String",
        "The text without white space at its ends.",
        ('trim("  a b\\n")', '"a b"'),
    ),
    _function(
        "Text",
        "text.length",
        "length(String) -> I64",
        "The number of characters (Unicode code points).",
        ('length("né")', "2"),
        ('length("")', "0"),
    ),
    _function(
        "Text",
        "text.substring",
        "substring(String, Int, Int?) -> String",
        "The part from a place on (from 0; negative from the end), of at most so many characters.",
        ('substring("graph", 1, 3)', '"rap"'),
        ('substring("graph", -2)', '"ph"'),
        ('substring("graph", 9)', '""'),
        errors="the number of characters is negative",
    ),
    _function(
        "Text",
        "text.replace",
        "replace(String, String, String) -> String",
        "The text with every occurrence of the second argument replaced by the third; an empty one occurs nowhere.",
        ('replace("a-b-c", "-", "+")', '"a+b+c"'),
        ('replace("abc", "", "x")', '"abc"'),
    ),
    _function(
        "Text",
        "text.split",
        "split(String, String) -> [String]",
        "The parts between the occurrences of a separator.",
        ('split("a,b,,c", ",")', '["a", "b", "", "c"]'),
        ('split("abc", ",")', '["abc"]'),
        errors="the separator is empty",
    ),
    _function(
        "Text",
        "text.join",
        "join([String], String) -> String",
        "The texts of a list, one behind the other, with a separator between them.",
        ('join(["a", "b"], ", ")', '"a, b"'),
    ),
    # --- numbers
    _function(
        "Numbers",
        "numbers.absolute",
        "abs(Number) -> Number",
        "The number without its sign.",
        ("abs(-3)", "3"),
        ("abs(-2.5)", "2.5"),
        errors="the result does not fit I64",
    ),
    _function(
        "Numbers",
        "numbers.rounded",
        "round(Number, Int?) -> Number",
        "The nearest number with so many digits behind the point (0 if not said), halves away from zero.",
        ("round(2.5)", "3.0"),
        ("round(-2.5)", "-3.0"),
        ("round(3.14159, 2)", "3.14"),
        ("round(1250, -2)", "1300"),
        errors="the digits are not between -300 and 300, or the result does not fit",
    ),
    _function(
        "Numbers",
        "numbers.floor",
        "floor(Number) -> Number",
        "The greatest whole number that is not above.",
        ("floor(-1.5)", "-2.0"),
        ("floor(3)", "3"),
    ),
    _function(
        "Numbers",
        "numbers.ceil",
        "ceil(Number) -> Number",
        "The smallest whole number that is not below.",
        ("ceil(1.2)", "2.0"),
    ),
    _function(
        "Numbers",
        "numbers.square_root",
        "sqrt(Number) -> F64",
        "The square root.",
        ("sqrt(9)", "3.0"),
        ("sqrt(-1)", None),
        errors="the number is negative",
    ),
    _function(
        "Numbers",
        "numbers.natural_logarithm",
        "ln(Number) -> F64",
        "The natural logarithm.",
        ("ln(1)", "0.0"),
        ("ln(0)", None),
        errors="the number is not above zero",
    ),
    _function(
        "Numbers",
        "numbers.exponential",
        "exp(Number) -> F64",
        "The number e to that power.",
        ("exp(0)", "1.0"),
        errors="the result is too large",
    ),
    _function(
        "Numbers",
        "numbers.power",
        "pow(Number, Number) -> F64",
        "The first number to the power of the second.",
        ("pow(2, 10)", "1024.0"),
        ("pow(0, -1)", None),
        errors="the result is too large or not a real number",
    ),
    _function(
        "Numbers",
        "numbers.try_divide",
        "try_divide(Number, Number) -> F64",
        "The first number divided by the second, null where that is no finite number.",
        ("try_divide(1, 4)", "0.25"),
        ("try_divide(1, 0)", "null"),
        null=NullRule.NULLABLE,
    ),
    # --- dates and instants
    _function(
        "Dates and instants",
        "moments.year",
        "year(Moment) -> I64",
        "The year. Instants are looked at in UTC, here and below.",
        ('year(date("2026-03-04"))', "2026"),
    ),
    _function(
        "Dates and instants",
        "moments.month",
        "month(Moment) -> I64",
        "The month, 1 to 12.",
        ('month(date("2026-03-04"))', "3"),
    ),
    _function(
        "Dates and instants",
        "moments.day",
        "day(Moment) -> I64",
        "The day of the month, 1 to 31.",
        ('day(datetime("2026-03-04T23:30:00-02:00"))', "5"),
    ),
    _function(
        "Dates and instants",
        "moments.hour",
        "hour(DateTime) -> I64",
        "The hour, 0 to 23.",
        ('hour(datetime("2026-03-04T05:06:07Z"))', "5"),
    ),
    _function(
        "Dates and instants",
        "moments.minute",
        "minute(DateTime) -> I64",
        "The minute, 0 to 59.",
        ('minute(datetime("2026-03-04T05:06:07Z"))', "6"),
    ),
    _function(
        "Dates and instants",
        "moments.second",
        "second(DateTime) -> I64",
        "The second, 0 to 59, without its fraction.",
        ('second(datetime("2026-03-04T05:06:07.9Z"))', "7"),
    ),
    _function(
        "Dates and instants",
        "moments.weekday",
        "weekday(Moment) -> I64",
        "The day of the week, Monday 1 to Sunday 7.",
        ('weekday(date("2026-03-04"))', "3"),
    ),
    _function(
        "Dates and instants",
        "moments.date_trunc",
        "date_trunc(Unit, Moment) -> Moment",
        "The start of the unit of time that a moment lies in; weeks start on Monday. A Date has no hours.",
        ('date_trunc("month", date("2026-03-04"))', 'date("2026-03-01")'),
        ('date_trunc("hour", datetime("2026-03-04T05:06:07Z"))', 'datetime("2026-03-04T05:00:00Z")'),
        errors="the start lies outside of the calendar",
    ),
    _function(
        "Dates and instants",
        "moments.days_between",
        ("days_between(Date, Date) -> I64", "days_between(DateTime, DateTime) -> I64"),
        "The days from the first to the second; between instants, full days of 24 hours.",
        ('days_between(date("2026-01-01"), date("2026-03-01"))', "59"),
        ('days_between(date("2026-01-02"), date("2026-01-01"))', "-1"),
    ),
    _function(
        "Dates and instants",
        "moments.seconds_between",
        "seconds_between(DateTime, DateTime) -> I64",
        "The full seconds from the first to the second.",
        ('seconds_between(datetime("2026-01-01T00:00:00Z"), datetime("2026-01-01T00:01:30.5Z"))', "90"),
    ),
    # --- conversions
    _function(
        "Conversions",
        "conversions.to_string",
        "to_string(Any) -> String",
        "The value as text: numbers in their shortest form, dates and instants in ISO form.",
        ("to_string(3)", '"3"'),
        ("to_string(2.0)", '"2.0"'),
        ('to_string(date("2026-01-02"))', '"2026-01-02"'),
        ("to_string(true)", '"true"'),
    ),
    _function(
        "Conversions",
        "conversions.to_int",
        ("to_int(String) -> I64", "to_int(Number) -> I64", "to_int(Bool) -> I64"),
        "Text or a number as an integer; the digits behind the point are cut off a number.",
        ('to_int("42")', "42"),
        ("to_int(-2.7)", "-2"),
        ('to_int("4.2")', None),
        errors=_CONVERSION,
    ),
    _function(
        "Conversions",
        "conversions.to_float",
        ("to_float(String) -> F64", "to_float(Number) -> F64", "to_float(Bool) -> F64"),
        "Text or a number as a float, rounded to the nearest.",
        ('to_float("1e3")', "1000.0"),
        ("to_float(3)", "3.0"),
        errors=_CONVERSION,
    ),
    _function(
        "Conversions",
        "conversions.to_date",
        ("to_date(String) -> Date", "to_date(Moment) -> Date"),
        "ISO text as a Date, or the day of an instant.",
        ('to_date("2026-01-02")', 'date("2026-01-02")'),
        ('to_date(datetime("2026-01-02T23:00:00Z"))', 'date("2026-01-02")'),
        errors=_CONVERSION,
    ),
    _function(
        "Conversions",
        "conversions.to_datetime",
        ("to_datetime(String) -> DateTime", "to_datetime(Moment) -> DateTime"),
        "ISO text with its zone as a DateTime, or the first instant of a day.",
        ('to_datetime("2026-01-02T03:04:05Z")', 'datetime("2026-01-02T03:04:05Z")'),
        ('to_datetime(date("2026-01-02"))', 'datetime("2026-01-02T00:00:00Z")'),
        errors=_CONVERSION,
    ),
    _function(
        "Conversions",
        "conversions.try_to_int",
        ("try_to_int(String) -> I64", "try_to_int(Number) -> I64", "try_to_int(Bool) -> I64"),
        "Like `to_int`, null where that is an error.",
        ('try_to_int("x")', "null"),
        null=NullRule.NULLABLE,
    ),
    _function(
        "Conversions",
        "conversions.try_to_float",
        ("try_to_float(String) -> F64", "try_to_float(Number) -> F64", "try_to_float(Bool) -> F64"),
        "Like `to_float`, null where that is an error.",
        ('try_to_float("x")', "null"),
        null=NullRule.NULLABLE,
    ),
    _function(
        "Conversions",
        "conversions.try_to_date",
        ("try_to_date(String) -> Date", "try_to_date(Moment) -> Date"),
        "Like `to_date`, null where that is an error.",
        ('try_to_date("2026-02-30")', "null"),
        null=NullRule.NULLABLE,
    ),
    _function(
        "Conversions",
        "conversions.try_to_datetime",
        ("try_to_datetime(String) -> DateTime", "try_to_datetime(Moment) -> DateTime"),
        "Like `to_datetime`, null where that is an error.",
        ('try_to_datetime("yesterday")', "null"),
        null=NullRule.NULLABLE,
    ),
    # --- lists
    _function(
        "Lists",
        "lists.size",
        "size([T]) -> I64",
        "The number of items of a list.",
        ('size(["a", "b"])', "2"),
    ),
)
