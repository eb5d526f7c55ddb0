"""Ids of whole columns agree with the reference, one row at a time."""

from __future__ import annotations

import datetime

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from omnigraph.schema.catalog import EdgeType
from omnigraph.schema.compiler.compile import compile_schema
from omnigraph.schema.ids.identity import edge_id, node_id
from omnigraph.write.rows.row_columns import working_schema
from omnigraph.write.rows.row_ids import derived_ids, with_ids
from omnigraph.write.rows.rows import Rows
from omnigraph.write.rows.ulids import new_ulids
from omnigraph.write.validate.collector import ViolationCollector

CATALOG = compile_schema(
    "\n".join(
        f"node N{scalar} {{ k: {scalar} @key }}"
        for scalar in ("String", "Bool", "I32", "I64", "U32", "U64", "F32", "F64", "Date", "DateTime")
    )
    + """
    node Pair { a: String  b: F64  c: Date  @key(a, b, c) }
    node Plain { t: String }
    edge Link: Pair -> Pair { n: I64?  w: String  @key(src, dst, w) }
    """
)

_texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=5) | st.sampled_from(['"', "\\", "\n", "a,b", "[]"])
_values = {
    "NString": _texts,
    "NBool": st.booleans(),
    "NI32": st.integers(-(2**31), 2**31 - 1),
    "NI64": st.integers(-(2**63), 2**63 - 1),
    "NU32": st.integers(0, 2**32 - 1),
    "NU64": st.integers(0, 2**64 - 1),
    "NF32": st.floats(width=32, allow_nan=False, allow_infinity=False),
    "NF64": st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from([0.0, -0.0, 1e10, 1e-6, 1e-7, 123456789.5]),
    "NDate": st.dates(),
    "NDateTime": st.datetimes(timezones=st.just(datetime.UTC)),
}


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_the_id_of_a_keyed_node_is_the_canonical_text_of_its_key(data: st.DataObject):
    for name, values in _values.items():
        type_ = CATALOG.node(name)
        given_values = data.draw(st.lists(values, min_size=1, max_size=5))
        table = pa.table(
            {"id": pa.nulls(len(given_values), pa.string()), "k": given_values}, schema=working_schema(type_)
        )
        assert derived_ids(type_, table).to_pylist() == [node_id(type_, {"k": value}) for value in given_values]


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(_texts, _values["NF64"], st.dates()), min_size=1, max_size=4))
def test_several_key_properties_make_a_json_array(rows: list[tuple[str, float, datetime.date]]):
    type_ = CATALOG.node("Pair")
    values = [dict(zip("abc", row)) for row in rows]
    table = pa.Table.from_pylist([{"id": None, **row} for row in values], schema=working_schema(type_))
    assert derived_ids(type_, table).to_pylist() == [node_id(type_, row) for row in values]


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(_texts, _texts, _texts), min_size=1, max_size=4))
def test_a_keyed_edge_is_identified_by_its_tuple(rows: list[tuple[str, str, str]]):
    type_ = CATALOG.edge("Link")
    assert isinstance(type_, EdgeType)
    values = [{"id": None, "src": src, "dst": dst, "n": None, "w": w} for src, dst, w in rows]
    table = pa.Table.from_pylist(values, schema=working_schema(type_))
    expected = [edge_id(type_, row["src"], row["dst"], row) for row in values]
    assert derived_ids(type_, table).to_pylist() == expected


def test_a_given_id_must_be_what_the_key_makes():
    type_ = CATALOG.node("NI32")
    violations = ViolationCollector()
    table = pa.table({"id": ["1", "zwei", None], "k": [1, 2, 3]}, schema=working_schema(type_))
    rows = with_ids(type_, Rows(type_.table_key, table), violations)
    assert rows.table["id"].to_pylist() == ["1", "2", "3"]
    assert violations.counts == {"key_not_canonical": 1}
    assert '"zwei"' in violations.violations[0].message


def test_a_key_that_is_missing_or_not_finite_makes_no_id():
    type_ = CATALOG.node("NF64")
    table = pa.table({"id": [None] * 3, "k": [None, float("nan"), float("inf")]}, schema=working_schema(type_))
    assert derived_ids(type_, table).to_pylist() == [None, None, None]


def test_a_type_without_a_key_takes_the_given_id_or_a_new_one():
    type_ = CATALOG.node("Plain")
    table = pa.table({"id": ["mine", None, None], "t": ["a", "b", "c"]}, schema=working_schema(type_))
    found = with_ids(type_, Rows(type_.table_key, table), ViolationCollector()).table["id"].to_pylist()
    assert found[0] == "mine"
    assert len(set(found)) == 3
    assert all(len(new) == 26 for new in found[1:])


def test_new_ids_are_ulids_in_order_that_never_repeat():
    from ulid import ULID

    before = datetime.datetime.now(datetime.UTC) - datetime.timedelta(seconds=1)
    made = [*new_ulids(1000).to_pylist(), *new_ulids(1000).to_pylist()]
    assert len(set(made)) == 2000
    assert made[:1000] == sorted(made[:1000])
    assert ULID.from_str(made[0]).datetime >= before
    assert new_ulids(0).to_pylist() == []
