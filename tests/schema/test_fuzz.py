"""Any input gives a result or a positioned error: never an exception of another kind, never a hang."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from omnigraph.errors import SchemaError
from omnigraph.schema.catalog_json import catalog_from_json, catalog_to_json
from omnigraph.schema.compiler.compile import check_schema, compile_schema
from omnigraph.schema.syntax.format import format_schema
from tests.schema.sample import SAMPLE
from tests.strategies.schemas import messy_schema_sources

TOKENS = (
    *(
        "node",
        "edge",
        "interface",
        "implements",
        "enum",
        "A",
        "B",
        "Named",
        "name",
        "id",
        "src",
        "__x",
        "String",
        "I32",
    ),
    *("Vector", "{", "}", "(", ")", "[", "]", ":", ",", "->", "?", "..", "=", "@key", "@unique", "@index", "@range"),
    *("@check", "@card", "@embed", "@default", "@rename_from", "@src", "@note", '"a"', '"(a+"', '"\\u00"', "0", "-1"),
    *("1.5", "1e999", "9" * 40, "true", "null", "//", "/*", "*/", '"', "\n", " ", "\t", ";", "é", "\x00", "#", "-"),
)


def survives(source: str) -> None:
    """Compile and format; every finding has a place within the text and can be shown."""
    checked = check_schema(source)
    for diagnostic in checked.diagnostics:
        span = diagnostic.span
        assert 0 <= span.start <= span.end <= len(source)
        assert 1 <= span.line <= source.count("\n") + 1
        assert diagnostic.render(source)
    if checked.catalog is None:
        with pytest.raises(SchemaError):
            compile_schema(source)
    else:
        assert catalog_from_json(catalog_to_json(checked.catalog)) == checked.catalog
    try:
        formatted = format_schema(source)
    except SchemaError:
        return
    assert format_schema(formatted) == formatted


@settings(max_examples=200, deadline=5000)
@given(st.text(max_size=60))
@example("\ud800")
@example("\r\r\n\x85\u2028")
def test_any_text(source: str) -> None:
    survives(source)


@settings(max_examples=200, deadline=5000)
@given(st.lists(st.sampled_from(TOKENS), max_size=30).map(" ".join))
@example("node A { a: " + "[" * 3000)
@example("node A { a: " + "[" * 3000 + "I32" + "]" * 3000 + " }")
@example("node A @a(" + "0," * 3000 + "0) { }")
@example("/*" * 3000)
@example('"' * 3001)
@example("node A { a }\n" * 500)
@example("node A {\n" + "a b\n" * 300 + "}")
def test_any_sequence_of_tokens(source: str) -> None:
    survives(source)


@st.composite
def mutated(draw: st.DrawFn) -> str:
    """A valid schema with pieces cut out, doubled, moved or replaced."""
    source = draw(st.just(SAMPLE) | messy_schema_sources(2, 2, 3))
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(source)))
        end = min(len(source), start + draw(st.integers(0, 12)))
        put = draw(st.sampled_from(("", source[start:end] * 2, *TOKENS)) | st.text(max_size=2))
        source = source[:start] + put + source[end:]
    return source


@settings(max_examples=200, deadline=5000)
@given(mutated())
def test_any_change_of_a_valid_text(source: str) -> None:
    survives(source)


@settings(max_examples=60, deadline=5000)
@given(st.just(SAMPLE), mutated())
def test_any_change_of_an_accepted_schema(accepted: str, desired: str) -> None:
    check_schema(desired, compile_schema(accepted))
