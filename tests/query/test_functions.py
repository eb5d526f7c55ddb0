"""The table of functions: every example is run, every null rule holds, and plain Python agrees with the kernels."""

from __future__ import annotations

import datetime
import math
import statistics
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omnigraph.errors import BadRequest
from omnigraph.query import ir
from omnigraph.query.evaluate import evaluate
from omnigraph.query.evaluate.aggregates import aggregate
from omnigraph.query.functions.table import FUNCTIONS, Example, Function, NullRule
from omnigraph.query.typing import BOOL, DATE, DATETIME, F64, I64, STRING, U64
from omnigraph.schema.arrow import arrow_type
from omnigraph.schema.types import ListType, Scalar, ValueType
from tests.query.sample import read

NOW = datetime.datetime(2026, 1, 2, tzinfo=datetime.UTC)
EXAMPLES = [(function, example) for function in FUNCTIONS.values() for example in function.examples]


def value_of(text: str) -> Any:
    """What an expression of the language gives, without any row."""
    [column] = read(f"match {{ }} return {{ {text} as v }}").root.columns
    return evaluate(column.expr, {}, {}, NOW, 1).to_pylist()[0]


def test_every_function_is_documented_and_has_a_meaning() -> None:
    for function in FUNCTIONS.values():
        assert function.doc.endswith("."), function.name
        assert function.examples, function.name
        assert callable(function.kernel)
        assert all(signature.name == function.name for signature in function.signatures)


@pytest.mark.parametrize(("function", "example"), EXAMPLES, ids=[example.expression for _, example in EXAMPLES])
def test_the_example(function: Function, example: Example) -> None:
    if example.gives is None:
        assert function.fails
        with pytest.raises(BadRequest) as raised:
            value_of(example.expression)
        assert f"in `{example.expression}`" in str(raised.value)
    elif example.gives == "null":
        assert value_of(example.expression) is None
    else:
        found, wanted = value_of(example.expression), value_of(example.gives)
        assert found == wanted
        assert type(found) is type(wanted)


# --- null

SAMPLES: dict[str, tuple[Any, ValueType]] = {
    "String": ("2026-01-02", STRING),
    "Any": (3, I64),
    "Bool": (True, BOOL),
    "Int": (1, I64),
    "Number": (2.0, F64),
    "T": (2, I64),
    "Single": (2, I64),
    "Date": (datetime.date(2026, 1, 2), DATE),
    "DateTime": (NOW, DATETIME),
    "Moment": (NOW, DATETIME),
    "[T]": (("a", "b"), ListType(Scalar.STRING)),
    "[String]": (("a", "b"), ListType(Scalar.STRING)),
    "Unit": ("month", STRING),
}


def call(function: Function, args: list[ir.Expr], result: ValueType) -> ir.Call:
    return ir.Call(function.name, tuple(args), result, True, function.name)


def column(name: str, type_: ValueType) -> ir.Prop:
    return ir.Prop("p", name, type_, True)


@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS)
def test_null_among_the_arguments(function: Function) -> None:
    """Each argument in turn is null, in a row beside a row without nulls; and as a constant."""
    signature = function.signatures[0]
    kinds = [*signature.kinds, signature.kinds[-1]] if signature.variadic else list(signature.kinds)
    samples = [SAMPLES[kind] for kind in kinds]
    if function.name in {"to_int", "try_to_int", "to_float", "try_to_float"}:
        samples = [("7", STRING)]
    if function.name.endswith("to_datetime"):
        samples = [("2026-01-02T00:00:00Z", STRING)]
    fixed = {"String": STRING, "I64": I64, "F64": F64, "Date": DATE, "DateTime": DATETIME}
    result = fixed.get(signature.result) or (
        ListType(Scalar.STRING) if signature.result.startswith("[") else samples[kinds.index(signature.result)][1]
    )
    for place in range(len(samples)):
        if kinds[place] == "Unit":
            continue
        args: list[ir.Expr] = []
        columns = {}
        for index, (value, type_) in enumerate(samples):
            if kinds[index] == "Unit":
                args.append(ir.Literal(value, type_))
                continue
            args.append(column(f"c{index}", type_))
            value = list(value) if isinstance(value, tuple) else value
            columns["p", f"c{index}"] = pa.array([value, None if index == place else value], arrow_type(type_))
        whole, with_null = evaluate(call(function, args, result), columns, {}, NOW, 2).to_pylist()
        assert whole is not None
        assert (with_null is None) == (function.null is not NullRule.FIRST or len(samples) == 1)
        constants: list[ir.Expr] = [
            ir.Literal(None if index == place else value, type_) for index, (value, type_) in enumerate(samples)
        ]
        assert evaluate(call(function, constants, result), {}, {}, NOW, 3).to_pylist() == [with_null] * 3


# --- against plain Python

TEXTS = st.text("aAbé ,x0", max_size=6)
INTS = st.integers(-(2**63), 2**63 - 1) | st.integers(-9, 9)
FLOATS = st.floats(allow_nan=False, allow_infinity=False, width=64) | st.sampled_from((0.5, -0.5, 2.5, 1e300, 0.0))
DATES = st.dates(datetime.date(1, 1, 1), datetime.date(9999, 12, 31))
MOMENTS = st.datetimes(datetime.datetime(1, 1, 2), datetime.datetime(9999, 12, 30)).map(
    lambda moment: moment.replace(tzinfo=datetime.UTC)
)


def half_away(number: float) -> float:
    whole = math.floor(abs(number))
    rounded = whole + 1 if abs(number) - whole >= 0.5 else whole
    return math.copysign(float(rounded), number)


def substring(text: str, start: int, count: int) -> str:
    return text[start if start >= 0 else max(len(text) + start, 0) :][:count]


ORACLES: list[tuple[str, list[st.SearchStrategy[Any]], list[ValueType], ValueType, Callable[..., Any]]] = [
    ("length", [TEXTS], [STRING], I64, len),
    ("trim", [TEXTS], [STRING], STRING, str.strip),
    ("replace", [TEXTS, TEXTS, TEXTS], [STRING] * 3, STRING, lambda t, a, b: t.replace(a, b) if a else t),
    ("split", [TEXTS, TEXTS.filter(bool)], [STRING] * 2, ListType(Scalar.STRING), str.split),
    ("substring", [TEXTS, st.integers(-8, 8), st.integers(0, 8)], [STRING, I64, I64], STRING, substring),
    ("abs", [INTS.filter(lambda n: n > -(2**63))], [I64], I64, abs),
    ("round", [FLOATS], [F64], F64, half_away),
    ("floor", [FLOATS], [F64], F64, lambda x: float(math.floor(x))),
    ("ceil", [FLOATS], [F64], F64, lambda x: float(math.ceil(x))),
    ("sqrt", [FLOATS.map(abs)], [F64], F64, math.sqrt),
    ("least", [INTS, INTS], [I64, I64], I64, min),
    ("greatest", [FLOATS, FLOATS], [F64, F64], F64, max),
    ("coalesce", [INTS, INTS], [I64, I64], I64, lambda a, b: a),
    ("year", [DATES], [DATE], I64, lambda d: d.year),
    ("month", [MOMENTS], [DATETIME], I64, lambda d: d.month),
    ("day", [DATES], [DATE], I64, lambda d: d.day),
    ("hour", [MOMENTS], [DATETIME], I64, lambda d: d.hour),
    ("minute", [MOMENTS], [DATETIME], I64, lambda d: d.minute),
    ("second", [MOMENTS], [DATETIME], I64, lambda d: d.second),
    ("weekday", [DATES], [DATE], I64, lambda d: d.isoweekday()),
    ("days_between", [DATES, DATES], [DATE, DATE], I64, lambda a, b: (b - a).days),
    (
        "seconds_between",
        [MOMENTS, MOMENTS],
        [DATETIME, DATETIME],
        I64,
        lambda a, b: (
            (b - a) // datetime.timedelta(seconds=1) if b >= a else -((a - b) // datetime.timedelta(seconds=1))
        ),
    ),
    ("to_string", [INTS], [I64], STRING, str),
    ("to_string", [DATES], [DATE], STRING, lambda d: d.isoformat()),
    ("to_int", [INTS.map(str)], [STRING], I64, int),
    ("to_float", [FLOATS.map(repr)], [STRING], F64, float),
    ("to_date", [DATES.map(lambda d: d.isoformat())], [STRING], DATE, datetime.date.fromisoformat),
    ("size", [st.lists(TEXTS, max_size=3)], [ListType(Scalar.STRING)], I64, len),
]


@pytest.mark.parametrize(
    ("name", "values", "types", "result", "oracle"), ORACLES, ids=[f"{o[0]}-{o[2][0]}" for o in ORACLES]
)
@settings(deadline=None, max_examples=30)
@given(data=st.data())
def test_plain_python_agrees(
    name: str,
    values: list[st.SearchStrategy[Any]],
    types: list[ValueType],
    result: ValueType,
    oracle: Callable[..., Any],
    data: st.DataObject,
) -> None:
    rows = data.draw(st.lists(st.tuples(*values), min_size=1, max_size=5))
    columns = {
        ("p", f"c{index}"): pa.array([row[index] for row in rows], arrow_type(type_))
        for index, type_ in enumerate(types)
    }
    args: list[ir.Expr] = [column(f"c{index}", type_) for index, type_ in enumerate(types)]
    found = evaluate(call(FUNCTIONS[name], args, result), columns, {}, NOW, len(rows)).to_pylist()
    assert found == [oracle(*row) for row in rows]
    constants: list[ir.Expr] = [ir.Literal(tuple(v) if isinstance(v, list) else v, t) for v, t in zip(rows[0], types)]
    assert evaluate(call(FUNCTIONS[name], constants, result), {}, {}, NOW, 1).to_pylist() == found[:1]
    mixed = [args[0], *constants[1:]]
    first = {key: values.slice(0, 1) for key, values in columns.items()}
    assert evaluate(call(FUNCTIONS[name], mixed, result), first, {}, NOW, 1).to_pylist() == found[:1]


# --- arithmetic

SIGNS = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "%": lambda a, b: (
        int(math.copysign(abs(a) % abs(b), a)) if abs(a) < 2**50 else (abs(a) % abs(b)) * (-1 if a < 0 else 1)
    ),
}


@settings(deadline=None, max_examples=150)
@given(st.sampled_from(sorted(SIGNS)), INTS, INTS, st.booleans())
def test_integer_arithmetic_is_exact_or_an_error(sign: str, one: int, two: int, unsigned: bool) -> None:
    type_ = U64 if unsigned else I64
    if unsigned:
        one, two = abs(one), abs(two)
    expr = ir.Arithmetic(ir.ArithmeticOp(sign), column("a", type_), column("b", type_), type_, "a ? b")
    columns = {
        ("p", "a"): pa.array([one, None], arrow_type(type_)),
        ("p", "b"): pa.array([two, two], arrow_type(type_)),
    }
    low, high = (0, 2**64 - 1) if unsigned else (-(2**63), 2**63 - 1)
    if sign == "%" and two == 0:
        wanted = None
    else:
        wanted = SIGNS[sign](one, two)
    if wanted is None or not low <= wanted <= high:
        with pytest.raises(BadRequest, match="in `a \\? b`"):
            evaluate(expr, columns, {}, NOW, 2)
    else:
        assert evaluate(expr, columns, {}, NOW, 2).to_pylist() == [wanted, None]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1 + 2 * 3", 7),
        ("(1 + 2) * 3", 9),
        ("7 / 2", 3.5),
        ("-7 % 3", -1),
        ("1 - 2 - 3", -4),
        ("2 * -3", -6),
        ('"a" + "b"', "ab"),
        ("[1, 2] + [3]", [1, 2, 3]),
        ("[1, 2][1]", 2),
        ("[1, 2][-1]", 2),
        ("[1, 2][5]", None),
        ('date("2024-01-31") + months(1)', datetime.date(2024, 2, 29)),
        ('date("2024-03-01") - days(1)', datetime.date(2024, 2, 29)),
        ('date("2024-02-29") + years(1)', datetime.date(2025, 2, 28)),
        ('date("2024-01-01") + hours(36)', datetime.datetime(2024, 1, 2, 12, tzinfo=datetime.UTC)),
        ('datetime("2024-01-01T00:00:00Z") - minutes(1)', datetime.datetime(2023, 12, 31, 23, 59, tzinfo=datetime.UTC)),
        ("case { when 1 > 2 then 1 else 2.5 }", 2.5),
        ('case { when "a" = "b" then 1 / 0 else 2 }', 2.0),
        ('"abc" matches "a.c"', True),
        ('"abc" matches "b"', False),
        ('"abc" ends_with "bc"', True),
        ("1 is null", False),
        ("4 > 3.5", True),
        ("3 in [1, 3]", True),
    ],
)
def test_expressions_without_rows(text: str, value: Any) -> None:
    assert value_of(text) == value


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("1 / 0", "division by zero in `1 / 0`"),
        ("1 % 0", "division by zero in `1 % 0`"),
        ("9223372036854775807 + 1", "a result that does not fit I64 in `9223372036854775807 + 1`"),
        ("1e308 * 10.0", "a result that is not a finite number in `1e308 * 10.0`"),
        ('to_int("x")', '"x", which is not an integer, in `to_int("x")`'),
        ('date("9999-12-31") + days(1)', "a moment outside of the years 1 to 9999 in `date"),
    ],
)
def test_errors_name_the_expression(text: str, words: str) -> None:
    with pytest.raises(BadRequest) as raised:
        value_of(text)
    assert words in str(raised.value)


def test_what_guards_a_part_keeps_it_from_failing() -> None:
    zero = ir.Compare(ir.CompareOp.NE, column("n", I64), ir.Literal(0, I64))
    share = ir.Arithmetic(ir.ArithmeticOp.DIVIDE, ir.Literal(6, I64), column("n", I64), F64, "6 / n")
    large = ir.Compare(ir.CompareOp.GT, share, ir.Literal(2.0, F64))
    columns = {("p", "n"): pa.array([0, 2, 6, None])}
    assert evaluate(ir.And((zero, large)), columns, {}, NOW, 4).to_pylist() == [False, True, False, None]
    assert evaluate(ir.Or((ir.Not(zero), large)), columns, {}, NOW, 4).to_pylist() == [True, True, False, None]
    with pytest.raises(BadRequest):
        evaluate(ir.And((large, zero)), columns, {}, NOW, 4)


# --- aggregates


@settings(deadline=None, max_examples=60)
@given(st.lists(st.tuples(st.integers(0, 3), st.none() | st.integers(-(2**60), 2**60)), max_size=12), st.booleans())
def test_aggregates_of_integers(rows: list[tuple[int, int | None]], distinct: bool) -> None:
    groups = np.array([group for group, _ in rows], dtype=np.int64)
    values = pa.array([value for _, value in rows], pa.int64())

    def made(function: ir.AggregateFunction, type_: pa.DataType) -> list[Any]:
        return aggregate(
            ir.Aggregate(function, column("n", I64), distinct, "f(n)"), values, groups, 4, type_
        ).to_pylist()

    present = [[value for group, value in rows if group == wanted and value is not None] for wanted in range(4)]
    if distinct:
        present = [list(dict.fromkeys(each)) for each in present]
    function = ir.AggregateFunction
    assert made(function.COUNT, pa.int64()) == [len(each) for each in present]
    assert made(function.COLLECT, pa.list_(pa.int64())) == present
    assert made(function.MIN, pa.int64()) == [min(each, default=None) for each in present]
    assert made(function.MAX, pa.int64()) == [max(each, default=None) for each in present]
    sums = [sum(each) if each else None for each in present]
    if all(total is None or abs(total) < 2**63 for total in sums):
        assert made(function.SUM, pa.int64()) == sums
    assert made(function.AVG, pa.float64()) == [float(Fraction(sum(e), len(e))) if e else None for e in present]
    medians = [float(statistics.median(map(Fraction, each))) if each else None for each in present]
    assert made(function.MEDIAN, pa.float64()) == medians
    unsigned = pa.array([None if value is None else value + 2**63 for _, value in rows], pa.uint64())
    mean = ir.Aggregate(function.AVG, column("n", U64), distinct, "f(n)")
    exact = [float(Fraction(sum(e), len(e)) + 2**63) if e else None for e in present]
    assert aggregate(mean, unsigned, groups, 4, pa.float64()).to_pylist() == exact
    deviations = made(function.STDDEV, pa.float64())
    for found, each in zip(deviations, present, strict=True):
        if len(each) < 2:
            assert found is None
        else:
            assert found == pytest.approx(statistics.stdev(each), rel=1e-9, abs=1e-6)


def test_a_mean_of_many_small_integers() -> None:
    values = pa.array(np.full(2**22 + 3, 2**31 - 1, dtype=np.int32))
    groups = np.zeros(len(values), dtype=np.int64)
    wanted = ir.Aggregate(ir.AggregateFunction.AVG, column("n", I64), False, "avg(n)")
    assert aggregate(wanted, values, groups, 1, pa.float64()).to_pylist() == [2.0**31 - 1]
