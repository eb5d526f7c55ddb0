"""Row identity: the id of a keyed row is the canonical text of its key."""

from __future__ import annotations

import json
import struct
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omnigraph.errors import BadRequest
from omnigraph.schema.catalog_json import catalog_from_json, catalog_to_json
from omnigraph.schema.compiler.compile import compile_schema
from omnigraph.schema.ids.identity import canonical_scalar, edge_id, key_array, node_id
from omnigraph.schema.types import EnumType, ListType, Scalar, ScalarType, VectorType
from tests.schema.sample import edge, node

TYPE = {scalar: ScalarType(scalar) for scalar in Scalar}


@pytest.mark.parametrize(
    ("scalar", "value", "text"),
    [
        (Scalar.STRING, "Ada", "Ada"),
        (Scalar.STRING, "", ""),
        (Scalar.STRING, 'a"b', 'a"b'),
        (Scalar.BOOL, True, "true"),
        (Scalar.BOOL, False, "false"),
        (Scalar.I32, -7, "-7"),
        (Scalar.I64, -(2**63), "-9223372036854775808"),
        (Scalar.U64, 2**64 - 1, "18446744073709551615"),
        (Scalar.DATE, date(1970, 1, 2), "1970-01-02"),
        (Scalar.DATE, date(1, 1, 1), "0001-01-01"),
        (Scalar.DATE, 20_000, "2024-10-04"),
        (Scalar.DATETIME, datetime(1970, 1, 1, 0, 0, 1, 5, UTC), "1970-01-01T00:00:01.000005Z"),
        (Scalar.DATETIME, datetime(1970, 1, 1, 2, tzinfo=timezone(timedelta(hours=2))), "1970-01-01T00:00:00Z"),
        (Scalar.DATETIME, datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC), "1969-12-31T23:59:59Z"),
        (Scalar.F64, 1.0, "1"),
        (Scalar.F64, 3, "3"),
        (Scalar.F64, -0.0, "0"),
        (Scalar.F64, 0.1, "0.1"),
        (Scalar.F64, -1234.5, "-1234.5"),
        (Scalar.F64, 1e-6, "0.000001"),
        (Scalar.F64, 1e-7, "1e-7"),
        (Scalar.F64, 1234567890.0, "1234567890"),
        (Scalar.F64, 1e10, "1e+10"),
        (Scalar.F64, 1.5e300, "1.5e+300"),
        (Scalar.F64, 5e-324, "5e-324"),
        (Scalar.F32, 0.1, "0.1"),
        (Scalar.F32, 16777216.0, "16777216"),
        (Scalar.F32, 3.4028234663852886e38, "3.4028235e+38"),
        (Scalar.F32, 1e-45, "1e-45"),
    ],
)
def test_the_canonical_text_of_a_scalar(scalar: Scalar, value: Any, text: str) -> None:
    assert canonical_scalar(value, TYPE[scalar]) == text


def test_an_enum_is_its_value() -> None:
    assert canonical_scalar("on", EnumType(("off", "on"))) == "on"
    with pytest.raises(BadRequest, match="is not a `enum"):
        canonical_scalar("dim", EnumType(("off", "on")))


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
@pytest.mark.parametrize("scalar", [Scalar.F32, Scalar.F64])
def test_numbers_that_are_not_finite_are_refused(scalar: Scalar, value: float) -> None:
    with pytest.raises(BadRequest, match="not a finite number and cannot be part of a key"):
        canonical_scalar(value, TYPE[scalar])


@pytest.mark.parametrize(
    ("scalar", "value"),
    [
        (Scalar.STRING, 1),
        (Scalar.BOOL, 1),
        (Scalar.I32, 2**31),
        (Scalar.I32, True),
        (Scalar.U32, -1),
        (Scalar.I64, 1.0),
        (Scalar.F64, "1"),
        (Scalar.F64, True),
        (Scalar.DATE, datetime(2026, 1, 1, tzinfo=UTC)),
        (Scalar.DATE, "2026-01-01"),
        (Scalar.DATETIME, date(2026, 1, 1)),
    ],
)
def test_values_of_another_type_are_refused(scalar: Scalar, value: Any) -> None:
    with pytest.raises(BadRequest, match=f"is not a `{scalar.value}`"):
        canonical_scalar(value, TYPE[scalar])


def test_types_from_before_ids_had_iso_dates_keep_their_numbers() -> None:
    assert canonical_scalar(date(1969, 12, 31), TYPE[Scalar.DATE], iso_dates=False) == "-1"
    moment = datetime(1970, 1, 1, 0, 0, 1, 5, UTC)
    assert canonical_scalar(moment, TYPE[Scalar.DATETIME], iso_dates=False) == "1000005"
    fresh = compile_schema("node A { k: Date @key }\nnode B { k: I32 @key }")
    stored = catalog_to_json(fresh)
    assert catalog_from_json(stored) == fresh
    older = catalog_from_json(stored.replace(b'"iso_dates":true,', b""))
    assert node_id(older.node("A"), {"k": date(1970, 1, 2)}) == "1"
    assert catalog_from_json(catalog_to_json(older)) == older
    next_one = compile_schema("node A { k: Date @key  n: I32? }\nnode C { k: Date @key }", older)
    assert [node_id(t, {"k": date(1970, 1, 2)}) for t in next_one.nodes] == ["1", "1970-01-02"]


def test_what_a_float_cannot_hold_is_refused() -> None:
    with pytest.raises(BadRequest, match="too large for 32 bits"):
        canonical_scalar(1e39, TYPE[Scalar.F32])
    with pytest.raises(BadRequest, match="no `F64`: it is too large"):
        canonical_scalar(10**400, TYPE[Scalar.F64])


def test_a_time_without_a_zone_is_refused() -> None:
    with pytest.raises(BadRequest, match="has no time zone"):
        canonical_scalar(datetime(2026, 1, 1), TYPE[Scalar.DATETIME])


@pytest.mark.parametrize("type_", [TYPE[Scalar.BLOB], VectorType(2), ListType(Scalar.I32)])
def test_blobs_vectors_and_lists_have_no_identity(type_: Any) -> None:
    with pytest.raises(BadRequest, match="cannot be part of a key"):
        canonical_scalar([1], type_)


# --- ids ---------------------------------------------------------------------------------------------------------


def test_one_key_property_is_its_plain_text() -> None:
    assert node_id(node("node A { k: I64 @key }", "A"), {"k": 42}) == "42"


def test_several_key_properties_are_a_compact_json_array_in_the_order_of_ids() -> None:
    a = node("node A { s: String n: I32 d: Date @key(d, n, s) }", "A")
    found = node_id(a, {"n": 7, "d": date(1970, 1, 3), "s": 'ä "q" \\ \n \x01 \x7f /'})
    assert found == '["ä \\"q\\" \\\\ \\n \\u0001 \x7f /","7","1970-01-03"]'
    assert json.loads(found) == ['ä "q" \\ \n \x01 \x7f /', "7", "1970-01-03"]


def test_equal_keys_are_one_node_and_different_keys_are_not() -> None:
    a = node("node A { a: String b: String @key(a, b) }", "A")
    assert node_id(a, {"a": "x", "b": "y"}) == node_id(a, {"b": "y", "a": "x"})
    assert node_id(a, {"a": 'x","y', "b": "z"}) != node_id(a, {"a": "x", "b": 'y","z'})


def test_a_rename_does_not_change_an_id() -> None:
    from omnigraph.schema.compiler.compile import compile_schema

    old = compile_schema("node A { b: String a: String @key(a, b) }")
    new = node('node A { z: String @rename_from("b") a: String @key(a, z) }', "A", old)
    assert node_id(old.nodes[0], {"b": "1", "a": "2"}) == node_id(new, {"z": "1", "a": "2"}) == '["1","2"]'


def test_a_keyed_edge_is_an_array_of_its_ends_and_properties() -> None:
    e = edge("node A { } edge E: A -> A { p: Bool @key(p, dst, src) }", "E")
    assert edge_id(e, "s", "d", {"p": True}) == '["s","d","true"]'


def test_types_without_a_key_have_no_derived_id() -> None:
    assert node_id(node("node A { a: I32 }", "A"), {"a": 1}) is None
    assert edge_id(edge("node A { } edge E: A -> A", "E"), "s", "d", {}) is None


def test_a_missing_key_value_is_refused_by_name() -> None:
    with pytest.raises(BadRequest, match="the key property `k` of `A` has no value"):
        node_id(node("node A { k: I64 @key }", "A"), {})
    with pytest.raises(BadRequest, match="the key property `k` of `A`: 'x' is not a `I64`"):
        node_id(node("node A { k: I64 @key }", "A"), {"k": "x"})


# --- agreement with columns --------------------------------------------------------------------------------------


@settings(max_examples=300, deadline=None)
@given(st.floats(allow_nan=False, allow_infinity=False))
def test_floats_are_what_arrow_prints(value: float) -> None:
    printed = pc.cast(pa.array([value + 0.0]), pa.utf8())[0].as_py()
    assert canonical_scalar(value, TYPE[Scalar.F64]) == printed
    assert float(printed) == value


@settings(max_examples=300, deadline=None)
@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_32_bit_floats_are_what_arrow_prints(value: float) -> None:
    printed = pc.cast(pa.array([value + 0.0], pa.float32()), pa.utf8())[0].as_py()
    assert canonical_scalar(value, TYPE[Scalar.F32]) == printed
    assert struct.pack("<f", float(printed)) == struct.pack("<f", value + 0.0)


@given(st.lists(st.text(st.characters(exclude_categories=("Cs",))), min_size=2, max_size=4))
def test_arrays_of_texts_can_be_told_apart(texts: list[str]) -> None:
    assert json.loads(key_array(texts)) == texts
    assert key_array(texts).encode("utf-8").decode("utf-8") == key_array(texts)
