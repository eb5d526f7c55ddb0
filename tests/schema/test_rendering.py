"""How an error looks: the place, the line with a caret, and the help."""

from __future__ import annotations

import pytest

from omnigraph.diagnostics import Diagnostic, Span
from omnigraph.errors import SchemaError
from omnigraph.schema.compiler.compile import compile_schema
from omnigraph.schema.syntax.source import Lines


def rendered(source: str) -> str:
    with pytest.raises(SchemaError) as caught:
        compile_schema(source, filename="graph.pg")
    return str(caught.value)


def test_an_error_shows_the_line_with_a_caret_and_a_suggestion() -> None:
    assert rendered("node A {\n    name: Strng\n}\n") == (
        "error[S120]: there is no type `Strng`\n"
        " --> graph.pg:2:11\n"
        "  |\n"
        "2 |     name: Strng\n"
        "  |           ^^^^^\n"
        "  = help: did you mean `String`?"
    )


def test_all_errors_are_shown_in_the_order_of_the_text() -> None:
    text = rendered("edge E: A -> B\nnode A { a: Foo }\n")
    assert text.index("S117") < text.index("S120")


def test_the_error_carries_its_findings_as_data() -> None:
    with pytest.raises(SchemaError) as caught:
        compile_schema("node a { }")
    data = caught.value.to_json()
    assert data["kind"] == "parse"
    assert data["diagnostics"] == [
        {
            "code": "S110",
            "severity": "error",
            "message": "the type name `a` must start with an upper-case letter",
            "line": 1,
            "column": 6,
            "start": 5,
            "end": 6,
            "hint": "write `A`",
        }
    ]


def test_only_a_line_feed_ends_a_line() -> None:
    source = "node A {\r\n\x0c\x0b\u2028 a: Foo }"
    assert "graph.pg:2:8" in rendered(source)
    assert "2 |     a: Foo }\n" in rendered(source)


def test_a_long_line_is_shown_around_the_caret() -> None:
    source = f"node A {{ {' ' * 5000} a: Foo {' ' * 5000} }}"
    line = next(line for line in rendered(source).splitlines() if "Foo" in line and line.startswith("1"))
    caret = next(line for line in rendered(source).splitlines() if "^" in line)
    assert len(line) < 200
    assert line.index("Foo") == caret.index("^")


def test_control_characters_never_reach_the_terminal() -> None:
    assert "\x1b" not in rendered("node A { a: Foo /* \x1b[31m */ }")


def test_a_place_behind_the_last_line_can_be_shown() -> None:
    assert "1 | x" in Diagnostic("S100", "m", Span(1, 1, 1, 2)).render("x")


def test_lines_turn_offsets_into_places() -> None:
    lines = Lines("ab\n\ncd")
    assert [(lines.span(at, at).line, lines.span(at, at).column) for at in (0, 2, 3, 4, 6)] == [
        (1, 1),
        (1, 3),
        (2, 1),
        (3, 1),
        (3, 3),
    ]
