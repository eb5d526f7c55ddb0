"""Ids are canonical text, and wherever one is taken, the value of the key is taken too."""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from omnigraph.errors import BadRequest, QueryTypeError, ValidationFailed
from omnigraph.graph import Graph
from omnigraph.ledger.store import GraphStore, create_store
from omnigraph.read.entities import entity
from omnigraph.schema.compiler.compile import compile_schema
from omnigraph.schema.ids.given_ids import NoId, id_form
from omnigraph.write.load.load import load
from omnigraph.write.mutate.mutate import mutate
from tests.write.graphs import ids, rows

SCHEMA = """
node Day { day: Date @key  n: I32? }
node Moment { at: DateTime @key }
node Number { n: I64 @key }
node Ratio { r: F64 @key }
node Small { r: F32 @key }
node Flag { b: Bool @key }
node Pair { name: String  day: Date  @key(name, day) }
node Free { text: String? }
edge OnDay: Day -> Day
edge AtMoment: Day -> Moment
edge ToNumber: Day -> Number
edge ToRatio: Day -> Ratio
edge ToSmall: Day -> Small
edge ToFlag: Day -> Flag
edge ToPair: Day -> Pair { @key(src, dst) }
edge ToFree: Day -> Free
"""
DAY = datetime.date(2026, 1, 2)
MOMENT = datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=datetime.UTC)

ENDS: list[tuple[str, str, list[Any]]] = [
    ("OnDay", "2026-01-02", ["2026-01-02", DAY]),
    (
        "AtMoment",
        "2026-01-02T03:04:05Z",
        ["2026-01-02T03:04:05Z", "2026-01-02T05:04:05+02:00", "2026-01-02 03:04:05.000Z", MOMENT],
    ),
    ("ToNumber", "7", [7, "7"]),
    ("ToRatio", "1e+10", [1e10, 10_000_000_000, "1e10", "1e+10", "10000000000.0"]),
    ("ToSmall", "0.1", [0.1, "0.1", "0.10"]),
    ("ToFlag", "true", [True, "true"]),
    (
        "ToPair",
        '["a","2026-01-02"]',
        ['["a","2026-01-02"]', '[ "a" , "2026-01-02" ]', '["\\u0061", "2026-01-02"]', ["a", DAY], ["a", "2026-01-02"]],
    ),
    ("ToFree", "7", ["7", 7]),
]


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GraphStore]:
    with create_store(tmp_path_factory.mktemp("ids") / "graph", SCHEMA) as made:
        load(
            made,
            [
                {"type": "Day", "data": {"day": "2026-01-02"}},
                {"type": "Day", "data": {"day": "0001-01-01"}},
                {"type": "Moment", "data": {"at": "2026-01-02T03:04:05Z"}},
                {"type": "Moment", "data": {"at": "2026-01-02T03:04:05.000001Z"}},
                {"type": "Number", "data": {"n": 7}},
                {"type": "Ratio", "data": {"r": 1e10}},
                {"type": "Ratio", "data": {"r": -0.0}},
                {"type": "Small", "data": {"r": 0.1}},
                {"type": "Flag", "data": {"b": True}},
                {"type": "Pair", "data": {"name": "a", "day": "2026-01-02"}},
                {"type": "Free", "data": {"id": "7"}},
            ],
            mode="append",
        )
        yield made


def test_keys_make_canonical_text(graph: GraphStore):
    found = {name: ids(graph, f"node:{name}") for name in ("Day", "Moment", "Ratio", "Small", "Flag", "Pair")}
    assert found == {
        "Day": ["0001-01-01", "2026-01-02"],
        "Moment": ["2026-01-02T03:04:05.000001Z", "2026-01-02T03:04:05Z"],
        "Ratio": ["0", "1e+10"],
        "Small": ["0.1"],
        "Flag": ["true"],
        "Pair": ['["a","2026-01-02"]'],
    }


@pytest.mark.parametrize(("type_", "end", "spellings"), ENDS, ids=[name for name, _, _ in ENDS])
def test_the_end_of_an_edge_is_given_by_the_key(graph: GraphStore, type_: str, end: str, spellings: list[Any]):
    for value in spellings:
        load(graph, [{"src": DAY, "dst": value}], type=type_, mode="overwrite")
        assert [(row["src"], row["dst"]) for row in rows(graph, f"edge:{type_}")] == [("2026-01-02", end)]
        load(graph, [{"edge": type_, "from": "2026-01-02", "to": value}], mode="overwrite")
        assert rows(graph, f"edge:{type_}")[0]["dst"] == end
        if isinstance(value, list):
            value = [str(item) for item in value]
        if isinstance(value, list | str | int | float):
            line = json.dumps({"edge": type_, "from": "2026-01-02", "to": value}) + "\n"
            many = 100 if type_ != "ToPair" else 1  # with a key, edges between two nodes are one
            load(graph, line.encode() * many, mode="overwrite")
            assert [row["dst"] for row in rows(graph, f"edge:{type_}")] == [end] * many
        column = pa.array([value], pa.list_(pa.string())) if isinstance(value, list) else pa.array([value])
        load(graph, pa.table({"from": pa.array([DAY]), "to": column}), type=type_, mode="overwrite")
        assert rows(graph, f"edge:{type_}")[0]["dst"] == end


def test_csv_gives_ends_as_text(graph: GraphStore, tmp_path: Path):
    path = tmp_path / "edges.csv"
    path.write_text("from,to\n2026-01-02,2026-01-02T05:04:05+02:00\n")
    load(graph, path, type="AtMoment", mode="overwrite")
    assert [row["dst"] for row in rows(graph, "edge:AtMoment")] == ["2026-01-02T03:04:05Z"]


@pytest.mark.parametrize(
    ("type_", "declared", "value", "literal", "end"),
    [
        ("OnDay", "Date", "2026-01-02", 'date("2026-01-02")', "2026-01-02"),
        ("AtMoment", "DateTime", MOMENT, 'datetime("2026-01-02T05:04:05+02:00")', "2026-01-02T03:04:05Z"),
        ("AtMoment", "String", "2026-01-02T05:04:05+02:00", '"2026-01-02T05:04:05+02:00"', "2026-01-02T03:04:05Z"),
        ("ToNumber", "I64", 7, "7", "7"),
        ("ToRatio", "F64", 1e10, "1e10", "1e+10"),
        ("ToFlag", "Bool", True, "true", "true"),
        ("ToPair", "String", '[ "a", "2026-01-02"]', '["a", date("2026-01-02")]', '["a","2026-01-02"]'),
    ],
)
def test_mutations_take_the_value_of_the_key(
    graph: GraphStore, type_: str, declared: str, value: Any, literal: str, end: str
):
    for text, params in [(f"$v: {declared}", {"v": value}), ("", {})]:
        given = "$v" if params else literal
        load(graph, [], type=type_, mode="overwrite")
        mutate(graph, f'query q({text}) {{ insert {type_} {{ from: "2026-01-02", to: {given} }} }}', params=params)
        assert [(row["src"], row["dst"]) for row in rows(graph, f"edge:{type_}")] == [("2026-01-02", end)]


@pytest.mark.parametrize(
    ("type_", "value"),
    [
        ("Day", DAY),
        ("Day", "2026-01-02"),
        ("Moment", MOMENT),
        ("Moment", "2026-01-02T05:04:05+02:00"),
        ("Number", 7),
        ("Ratio", 1e10),
        ("Ratio", -0.0),
        ("Small", 0.1),
        ("Flag", True),
        ("Pair", ["a", DAY]),
        ("Pair", ("a", "2026-01-02")),
        ("Pair", '["a" , "2026-01-02"]'),
        ("Free", 7),
    ],
)
def test_an_entity_is_found_by_its_key(graph: GraphStore, type_: str, value: Any):
    assert entity(graph, type_, value) is not None


def test_a_keyed_edge_is_found_by_its_ends(graph: GraphStore):
    load(graph, [{"src": DAY, "dst": ["a", DAY]}], type="ToPair", mode="overwrite")
    for value in (["2026-01-02", ["a", DAY]], [DAY, '["a", "2026-01-02"]']):
        found = entity(graph, "ToPair", value)
        assert found is not None
        assert found["@id"] == '["2026-01-02","[\\"a\\",\\"2026-01-02\\"]"]'


def test_a_given_id_may_be_any_spelling_of_the_key(graph: GraphStore):
    load(graph, [{"id": '["b" , "2026-01-02"]', "name": "b", "day": DAY}], type="Pair", mode="merge")
    assert '["b","2026-01-02"]' in ids(graph, "node:Pair")
    with pytest.raises(ValidationFailed) as failed:
        load(graph, [{"id": '["c","2026-01-03"]', "name": "c", "day": DAY}], type="Pair", mode="merge")
    assert failed.value.counts == {"key_not_canonical": 1}


def test_what_is_no_value_of_the_key_is_refused_or_found_nowhere(graph: GraphStore):
    for value, kind in [
        ("soon", "missing_endpoint"),
        (5, "wrong_type"),
        (True, "wrong_type"),
        ([1], "wrong_type"),
    ]:
        with pytest.raises(ValidationFailed) as failed:
            load(graph, [{"src": DAY, "dst": value}], type="OnDay", mode="append")
        assert failed.value.counts == {kind: 1}, value
    assert entity(graph, "Day", "soon") is None
    with pytest.raises(BadRequest, match="is no id of a Day"):
        entity(graph, "Day", 1.5)
    with pytest.raises(BadRequest, match="the key has 2 parts"):
        entity(graph, "Pair", ["a"])


def test_an_id_form_takes_nothing_else():
    catalog = compile_schema(SCHEMA)
    for name, value in [("Free", 1.5), ("Free", True), ("Number", 1.5), ("Number", True), ("Day", MOMENT), ("Flag", 1)]:
        with pytest.raises(NoId):
            id_form(catalog, catalog.node(name)).take(value)


@pytest.mark.parametrize(
    ("type_", "literal", "text"),
    [
        ("Day", 'date("2026-01-02")', "2026-01-02"),
        ("Moment", 'datetime("2026-01-02T05:04:05+02:00")', "2026-01-02 03:04:05.0Z"),
        ("Number", "7", "7"),
        ("Ratio", "1e10", "10000000000.0"),
        ("Flag", "true", "true"),
        ("Pair", '["a", date("2026-01-02")]', '[ "a", "2026-01-02" ]'),
    ],
)
def test_predicates_take_the_value_of_the_key(graph: GraphStore, type_: str, literal: str, text: str):
    reader = Graph(graph)
    for given in (literal, json.dumps(text)):
        found = reader.query(f"query q() {{ match {{ $n: {type_}  $n.@id = {given} }} return {{ $n.@id as i }} }}")
        assert len(found) == 1, given
    by_parameter = f"query q($i: String) {{ match {{ $n: {type_}  $n.@id = $i }} return {{ $n.@id as i }} }}"
    assert len(reader.query(by_parameter, i=text)) == 1
    edge = {"Day": "OnDay", "Moment": "AtMoment"}.get(type_, f"To{type_}")
    for given, params in ((literal, {}), (json.dumps(text), {}), ("$i", {"i": text})):
        load(graph, [{"src": DAY, "dst": found.rows()[0]["i"]}], type=edge, mode="overwrite")
        declared = "$i: String" if params else ""
        where = f'to = {given} and from = date("2026-01-02")'
        done = mutate(graph, f"query q({declared}) {{ delete {edge} where {where} }}", params=params)
        assert done.affected_edges == 1, given
    if type_ in ("Day", "Number"):
        members = f"query q() {{ match {{ $n: {type_}  $n.@id in [{literal}] }} return {{ $n.@id as i }} }}"
        assert len(reader.query(members)) == 1


@pytest.mark.parametrize(
    ("type_", "declared", "value", "other"),
    [
        ("Day", "Date", DAY, DAY + datetime.timedelta(days=1)),
        ("Moment", "DateTime", MOMENT, MOMENT + datetime.timedelta(seconds=1)),
        ("Number", "I64", 7, 8),
        ("Number", "U64", 7, 2**64 - 1),
        ("Ratio", "F64", 1e10, 0.5),
        ("Flag", "Bool", True, False),
    ],
)
def test_predicates_take_the_value_of_the_key_as_a_parameter_of_its_type(
    graph: GraphStore, type_: str, declared: str, value: object, other: object
):
    reader = Graph(graph)
    one = f"query q($i: {declared}?) {{ match {{ $n: {type_}  $n.@id = $i }} return {{ $n.@id as i }} }}"
    assert [len(reader.query(one, i=given)) for given in (value, other, None)] == [1, 0, 0]
    unlike = f"query q($i: {declared}) {{ match {{ $n: {type_}  $n.@id != $i }} return {{ $n.@id as i }} }}"
    assert len(reader.query(unlike, i=other)) == len(reader.query(unlike, i=value)) + 1
    several = f"query q($i: [{declared}]) {{ match {{ $n: {type_}  $n.@id in $i }} return {{ $n.@id as i }} }}"
    assert len(reader.query(several, i=[other, value])) == 1
    edge = {"Day": "OnDay", "Moment": "AtMoment"}.get(type_, f"To{type_}")
    load(graph, [{"src": DAY, "dst": value}], type=edge, mode="overwrite")
    gone = f"query q($i: {declared}, $d: Date) {{ delete {edge} where to = $i and from = $d }}"
    assert mutate(graph, gone, params={"i": value, "d": DAY}).affected_edges == 1


def test_a_parameter_that_no_key_has_the_type_of_is_refused(graph: GraphStore):
    for type_, declared in (("Day", "I64"), ("Number", "Date"), ("Number", "F64"), ("Pair", "Date"), ("Free", "Date")):
        with pytest.raises(QueryTypeError, match=f"cannot compare String with {declared}"):
            Graph(graph).query(f"query q($i: {declared}) {{ match {{ $n: {type_}  $n.@id = $i }} return {{ $n }} }}")
