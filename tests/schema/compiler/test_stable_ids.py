"""Ids of types and properties are minted once and kept, whatever is renamed, added, dropped or moved."""

from __future__ import annotations

from hypothesis import given, settings

from omnigraph.schema.catalog import Catalog
from omnigraph.schema.compiler.compile import check_schema, compile_schema
from tests.schema.sample import SAMPLE, edge, node
from tests.strategies.schemas import schema_sources

FIRST = "node A { a: I32 b: I32 } edge E: A -> A { w: F64 }"


def ids(catalog: Catalog) -> dict[str, str]:
    found = {type_.name: type_.id for type_ in catalog.types()}
    return found | {f"{t.name}.{p.name}": p.id for t in catalog.types() for p in t.properties}


def test_ids_come_from_one_counter_in_the_order_of_the_text() -> None:
    catalog = compile_schema(FIRST)
    assert ids(catalog) == {"A": "n1", "A.a": "p2", "A.b": "p3", "E": "e4", "E.w": "p5"}
    assert catalog.next_id == 6


def test_ids_are_kept_by_name_when_the_text_is_reordered() -> None:
    first = compile_schema(FIRST)
    again = compile_schema("edge E: A -> A { w: F64 } node A { b: I32 a: I32 }", first)
    assert again == first


def test_new_things_get_new_ids_and_come_last() -> None:
    first = compile_schema(FIRST)
    second = compile_schema("node A { c: I32 a: I32 b: I32 } edge E: A -> A { w: F64 } node B { }", first)
    assert ids(second) == ids(first) | {"A.c": "p6", "B": "n7"}
    assert [p.name for p in node(FIRST.replace("a:", "c: I32 a:"), "A", first).properties] == ["a", "b", "c"]


def test_ids_of_dropped_things_are_never_given_again() -> None:
    first = compile_schema(FIRST)
    without = compile_schema("node A { a: I32 }", first)
    assert without.next_id == first.next_id
    again = compile_schema(FIRST, without)
    assert ids(again)["E"] == "e7"
    assert ids(again)["A.b"] == "p6"


def test_a_rename_keeps_the_ids_of_the_type_and_its_properties() -> None:
    first = compile_schema(FIRST)
    second = compile_schema('node B @rename_from("A") { a: I32 b: I32 } edge E: B -> B { w: F64 }', first)
    assert ids(second) == {"B": "n1", "B.a": "p2", "B.b": "p3", "E": "e4", "E.w": "p5"}


def test_a_rename_of_a_property_keeps_its_id() -> None:
    first = compile_schema(FIRST)
    renamed = node('node A { x: I32 @rename_from("a") b: I32 }', "A", first)
    assert [(p.name, p.id) for p in renamed.properties] == [("x", "p2"), ("b", "p3")]


def test_a_rename_of_an_edge_type_finds_the_old_one_whatever_its_case() -> None:
    first = compile_schema(FIRST)
    assert edge('node A { } edge F: A -> A @rename_from("e") { w: F64 }', "F", first).id == "e4"


def test_an_edge_type_whose_name_changes_only_by_case_is_the_same() -> None:
    first = compile_schema("node A { } edge WorksAt: A -> A")
    assert edge("node A { } edge Worksat: A -> A", "Worksat", first).id == first.edges[0].id


def test_after_the_rename_the_annotation_has_no_effect() -> None:
    first = compile_schema(FIRST)
    source = 'node B @rename_from("A") { x: I32 @rename_from("a") b: I32 } edge E: B -> B { w: F64 }'
    second = compile_schema(source, first)
    assert compile_schema(source, second) == second
    plain = source.replace(' @rename_from("A")', "").replace(' @rename_from("a")', "")
    assert compile_schema(plain, second) == second
    again = compile_schema(source + " node A { }", second)
    assert ids(again) == ids(second) | {"A": "n6"}


def test_without_an_accepted_schema_a_rename_has_no_effect_and_no_warning() -> None:
    checked = check_schema('node B @rename_from("A") { x: I32 @rename_from("a") }')
    assert checked.diagnostics == ()
    assert checked.catalog is not None
    assert ids(checked.catalog) == {"B": "n1", "B.x": "p2"}


def test_a_rename_in_an_interface_renames_in_every_node() -> None:
    first = compile_schema("interface I { a: I32 } node A implements I { } node B implements I { }")
    source = 'interface I { z: I32 @rename_from("a") } node A implements I { } node B implements I { }'
    second = compile_schema(source, first)
    assert ids(second) == {"A": "n1", "A.z": "p2", "B": "n3", "B.z": "p4"}


def test_the_order_of_a_key_survives_a_rename() -> None:
    first = compile_schema("node A { a: I32 b: I32 @key(a, b) }")
    second = node('node A { zz: I32 @rename_from("a") b: I32 @key(b, zz) }', "A", first)
    assert second.key == ("zz", "b")


def test_a_node_and_an_edge_of_one_name_over_time_are_two_things() -> None:
    first = compile_schema("node A { } node B { }")
    second = compile_schema("node A { } edge B: A -> A", first)
    assert ids(second)["B"] == "e3"


@settings(max_examples=40, deadline=None)
@given(schema_sources())
def test_compiling_again_against_itself_changes_nothing(source: str) -> None:
    first = compile_schema(source)
    assert compile_schema(source, first) == first


def test_compiling_the_sample_twice_gives_the_same() -> None:
    assert compile_schema(SAMPLE) == compile_schema(SAMPLE)
