"""The meaning of expressions on Arrow, against the same meaning written in plain Python."""

from __future__ import annotations

import datetime
import itertools
import operator
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omnigraph.errors import InternalError
from omnigraph.query import ir
from omnigraph.query.evaluate import evaluate, matching_rows
from omnigraph.query.typing import BOOL, DATE, DATETIME, F64, I64, STRING
from omnigraph.schema.arrow import arrow_type
from omnigraph.schema.types import EnumType, ListType, PropertyType, Scalar, ScalarType

NOW = datetime.datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=datetime.UTC)
OPERATORS = {
    ir.CompareOp.EQ: operator.eq,
    ir.CompareOp.NE: operator.ne,
    ir.CompareOp.LT: operator.lt,
    ir.CompareOp.LE: operator.le,
    ir.CompareOp.GT: operator.gt,
    ir.CompareOp.GE: operator.ge,
}
NUMBERS: dict[Scalar, st.SearchStrategy[Any]] = {
    Scalar.I32: st.integers(-(2**31), 2**31 - 1) | st.sampled_from((-1, 0, 1)),
    Scalar.I64: st.integers(-(2**63), 2**63 - 1) | st.sampled_from((-1, 0, 1, 2**53 + 1, 2**63 - 1, -(2**63))),
    Scalar.U32: st.integers(0, 2**32 - 1) | st.sampled_from((0, 1)),
    Scalar.U64: st.integers(0, 2**64 - 1) | st.sampled_from((0, 1, 2**53 + 1, 2**63, 2**64 - 1)),
    Scalar.F32: st.floats(width=32) | st.sampled_from((0.0, -0.0, 1.0, 0.5)),
    Scalar.F64: st.floats() | st.sampled_from((0.0, 1.0, 0.5, 2.0**53, 2.0**63, -(2.0**63), 2.0**64, float("nan"))),
}


def prop(name: str, type_: PropertyType) -> ir.Prop:
    return ir.Prop("x", name, type_, True)


def run(expr: ir.Expr, columns: dict[str, pa.Array] | None = None, params: Any = None, length: int = 1) -> list[Any]:
    """The values of an expression over columns of the variable `x`."""
    arrays = {("x", name): array for name, array in (columns or {}).items()}
    size = len(next(iter(arrays.values()))) if arrays else length
    result = evaluate(expr, arrays, params or {}, NOW, size)
    assert isinstance(result, pa.Array)
    assert len(result) == size
    return result.to_pylist()


def array(values: list[Any], type_: PropertyType) -> pa.Array:
    return pa.array(values, arrow_type(type_))


def order_key(value: Any) -> tuple[bool, Any]:
    """NaN above everything, equal to itself."""
    return (value != value, 0 if value != value else value)


def compared(op: ir.CompareOp, left: Any, right: Any) -> bool | None:
    if left is None or right is None:
        return None
    return OPERATORS[op](order_key(left), order_key(right))


# --- numbers


@st.composite
def number_columns(draw: st.DrawFn) -> tuple[Scalar, list[Any], Scalar, list[Any]]:
    left, right = draw(st.sampled_from(list(NUMBERS))), draw(st.sampled_from(list(NUMBERS)))
    pairs = draw(st.lists(st.tuples(st.none() | NUMBERS[left], st.none() | NUMBERS[right]), max_size=6))
    shared = [value for value in (0, 1, 2**31 - 1) if draw(st.booleans())]
    pairs += [(value, value) for value in shared if left not in {Scalar.F32} and right not in {Scalar.F32}]
    return left, [pair[0] for pair in pairs], right, [pair[1] for pair in pairs]


@settings(deadline=None)
@given(number_columns())
def test_numbers_of_all_types_compare_by_their_exact_value(
    columns: tuple[Scalar, list[Any], Scalar, list[Any]],
) -> None:
    left_scalar, left, right_scalar, right = columns
    left_type, right_type = ScalarType(left_scalar), ScalarType(right_scalar)
    arrays = {"l": array(left, left_type), "r": array(right, right_type)}
    lefts, rights = arrays["l"].to_pylist(), arrays["r"].to_pylist()
    for op in ir.CompareOp:
        expr = ir.Compare(op, prop("l", left_type), prop("r", right_type))
        expected = [compared(op, one, other) for one, other in zip(lefts, rights, strict=True)]
        assert run(expr, arrays) == expected
        constant = ir.Param("c", right_type, True)
        first_left, first_right = next(zip(lefts, rights, strict=True), (1, 1))
        with_constant = run(ir.Compare(op, prop("l", left_type), constant), arrays, {"c": first_right})
        assert with_constant == [compared(op, one, first_right) for one in lefts]
        mirrored = run(ir.Compare(op, constant, prop("l", left_type)), arrays, {"c": first_right})
        assert mirrored == [compared(op, first_right, one) for one in lefts]
        constants = run(
            ir.Compare(op, ir.Param("d", left_type, True), constant), None, {"c": first_right, "d": first_left}
        )
        assert constants == [compared(op, first_left, first_right)]


@settings(deadline=None)
@given(number_columns())
def test_membership_compares_numbers_exactly(columns: tuple[Scalar, list[Any], Scalar, list[Any]]) -> None:
    scalar, values, item, members = columns
    members = [member for member in members if member is not None and member == member]
    arrays = {"l": array(values, ScalarType(scalar))}
    wanted = array(members, ScalarType(item)).to_pylist()
    expr = ir.In(prop("l", ScalarType(scalar)), ir.Param("m", ListType(item)))
    expected = [None if value is None else value in wanted for value in arrays["l"].to_pylist()]
    assert run(expr, arrays, {"m": tuple(members)}) == expected


def test_a_large_integer_is_not_rounded() -> None:
    arrays = {"i": pa.array([2**53, 2**53 + 1]), "u": pa.array([2**64 - 1, 0], pa.uint64())}
    float_param = ir.Param("f", ScalarType(Scalar.F64))
    equal = ir.Compare(ir.CompareOp.EQ, prop("i", I64), float_param)
    assert run(equal, arrays, {"f": 2.0**53}) == [True, False]
    unsigned = ir.Compare(ir.CompareOp.LT, prop("u", ScalarType(Scalar.U64)), float_param)
    assert run(unsigned, arrays, {"f": 2.0**64}) == [True, True]


# --- three-valued logic


def kleene_and(left: bool | None, right: bool | None) -> bool | None:
    if left is False or right is False:
        return False
    return None if left is None or right is None else True


def test_and_or_not_follow_kleene() -> None:
    values = (True, False, None)
    pairs = list(itertools.product(values, values))
    arrays = {"a": array([a for a, _ in pairs], BOOL), "b": array([b for _, b in pairs], BOOL)}
    a, b = prop("a", BOOL), prop("b", BOOL)
    negated = {True: False, False: True, None: None}
    assert run(ir.And((a, b)), arrays) == [kleene_and(x, y) for x, y in pairs]
    assert run(ir.Or((a, b)), arrays) == [negated[kleene_and(negated[x], negated[y])] for x, y in pairs]
    assert run(ir.Not(a), arrays) == [negated[x] for x, _ in pairs]
    for constant in values:
        param = ir.Param("c", BOOL, True)
        assert run(ir.And((a, param)), arrays, {"c": constant}) == [kleene_and(x, constant) for x, _ in pairs]


def test_a_filter_keeps_what_is_true() -> None:
    arrays = {("x", "a"): array([True, False, None], BOOL)}
    assert matching_rows(prop("a", BOOL), arrays, {}, NOW, 3).to_pylist() == [True, False, False]
    assert matching_rows(ir.Not(prop("a", BOOL)), arrays, {}, NOW, 3).to_pylist() == [False, True, False]
    assert matching_rows(ir.Param("p", BOOL, True), {}, {"p": None}, NOW, 2).to_pylist() == [False, False]


def test_comparing_with_null_is_unknown_and_null_tests_never_are() -> None:
    arrays = {"a": array([1, None], I64)}
    a = prop("a", I64)
    assert run(ir.Compare(ir.CompareOp.NE, a, ir.Literal(2, I64)), arrays) == [True, None]
    assert run(ir.IsNull(a), arrays) == [False, True]
    assert run(ir.IsNull(a, negated=True), arrays) == [True, False]
    assert run(ir.IsNull(ir.Param("p", I64, True)), None, {"p": None}) == [True]
    assert run(ir.IsNull(ir.Literal(None, None))) == [True]
    assert run(ir.Compare(ir.CompareOp.EQ, a, ir.Param("p", I64, True)), arrays, {"p": None}) == [None, None]


# --- text

texts = st.none() | st.text(alphabet="ab%_\\é😀", max_size=4)


@settings(deadline=None)
@given(st.lists(st.tuples(texts, texts), min_size=1, max_size=6))
def test_text_predicates_are_exact(pairs: list[tuple[str | None, str | None]]) -> None:
    arrays = {"a": array([a for a, _ in pairs], STRING), "b": array([b for _, b in pairs], STRING)}
    a, b, constant = prop("a", STRING), prop("b", STRING), ir.Param("c", STRING, True)
    pattern = pairs[0][1]

    def test(function: Any, text: str | None, other: str | None) -> bool | None:
        return None if text is None or other is None else function(text, other)

    for make, function in ((ir.Contains, str.__contains__), (ir.StartsWith, str.startswith)):
        assert run(make(a, b), arrays) == [test(function, x, y) for x, y in pairs]
        assert run(make(a, constant), arrays, {"c": pattern}) == [test(function, x, pattern) for x, _ in pairs]
        assert run(make(constant, b), arrays, {"c": pattern}) == [test(function, pattern, y) for _, y in pairs]
        assert run(make(constant, constant), None, {"c": pattern}) == [test(function, pattern, pattern)]


@settings(deadline=None)
@given(st.lists(st.tuples(texts, texts), min_size=1, max_size=6))
def test_text_compares_by_code_point(pairs: list[tuple[str | None, str | None]]) -> None:
    arrays = {"a": array([a for a, _ in pairs], STRING), "b": array([b for _, b in pairs], STRING)}
    for op in ir.CompareOp:
        expr = ir.Compare(op, prop("a", STRING), prop("b", STRING))
        assert run(expr, arrays) == [None if x is None or y is None else OPERATORS[op](x, y) for x, y in pairs]


def test_enums_compare_with_strings() -> None:
    status = EnumType(("a", "b"))
    arrays = {"s": array(["a", "b", None], status)}
    assert run(ir.Compare(ir.CompareOp.EQ, prop("s", status), ir.Param("p", STRING)), arrays, {"p": "a"}) == [
        True,
        False,
        None,
    ]


def test_other_spellings_of_arrow_types_are_understood() -> None:
    a, literal = prop("a", STRING), ir.Literal("x", STRING)
    equal = ir.Compare(ir.CompareOp.EQ, a, literal)
    chunked = pa.chunked_array([["x"], ["y", None]])
    dictionary = pa.array(["x", "y", None]).dictionary_encode()
    large = pa.array(["x", "y", None], pa.large_utf8())
    for column in (chunked, dictionary, large, pa.chunked_array([], pa.utf8())):
        result = evaluate(equal, {("x", "a"): column}, {}, NOW, len(column)).to_pylist()
        assert result == [True, False, None][: len(column)]
    assert run(ir.In(a, ir.Literal(("y",), ListType(Scalar.STRING))), {"a": large}) == [False, True, None]
    assert run(ir.Contains(a, literal), {"a": large}) == [True, False, None]


# --- lists

items = st.none() | st.integers(0, 3)
lists = st.none() | st.lists(items, max_size=3)


def member(item: Any, values: list[Any] | None) -> bool | None:
    if item is None or values is None:
        return None
    if item in [value for value in values if value is not None]:
        return True
    return None if None in values else False


@settings(deadline=None)
@given(st.lists(st.tuples(items, lists), min_size=1, max_size=6), st.integers(0, 5))
def test_membership(rows: list[tuple[Any, Any]], skipped: int) -> None:
    skipped = min(skipped, len(rows) - 1)
    rows_kept = rows[skipped:]
    number, numbers = ScalarType(Scalar.I32), ListType(Scalar.I32)
    arrays = {
        "i": array([row[0] for row in rows], number)[skipped:],
        "l": array([row[1] for row in rows], numbers)[skipped:],
    }
    i, l = prop("i", number), prop("l", numbers)  # noqa: E741
    constant, constants = ir.Param("c", number, True), ir.Param("d", numbers, True)
    first_item, first_list = rows_kept[0]
    expected = [member(item, values) for item, values in rows_kept]
    assert run(ir.In(i, l), arrays) == run(ir.Contains(l, i), arrays) == expected
    with_item = [member(first_item, values) for _, values in rows_kept]
    assert run(ir.Contains(l, constant), arrays, {"c": first_item}) == with_item
    with_list = [member(item, first_list) for item, _ in rows_kept]
    assert run(ir.In(i, constants), arrays, {"d": first_list}) == with_list
    both = run(ir.In(constant, constants), None, {"c": first_item, "d": first_list})
    assert both == [member(first_item, first_list)]


def test_membership_in_an_empty_list_is_false() -> None:
    arrays = {"i": array([1, None], I64)}
    assert run(ir.In(prop("i", I64), ir.Literal((), ListType(Scalar.I64))), arrays) == [False, None]


def test_membership_of_text_and_dates() -> None:
    day = datetime.date(2026, 1, 2)
    arrays = {"t": array([["a", "b"], [], None], ListType(Scalar.STRING)), "d": array([day, None, day], DATE)}
    assert run(ir.Contains(prop("t", ListType(Scalar.STRING)), ir.Literal("b", STRING)), arrays) == [True, False, None]
    assert run(ir.In(prop("d", DATE), ir.Literal((day,), ListType(Scalar.DATE))), arrays) == [True, None, True]


# --- dates, columns, constants


def test_dates_and_datetimes() -> None:
    days = [datetime.date(2026, 1, 1), datetime.date(2026, 1, 3), None]
    moments = [NOW, NOW - datetime.timedelta(microseconds=1), None]
    arrays = {"d": array(days, DATE), "m": array(moments, DATETIME)}
    later = ir.Compare(ir.CompareOp.GT, prop("d", DATE), ir.Literal(datetime.date(2026, 1, 2), DATE))
    assert run(later, arrays) == [False, True, None]
    assert run(ir.Compare(ir.CompareOp.EQ, prop("m", DATETIME), ir.Now()), arrays) == [True, False, None]
    assert run(ir.Now(), length=2) == [NOW, NOW]
    seconds = pa.array([NOW.replace(microsecond=0)], pa.timestamp("s", tz="UTC"))
    assert run(ir.Compare(ir.CompareOp.LT, prop("m", DATETIME), ir.Now()), {"m": seconds}) == [True]


def test_booleans_are_ordered() -> None:
    arrays = {"b": array([True, False, None], BOOL)}
    assert run(ir.Compare(ir.CompareOp.LT, prop("b", BOOL), ir.Literal(True, BOOL)), arrays) == [False, True, None]


def test_constants_stand_for_every_row() -> None:
    assert run(ir.Literal(3, I64), length=3) == [3, 3, 3]
    assert run(ir.Literal(None, I64), length=2) == [None, None]
    assert run(ir.Literal(("a", "b"), ListType(Scalar.STRING)), length=2) == [["a", "b"]] * 2
    assert run(ir.Param("p", STRING, True), None, {"p": None}, length=1) == [None]


def test_computed_columns_are_found_by_name() -> None:
    expr = ir.Compare(ir.CompareOp.GT, ir.ColumnRef("n", I64), ir.Literal(1, I64))
    assert evaluate(expr, {"n": pa.array([1, 2])}, {}, NOW, 2).to_pylist() == [False, True]


def test_columns_can_come_from_a_function() -> None:
    expr = ir.Compare(ir.CompareOp.EQ, prop("a", I64), ir.ColumnRef("n", I64))
    asked: list[ir.Prop | ir.ColumnRef] = []

    def column(expr: ir.Prop | ir.ColumnRef) -> pa.Array:
        asked.append(expr)
        return pa.array([1, 2])

    assert evaluate(expr, column, {}, NOW, 2).to_pylist() == [True, True]
    assert asked == [prop("a", I64), ir.ColumnRef("n", I64)]


def test_no_rows() -> None:
    text, number, numbers = prop("t", STRING), prop("i", I64), prop("l", ListType(Scalar.I64))
    columns = {
        ("x", "t"): pa.array([], pa.utf8()),
        ("x", "i"): pa.array([], pa.int64()),
        ("x", "l"): pa.array([], pa.list_(pa.int64())),
    }
    params = {"s": "a", "f": 1.5, "n": None, "m": (1, 2)}
    string, real, nothing = ir.Param("s", STRING), ir.Param("f", F64), ir.Param("n", F64, True)
    expressions: list[ir.Expr] = [
        ir.Compare(ir.CompareOp.LT, number, number),
        ir.Compare(ir.CompareOp.LT, number, real),
        ir.Compare(ir.CompareOp.EQ, nothing, number),
        ir.Contains(text, string),
        ir.Contains(string, text),
        ir.StartsWith(text, text),
        ir.In(number, numbers),
        ir.In(number, ir.Param("m", ListType(Scalar.I64))),
        ir.In(number, ir.Param("m", ListType(Scalar.F64))),
        ir.Contains(numbers, ir.Literal(1, I64)),
        ir.IsNull(text),
        ir.And((ir.IsNull(text), ir.Literal(True, BOOL))),
        ir.Compare(ir.CompareOp.EQ, real, real),
        ir.Now(),
        ir.Literal(None, STRING),
    ]
    for expr in expressions:
        assert evaluate(expr, columns, params, NOW, 0).to_pylist() == []


def test_what_operators_compute_is_no_row_value() -> None:
    with pytest.raises(InternalError, match="Bm25 is computed by an operator"):
        run(ir.Bm25("x", "node:T", "p", ir.Literal("q", STRING)))
