"""What a schema means: every rule of the schema language that a valid text can show."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor

import pytest

from omnigraph.schema.catalog import Annotation, Cardinality, Check, EmbedSpec, Property, Range
from omnigraph.schema.compile import check_schema, compile_schema
from omnigraph.schema.types import EnumType, ListType, PropertyType, Scalar, ScalarType, VectorType
from tests.schema.sample import SAMPLE, edge, node

STRING = ScalarType(Scalar.STRING)


def test_the_sample_of_the_documentation() -> None:
    catalog = compile_schema(SAMPLE)
    person = catalog.node("Person")
    assert person is not None
    assert [p.name for p in person.properties] == ["name", "slug", "age", "status", "bio", "embedding"]
    assert person.key == ("slug",)
    assert person.uniques == (("name", "status"),)
    assert person.ranges == (Range("age", 0, 150),)
    assert person.checks == (Check("slug", "[a-z0-9-]+"),)
    assert person.implements == ("Named",)
    assert person.by_name["embedding"].embed == EmbedSpec("bio")
    works_at = catalog.edge("worksat")
    assert works_at is not None
    assert (works_at.source, works_at.target, works_at.card) == ("Person", "Company", Cardinality(0, 1))
    assert works_at.uniques == (("src", "dst"),)
    assert [interface.name for interface in catalog.interfaces] == ["Named"]


# --- types -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        *((scalar.value, ScalarType(scalar)) for scalar in Scalar),
        ("Vector(1)", VectorType(1)),
        ("Vector(65536)", VectorType(65536)),
        *((f"[{scalar.value}]", ListType(scalar)) for scalar in Scalar if scalar is not Scalar.BLOB),
    ],
)
@pytest.mark.parametrize("nullable", [False, True])
def test_every_type_can_be_written(written: str, expected: PropertyType, nullable: bool) -> None:
    (found,) = node(f"node A {{ a: {written}{'?' if nullable else ''} }}", "A").properties
    assert (found.type, found.nullable) == (expected, nullable)


def test_the_values_of_an_enum_are_sorted_and_each_is_there_once() -> None:
    (found,) = node("node A { a: enum(b, a-1, 2, b, _c) }", "A").properties
    assert found.type == EnumType(("2", "_c", "a-1", "b"))


# --- names -------------------------------------------------------------------------------------------------------


def test_edge_types_are_found_whatever_their_case() -> None:
    catalog = compile_schema("node A { } edge WorksAt: A -> A")
    assert catalog.edge("WORKSAT") == catalog.edge("worksAt") == catalog.edges[0]
    assert catalog.node("a") is None


def test_node_types_may_differ_by_case() -> None:
    assert [n.name for n in compile_schema("node Ab { } node AB { }").nodes] == ["AB", "Ab"]


def test_names_that_only_look_reserved_are_free() -> None:
    names = ["_id", "ids", "source", "_", "_row", "rowid"]
    found = node(f"node A {{ {' '.join(f'{name}: I32' for name in names)} }}", "A")
    assert [p.name for p in found.properties] == names


# --- interfaces --------------------------------------------------------------------------------------------------


def test_the_properties_of_interfaces_are_expanded_in_the_order_they_are_named() -> None:
    source = "node A implements J, I { own: I32 } interface I { i: I32? @index } interface J { j: String @unique }"
    found = node(source, "A")
    assert [p.name for p in found.properties] == ["j", "i", "own"]
    assert found.by_name["i"].nullable
    assert found.by_name["i"].indexed
    assert found.uniques == (("j",),)


def test_a_node_may_restate_a_property_with_the_same_type() -> None:
    source = "interface I { a: I32 @index @note(1) b: I32 } node A implements I { b: I32 a: I32 @default(3) @note(2) }"
    a = node(source, "A").by_name["a"]
    assert (a.indexed, a.default) == (True, 3)
    assert a.annotations == (Annotation("note", (2,)),)


def test_two_interfaces_may_share_a_property_of_one_type() -> None:
    source = "interface I { a: I32 } interface J { a: I32 } node A implements I, J { }"
    assert [p.name for p in node(source, "A").properties] == ["a"]


def test_an_interface_can_give_the_key_and_the_source_of_an_embedding() -> None:
    source = 'interface I { k: String @key t: String } node A implements I { v: Vector(2) @embed("t") }'
    assert node(source, "A").key == ("k",)


def test_interfaces_keep_their_annotations_but_not_renames() -> None:
    source = 'interface I @doc("x") { a: I32 @index @rename_from("b") @note(k=1) }'
    (interface,) = compile_schema(source).interfaces
    assert interface.annotations == (Annotation("doc", ("x",)),)
    assert interface.properties[0].annotations == (Annotation("index"), Annotation("note", (), (("k", 1),)))


# --- constraints -------------------------------------------------------------------------------------------------


def test_a_key_of_several_properties_is_in_the_order_of_their_ids() -> None:
    assert node("node A { a: I32 b: I32 c: I32 @key(c, a) }", "A").key == ("a", "c")


def test_the_key_of_an_edge_names_its_ends_first() -> None:
    source = "node A { } edge E: A -> A { p: I32 q: I32 @key(q, @dst, p, @src) }"
    assert edge(source, "E").key == ("src", "dst", "p", "q")
    assert edge(source.replace("@dst", "dst").replace("@src", "src"), "E").key == ("src", "dst", "p", "q")


def test_unique_tuples_are_the_same_in_any_order_and_kept_once() -> None:
    source = "node A { a: I32 @unique b: I32 @unique(b, a) @unique(a, b) @unique(a) }"
    assert node(source, "A").uniques == (("a",), ("a", "b"))


def test_unique_on_edges_may_name_the_ends() -> None:
    source = "node A { } edge E: A -> A { p: I32? @unique @unique(p, dst) @unique(src) }"
    assert edge(source, "E").uniques == (("src",), ("dst", "p"), ("p",))


def test_index_on_a_property_or_in_the_body() -> None:
    source = "node A { a: I32 @index b: String c: Vector(2) d: I32 @index(b) @index(c) }"
    assert [p.indexed for p in node(source, "A").properties] == [True, True, True, False]


def test_an_index_on_the_ends_of_an_edge_is_there_anyway() -> None:
    assert edge("node A { } edge E: A -> A { @index(src) @index(@dst) }", "E").properties == ()


@pytest.mark.parametrize(
    ("type_", "written", "expected"),
    [
        ("I32", "0..150", Range("a", 0, 150)),
        ("I64", "-5..", Range("a", -5, None)),
        ("U64", "..18446744073709551615", Range("a", None, 18446744073709551615)),
        ("F64", "0..1.5", Range("a", 0.0, 1.5)),
        ("F32?", "-1e-3..", Range("a", -0.001, None)),
    ],
)
def test_either_end_of_a_range_may_be_open(type_: str, written: str, expected: Range) -> None:
    (found,) = node(f"node A {{ a: {type_} @range(a, {written}) }}", "A").ranges
    assert found == expected
    assert type(found.low) is type(expected.low)


def test_several_checks_on_one_property_are_kept_each_once() -> None:
    source = 'node A { a: String @check(a, "b+") @check(a, "a+") @check(a, "b+") }'
    assert node(source, "A").checks == (Check("a", "a+"), Check("a", "b+"))


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("", Cardinality(0, None)),
        ("@card(0..1)", Cardinality(0, 1)),
        ("@card(1..)", Cardinality(1, None)),
        ("@card(..3)", Cardinality(0, 3)),
        ("@card(2..2)", Cardinality(2, 2)),
    ],
)
def test_cardinality_is_unbounded_by_default(written: str, expected: Cardinality) -> None:
    assert edge(f"node A {{ }} edge E: A -> A {written}", "E").card == expected


# --- annotations -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("type_", "written", "expected"),
    [
        ("String", '"a\\nb"', "a\nb"),
        ("Bool", "false", False),
        ("I32", "-2147483648", -2147483648),
        ("U64", "18446744073709551615", 18446744073709551615),
        ("F64", "3", 3.0),
        ("F32", "-0.0", 0.0),
        ("Date", '"2026-01-02"', "2026-01-02"),
        ("DateTime", '"2026-01-02 03:04:05.5+02:00"', "2026-01-02T01:04:05.500000Z"),
        ("enum(on, off)", "on", "on"),
        ("enum(on, off)", '"off"', "off"),
        ("enum(1, true)", "1", "1"),
        ("enum(1, true)", "true", "true"),
    ],
)
def test_defaults_are_typed(type_: str, written: str, expected: object) -> None:
    (found,) = node(f"node A {{ a: {type_} @default({written}) }}", "A").properties
    assert (found.has_default, found.default, type(found.default)) == (True, expected, type(expected))


def test_embed_keeps_source_and_model() -> None:
    source = 'node A { t: String v: Vector(2) @embed("t", model="small") w: Vector(2)? @embed(t) }'
    found = node(source, "A").by_name
    assert found["v"].embed == EmbedSpec("t", "small")
    assert found["w"].embed == EmbedSpec("t")


def test_unknown_annotations_are_kept_and_never_fail() -> None:
    source = 'node A @color("red", level=2) { a: I32 @pii @unit(meter) @src }  edge E: A -> A @weight(0.5)'
    catalog = compile_schema(source)
    (a,) = catalog.nodes
    assert a.annotations == (Annotation("color", ("red",), (("level", 2),)),)
    assert a.properties[0].annotations == (Annotation("pii"), Annotation("src"), Annotation("unit", ("meter",)))
    assert catalog.edges[0].annotations == (Annotation("weight", (0.5,)),)


# --- the catalog -------------------------------------------------------------------------------------------------


def test_types_are_sorted_by_name_whatever_the_order_of_the_text() -> None:
    catalog = compile_schema("edge Z: B -> A node B { } edge Y: A -> B node A { }")
    assert [t.name for t in catalog.types()] == ["A", "B", "Y", "Z"]


def test_a_node_without_properties_is_a_node() -> None:
    assert node("node A { }", "A").properties == ()


def test_an_edge_may_connect_a_type_to_itself_and_types_declared_later() -> None:
    assert edge("edge E: A -> A node A { }", "E").source == "A"


def test_all_errors_of_a_text_are_reported_in_order() -> None:
    source = "node a { __x: Strng b: I32 @key @unique }\nedge E: X -> Y @card(2..1) { c: Blob @unique }"
    found = [(d.code, d.span.line) for d in check_schema(source).diagnostics]
    assert found == [("S110", 1), ("S112", 1), ("S120", 1), ("S117", 2), ("S117", 2), ("S142", 2), ("S134", 2)]


def test_a_property_that_was_reported_causes_no_further_errors() -> None:
    source = 'node A { a: Strng @default(1) @embed("b") @range(a, 0..1) @check(a, "x") @unique(a) @key(a) }'
    assert [d.code for d in check_schema(source).diagnostics] == ["S120", "S153"]


def test_a_catalog_travels_to_other_processes() -> None:
    catalog = compile_schema(SAMPLE)
    assert catalog.edge("worksat") is not None
    copy = pickle.loads(pickle.dumps(catalog))
    assert copy == catalog
    assert copy.node("Person").by_name["slug"].id == catalog.nodes[1].by_name["slug"].id


def test_many_threads_compile_at_once() -> None:
    sources = [f"node A{index} {{ a: I32 @key b: Strng{index} }}" for index in range(40)]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(check_schema, sources))
    for index, checked in enumerate(found):
        assert [d.message for d in checked.diagnostics] == [f"there is no type `Strng{index}`"]


def test_properties_are_plain_values() -> None:
    (found,) = node("node A { a: String }", "A").properties
    assert found == Property("a", "p2", STRING)
    assert hash(found) == hash(Property("a", "p2", STRING))
