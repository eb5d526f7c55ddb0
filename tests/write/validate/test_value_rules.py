"""Rules that one row can break on its own."""

from __future__ import annotations

import math

import pyarrow as pa
import pytest

from omnigraph.errors import KeyConflict, ValidationFailed, Violation
from omnigraph.schema.compiler.compile import compile_schema
from omnigraph.write.rows.row_columns import working_schema
from omnigraph.write.rows.rows import Rows
from omnigraph.write.validate.collector import ViolationCollector
from omnigraph.write.validate.value_rules import check_values

CATALOG = compile_schema(
    """
    node T {
        key: String @key
        need: I32
        kind: enum(red, green)?
        small: I32?
        big: U64?
        real: F64?
        code: String?
        vector: Vector(2)?
        list: [F32]?
        @range(small, -5..5)
        @range(big, 1..)
        @range(real, ..1.5)
        @check(code, "[a-z]+[0-9]?")
    }
    """
)
T = CATALOG.node("T")


def found(*rows: dict[str, object]) -> list[tuple[str, str | None, int]]:
    """Kind, property and record of each violation."""
    violations = ViolationCollector()
    table = pa.Table.from_pylist([{"key": "k", "need": 1, **row} for row in rows], schema=working_schema(T))
    check_values(T, Rows("node:T", table, "f", pa.array(range(1, len(rows) + 1))), violations)
    return [(v.kind, v.property, v.record or 0) for v in violations.violations]


def test_a_row_that_keeps_every_rule_is_fine():
    good = {"kind": "red", "small": 5, "big": 1, "real": 1.5, "code": "ab1", "vector": [1.0, 2.0], "list": []}
    assert found(good, {}) == []


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ({"need": None}, ("missing_value", "need")),
        ({"key": None}, ("missing_key", "key")),
        ({"kind": "blue"}, ("enum", "kind")),
        ({"small": 6}, ("range", "small")),
        ({"small": -6}, ("range", "small")),
        ({"big": 0}, ("range", "big")),
        ({"real": 1.6}, ("range", "real")),
        ({"real": math.nan}, ("not_finite", "real")),
        ({"code": "a1b"}, ("check", "code")),
        ({"code": "xa1 "}, ("check", "code")),
        ({"code": "a\n"}, ("check", "code")),
        ({"vector": [1.0, math.inf]}, ("not_finite", "vector")),
        ({"vector": [1.0, None]}, ("wrong_type", "vector")),
        ({"list": [math.nan]}, ("not_finite", "list")),
        ({"list": [None]}, ("wrong_type", "list")),
    ],
)
def test_a_broken_rule_is_found_with_its_place(row: dict[str, object], expected: tuple[str, str]):
    assert found({}, row, {}) == [(*expected, 2)]


def test_the_bounds_of_a_range_belong_to_it_whatever_the_type():
    assert found({"small": -5}, {"small": 5}, {"big": 2**64 - 1}) == []


def test_a_message_names_the_value_and_what_was_expected():
    violations = ViolationCollector()
    table = pa.Table.from_pylist([{"key": "k", "need": 1, "kind": "gren"}], schema=working_schema(T))
    check_values(T, Rows("node:T", table), violations)
    assert violations.violations[0].message == '`kind` must be one of green, red, not "gren"; did you mean `green`?'


def test_a_value_that_a_partial_row_does_not_mention_may_be_missing():
    table = pa.Table.from_pylist([{"key": "k"}, {"key": "l"}], schema=working_schema(T))
    rows = Rows("node:T", table, mentioned={"need": pa.array([False, True])})
    violations = ViolationCollector()
    check_values(T, rows, violations, partial=True)
    assert [(v.kind, v.row_id) for v in violations.violations] == [("missing_value", None)]
    assert violations.counts == {"missing_value": 1}


def test_a_cell_that_the_decoder_reported_is_not_reported_again():
    table = pa.Table.from_pylist([{"key": "k"}], schema=working_schema(T))
    violations = ViolationCollector()
    check_values(T, Rows("node:T", table, failed={"need": frozenset({0})}), violations)
    assert not violations


def _violation(record: int, kind: str = "range", source: str = "a") -> Violation:
    return Violation(kind, "node:T", "m", source=source, record=record)


def test_all_are_counted_and_the_first_ten_of_each_kind_are_kept_in_input_order():
    violations = ViolationCollector()
    for record in range(30, 0, -1):
        violations.add(_violation(record))
    violations.add(_violation(5, "enum"))
    assert violations.counts == {"enum": 1, "range": 30}
    assert [v.record for v in violations.violations] == [5, *range(1, 11)]


def test_which_are_kept_does_not_depend_on_who_found_them_first():
    left, right, all_at_once = ViolationCollector(), ViolationCollector(), ViolationCollector()
    for record in range(1, 25):
        (left if record % 3 else right).add(_violation(record))
        all_at_once.add(_violation(record))
    one, other = ViolationCollector(), ViolationCollector()
    one.merge(left), one.merge(right)
    other.merge(right), other.merge(left)
    assert one.violations == other.violations == all_at_once.violations
    assert one.counts == all_at_once.counts


def test_the_error_tells_counts_and_places():
    violations = ViolationCollector()
    violations.add(_violation(3))
    with pytest.raises(ValidationFailed, match="1 violation \\(1 range\\)\n  a, record 3: node:T: m") as failed:
        violations.raise_if_any("the load")
    assert failed.value.counts == {"range": 1}
    ViolationCollector().raise_if_any("nothing")


def test_ids_that_exist_are_a_key_conflict_unless_something_else_is_wrong():
    violations = ViolationCollector()
    violations.add(_violation(1, "existing_id"))
    assert isinstance(violations.error("the load"), KeyConflict)
    violations.add(_violation(1, "range"))
    assert isinstance(violations.error("the load"), ValidationFailed)
