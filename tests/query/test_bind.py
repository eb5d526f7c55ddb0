"""Parameter values: what JSON and Python give, and what a query runs with."""

from __future__ import annotations

import datetime
from typing import Any

import pytest

from omnigraph.errors import BadRequest
from omnigraph.query import ir
from omnigraph.query.bind import bind_parameters, limit_count
from omnigraph.query.typing import I64
from omnigraph.schema.types import ListType, Scalar, ScalarType, ValueType, VectorType

UTC = datetime.UTC
MOMENT = datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def type_of(text: str) -> ValueType:
    if text.startswith("["):
        return ListType(Scalar(text[1:-1]))
    return VectorType(int(text[7:-1])) if text.startswith("Vector") else ScalarType(Scalar(text))


def bind(type_: str, value: Any) -> Any:
    return bind_parameters([ir.Parameter("x", type_of(type_))], {"x": value})["x"]


@pytest.mark.parametrize(
    ("type_", "given", "bound"),
    [
        ("String", "a", "a"),
        ("String", "", ""),
        ("Bool", True, True),
        ("I32", -5, -5),
        ("I32", 5.0, 5),
        ("I64", 2**63 - 1, 2**63 - 1),
        ("I64", "-9223372036854775808", -(2**63)),
        ("U64", "18446744073709551615", 2**64 - 1),
        ("U32", 2**32 - 1, 2**32 - 1),
        ("F64", 1, 1.0),
        ("F64", 1.5, 1.5),
        ("F32", 0.1, 0.10000000149011612),
        ("Date", "2026-01-02", datetime.date(2026, 1, 2)),
        ("Date", datetime.date(2026, 1, 2), datetime.date(2026, 1, 2)),
        ("DateTime", "2026-01-02T03:04:05Z", MOMENT),
        ("DateTime", "2026-01-02T04:04:05+01:00", MOMENT),
        ("DateTime", MOMENT, MOMENT),
        ("DateTime", MOMENT.astimezone(datetime.timezone(datetime.timedelta(hours=5))), MOMENT),
        ("Blob", "aGk=", b"hi"),
        ("Blob", b"hi", b"hi"),
        ("Blob", "s3://bucket/key", "s3://bucket/key"),
        ("Blob", "file:///tmp/x", "file:///tmp/x"),
        ("[I64]", [1, "2"], (1, 2)),
        ("[String]", [], ()),
        ("[Date]", ["2026-01-02"], (datetime.date(2026, 1, 2),)),
        ("Vector(2)", [1, 0.5], (1.0, 0.5)),
    ],
)
def test_values_take_the_declared_type(type_: str, given: Any, bound: Any) -> None:
    found = bind(type_, given)
    assert found == bound
    assert type(found) is type(bound)


def test_array_objects_are_lists() -> None:
    import numpy as np

    assert bind("Vector(3)", np.array([1, 2, 3], dtype=np.float32)) == (1.0, 2.0, 3.0)
    assert bind("[I32]", np.array([1, 2])) == (1, 2)
    assert bind("I32", np.int64(3)) == 3
    assert bind("F64", np.float32(0.5)) == 0.5


@pytest.mark.parametrize(
    ("type_", "given", "message"),
    [
        ("String", 3, "expected text, found the number 3"),
        ("String", "\ud800", "the text holds half of a surrogate pair, which is no character"),
        ("Bool", 1, "expected true or false, found the number 1"),
        ("Bool", "true", 'expected true or false, found the text "true"'),
        ("I32", True, "expected a whole number, found true"),
        ("I32", "5", 'expected a whole number, found the text "5"'),
        ("I32", 1.5, "expected a whole number, found the number 1.5"),
        ("I32", 2**31, "2147483648 is outside of -2147483648 to 2147483647"),
        ("U32", -1, "-1 is outside of 0 to 4294967295"),
        ("U64", "-1", "-1 is outside of 0 to 18446744073709551615"),
        ("I64", "1e3", 'the text "1e3" is not a whole number'),
        ("I64", "٣", 'the text "٣" is not a whole number'),
        ("I64", "9" * 30, f'the text "{"9" * 30}" is not a whole number'),
        ("I64", float("nan"), "expected a whole number, found the number nan"),
        ("F64", float("nan"), "NaN and infinity are not allowed"),
        ("F64", float("inf"), "NaN and infinity are not allowed"),
        ("F64", "1.5", 'expected a number, found the text "1.5"'),
        ("F64", 10**400, "a number is too large"),
        ("F32", 1e39, "the number 1e+39 is too large"),
        ("Date", "2026-02-30", '"2026-02-30" is not a Date: there is no such day'),
        ("Date", MOMENT, 'expected ISO text such as "2026-01-02", found a datetime'),
        ("Date", 3, 'expected ISO text such as "2026-01-02", found the number 3'),
        ("DateTime", datetime.datetime(2026, 1, 2), "has no time zone: nobody could say which instant it is"),
        ("DateTime", "2026-01-02", '"2026-01-02" is not a DateTime'),
        ("DateTime", 3, 'expected ISO text such as "2026-01-02T03:04:05Z", found the number 3'),
        ("Blob", "no base64!", "a blob is given as base64 text or as a URI such as s3://bucket/key"),
        ("Blob", 3, "expected base64 or URI text, found the number 3"),
        ("[I32]", 3, "expected a list, found the number 3"),
        ("[I32]", "12", 'expected a list, found the text "12"'),
        ("[I32]", [1, None], "item 1 is null"),
        ("[I32]", [1, "a"], 'item 1: expected a whole number, found the text "a"'),
        ("[I32]", [[1]], "item 0: expected a whole number, found a list"),
        ("Vector(3)", [1, 2], "expected 3 numbers, found 2"),
        ("Vector(2)", [1, float("nan")], "item 1: NaN and infinity are not allowed"),
        ("Vector(2)", {"a": 1}, "expected 2 numbers, found an object"),
    ],
)
def test_ill_typed_values_are_refused_by_name(type_: str, given: Any, message: str) -> None:
    with pytest.raises(BadRequest) as raised:
        bind(type_, given)
    assert raised.value.message.startswith(f"parameter `$x` must be {type_}: ")
    assert message in raised.value.message
    assert raised.value.details == {"parameter": "x", "expected": type_}


def test_a_missing_parameter_is_named_with_its_type() -> None:
    with pytest.raises(BadRequest) as raised:
        bind_parameters([ir.Parameter("x", I64)], {})
    assert raised.value.message == "parameter `$x` is missing; it needs a value of type I64"


def test_a_required_parameter_cannot_be_null() -> None:
    with pytest.raises(BadRequest) as raised:
        bind_parameters([ir.Parameter("x", I64)], {"x": None})
    assert raised.value.message == "parameter `$x` is null; it needs a value of type I64"


def test_an_unknown_parameter_is_named_with_a_suggestion() -> None:
    parameters = [ir.Parameter("name", I64), ir.Parameter("other", I64)]
    with pytest.raises(BadRequest) as raised:
        bind_parameters(parameters, {"nam": 3})
    assert raised.value.message == "unknown parameter `$nam`; did you mean `$name`?"
    with pytest.raises(BadRequest) as raised:
        bind_parameters(parameters, {"zzz": 3})
    assert raised.value.message == "unknown parameter `$zzz`; the query has `$name`, `$other`"
    with pytest.raises(BadRequest) as raised:
        bind_parameters([], {"zzz": 3})
    assert raised.value.message == "unknown parameter `$zzz`; the query has no parameters"


def test_an_optional_parameter_may_be_absent_or_null() -> None:
    parameters = [ir.Parameter("x", I64, True), ir.Parameter("y", I64, True)]
    assert bind_parameters(parameters, {"y": None}) == {"x": None, "y": None}


def test_names_may_be_given_with_their_dollar_sign() -> None:
    assert bind_parameters([ir.Parameter("x", I64)], {"$x": 3}) == {"x": 3}


def test_limits() -> None:
    tree = ir.Unit()
    assert limit_count(ir.Limit(tree, ir.Literal(3, I64)), {}) == 3
    assert limit_count(ir.Limit(tree, ir.Param("n", I64)), {"n": 0}) == 0
    with pytest.raises(BadRequest, match=r"parameter `\$n` is a limit and must not be -1"):
        limit_count(ir.Limit(tree, ir.Param("n", I64)), {"n": -1})
