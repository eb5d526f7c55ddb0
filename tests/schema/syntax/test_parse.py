"""How `.pg` is written: layout, names, literals; and how one mistake hides no other."""

from __future__ import annotations

import pytest

from omnigraph.errors import SchemaError
from omnigraph.schema.syntax.parse import parse_schema
from omnigraph.schema.syntax.syntax import (
    EdgeSyntax,
    EnumTypeSyntax,
    InterfaceSyntax,
    ListTypeSyntax,
    Literal,
    LiteralKind,
    NamedTypeSyntax,
    NodeSyntax,
    PropertySyntax,
    RangeArgument,
    SizedTypeSyntax,
)
from tests.schema.sample import SAMPLE


def errors(source: str) -> list[tuple[str, int, int]]:
    with pytest.raises(SchemaError) as caught:
        parse_schema(source)
    return [(d.code, d.span.line, d.span.column) for d in caught.value.diagnostics]


def properties(source: str) -> tuple[PropertySyntax, ...]:
    declaration = parse_schema(source).declarations[0]
    assert declaration.body is not None
    return declaration.body.properties


def test_the_three_declarations() -> None:
    interface, person, company, works_at = parse_schema(SAMPLE).declarations
    assert isinstance(interface, InterfaceSyntax)
    assert isinstance(person, NodeSyntax)
    assert isinstance(company, NodeSyntax)
    assert isinstance(works_at, EdgeSyntax)
    assert [name.text for name in person.implements] == ["Named"]
    assert (works_at.source.text, works_at.target.text) == ("Person", "Company")
    assert [annotation.name for annotation in works_at.annotations] == ["card"]
    assert [c.name for c in person.body.constraints] == ["unique", "range", "check"]


def test_white_space_never_matters() -> None:
    squeezed = " ".join(SAMPLE.split())
    stretched = "\n\t".join(SAMPLE.split(" "))
    assert parse_schema(squeezed) == parse_schema(stretched) == parse_schema(SAMPLE)


def test_spans_say_where_things_are() -> None:
    _, person, _, _ = parse_schema(SAMPLE).declarations
    age = next(p for p in person.body.properties if p.name.text == "age")  # type: ignore[union-attr]
    assert (age.span.line, age.span.column) == (5, 5)
    assert SAMPLE[age.span.start : age.span.end] == "age: I32?"
    assert SAMPLE[person.span.start : person.span.end].startswith("node Person")
    assert SAMPLE[person.span.start : person.span.end].endswith("}")


def test_comments_run_to_the_end_of_the_line_or_between_marks() -> None:
    source = "// one { \nnode /* two \n */ A { // three }\n a: I32 /**/ /* four */ }// five"
    assert parse_schema(source) == parse_schema("node A { a: I32 }")


def test_comment_marks_in_strings_are_text() -> None:
    (declaration,) = parse_schema('node A @note("// no /* comment */") { }').declarations
    assert declaration.annotations[0].arguments[0].value == "// no /* comment */"  # type: ignore[index,union-attr]


def test_a_comma_after_a_property_or_a_constraint_is_allowed() -> None:
    with_commas = "node A { a: I32 @index, b: I32, @unique(a, b), @unique(b), }"
    assert parse_schema(with_commas) == parse_schema(
        with_commas.replace(", b: ", " b: ").replace("),", ")").replace("32,", "32")
    )


def test_a_comma_alone_is_refused() -> None:
    assert errors("node A { , a: I32 }") == [("S100", 1, 10)]
    assert errors("node A { a: I32,, b: I32 }") == [("S100", 1, 17)]


@pytest.mark.parametrize("word", ["interface", "node", "edge", "implements", "enum", "true", "null", "src_", "string"])
def test_keywords_can_be_names_of_properties(word: str) -> None:
    source = f'node A @note("x") {{ a: I32 @index {word}: String @note("x") {word}2: I32 @unique(a, {word}) }}'
    assert [p.name.text for p in properties(source)] == ["a", word, f"{word}2"]


def test_the_body_of_an_edge_is_optional_and_that_of_a_node_is_not() -> None:
    edge, node = parse_schema("edge E: A -> A @card(0..1) node A { }").declarations
    assert isinstance(edge, EdgeSyntax)
    assert edge.body is None
    assert isinstance(node, NodeSyntax)
    assert errors("node A") == [("S100", 1, 7)]


def test_types() -> None:
    found = [p.type for p in properties("node A { a: I32? b: Vector(3) c: enum(x, y-1, 2_z, é,) d: [Date]? }")]
    bases = [type_.base for type_ in found]
    assert [type_.nullable for type_ in found] == [True, False, False, True]
    assert isinstance(bases[0], NamedTypeSyntax)
    assert isinstance(bases[1], SizedTypeSyntax)
    assert bases[1].size.value == 3
    assert isinstance(bases[2], EnumTypeSyntax)
    assert bases[2].values == ("x", "y-1", "2_z", "é")
    assert isinstance(bases[3], ListTypeSyntax)


def test_literals_of_annotations() -> None:
    source = r'node A @note("a\"\\\n\u00e9\ud83d\ude00", word, 12, -1.5e3, true, null, 1.., ..-2.5, k="v", @src) { }'
    arguments = parse_schema(source).declarations[0].annotations[0].arguments
    assert arguments is not None
    literals = [a for a in arguments if isinstance(a, Literal)]
    assert [(a.kind, a.value) for a in literals] == [
        (LiteralKind.STRING, 'a"\\\né😀'),
        (LiteralKind.WORD, "word"),
        (LiteralKind.INTEGER, 12),
        (LiteralKind.FLOAT, -1500.0),
        (LiteralKind.BOOLEAN, True),
        (LiteralKind.NULL, None),
    ]
    ranges = [a for a in arguments if isinstance(a, RangeArgument)]
    assert [(r.low.value if r.low else None, r.high.value if r.high else None) for r in ranges] == [
        (1, None),
        (None, -2.5),
    ]


def test_annotations_may_stand_before_and_after_implements() -> None:
    source = "node A @one implements I @two { }"
    assert parse_schema(source) == parse_schema("node A @one @two implements I { }")


def test_a_byte_order_mark_is_skipped() -> None:
    assert parse_schema("\ufeffnode A { }") == parse_schema("node A { }")


def test_an_empty_text_is_an_empty_schema() -> None:
    assert parse_schema("").declarations == ()
    assert parse_schema(" // nothing\n").declarations == ()


# --- all errors --------------------------------------------------------------------------------------------------


def test_errors_of_all_declarations_are_reported() -> None:
    source = "node A {\n  a String\n}\n\nedge E A -> A\n\nnode B { b: }\nnode C { }\nnodes D { }\n"
    assert errors(source) == [("S100", 2, 5), ("S100", 5, 8), ("S100", 7, 13), ("S100", 9, 1)]


def test_errors_of_all_lines_of_a_body_are_reported() -> None:
    source = "node A {\n  a String\n  b: I32\n  c I32?\n  @unique(a b)\n  d: [I32\n}\nnode B { }"
    assert errors(source) == [("S100", 2, 5), ("S100", 4, 5), ("S100", 5, 13), ("S100", 7, 1)]


def test_an_unclosed_body_does_not_swallow_the_next_declaration() -> None:
    source = "node A {\n  a: String\n\nnode B {\n  b String\n}"
    assert errors(source) == [("S100", 4, 1), ("S100", 5, 5)]


def test_syntax_errors_do_not_hide_errors_of_meaning() -> None:
    from omnigraph.schema.compiler.compile import check_schema

    source = "node A {\n  a String\n  b: Strng\n}\nedge E: A -> B\nnode B { b: I32 }\nedge F: A -> C"
    found = [(d.code, d.span.line) for d in check_schema(source).diagnostics]
    assert found == [("S100", 2), ("S120", 3), ("S117", 7)]


def test_what_could_not_be_read_is_not_reported_as_missing() -> None:
    from omnigraph.schema.compiler.compile import check_schema

    source = "interface I { x: }\nnode A implements I {\n  a Strng\n  @unique(a, x)\n}\nedge E: A -> B\nnode B { b }"
    found = [(d.code, d.span.line) for d in check_schema(source).diagnostics]
    assert found == [("S100", 1), ("S100", 3), ("S100", 7)]


@pytest.mark.parametrize("source", ["nodeA { }", "interfaceI { }", "edgeE: A -> A", "node A implementsI { }"])
def test_a_keyword_ends_where_its_word_ends(source: str) -> None:
    assert errors(source)[0][0] == "S100"
