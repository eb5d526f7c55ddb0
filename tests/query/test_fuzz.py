"""Any text gives a result or a positioned error: never another exception, never a hang."""

from __future__ import annotations

import random
import time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from omnigraph.diagnostics import LanguageError, QueryParseError
from omnigraph.query.lint import lint
from omnigraph.query.lower.compile import compile_file
from omnigraph.query.text.format import format_queries
from omnigraph.query.text.parse import MAX_SOURCE_LENGTH
from omnigraph.query.text.tokens import KEYWORDS, SOFT_KEYWORDS
from tests.query.sample import CATALOG, SCHEMA
from tests.strategies.queries import read_queries

_PIECES = (
    *KEYWORDS,
    *SOFT_KEYWORDS,
    *("+", "-", "*", "/", "%", "|", "[0]", "knows|likes", "lower(", "exact: true", "days(1)", "$path", "$p.@id"),
    *("optional { $p knows $f }", "either { $p: Person } or { $p: Person }", "case { when true then 1 else 2 }"),
    *("with { $p } match {", "as $path", "distinct $p.age", "is not null", "nulls last", "insert new", "from $p"),
    *("$p", "$_", "$f", "Person", "Company", "knows", "worksAt", "name", "age", "tags", "bio", "count", "nearest"),
    *(
        "{",
        "}",
        "(",
        ")",
        "[",
        "]",
        "<",
        ">",
        "<=",
        ">=",
        "=",
        "!=",
        ",",
        ":",
        ".",
        "?",
        "@",
        "$",
        '"',
        "\\",
        "/*",
        "*/",
    ),
    *("//", "\n", " ", "1", "-1", "1.5", '"x"', 'date("2026-01-01")', "now()", "{1,2}", "\ud800", "é", "\0", "1e999"),
)


def check(source: str) -> None:
    """Run everything that takes a text. What is allowed to come out is checked here."""
    found = _language_error(source)
    for diagnostic in found.diagnostics if found is not None else ():
        span = diagnostic.span
        assert 0 <= span.start <= span.end <= max(len(source), 1)
        assert 1 <= span.line <= source.count("\n") + 1
        assert span.column >= 1
        assert diagnostic.message
        assert diagnostic.code in str(found)
    try:
        text = format_queries(source)
    except QueryParseError:
        return
    assert format_queries(text) == text


def _language_error(source: str) -> LanguageError | None:
    try:
        compile_file(source, CATALOG)
    except LanguageError as error:
        return error
    return None


@settings(deadline=None, max_examples=150)
@given(st.text(max_size=200))
def test_any_text(source: str) -> None:
    check(source)


@settings(deadline=None, max_examples=250)
@given(st.lists(st.sampled_from(_PIECES), max_size=40))
@example(["query", " ", "q"])
def test_any_sequence_of_pieces(pieces: list[str]) -> None:
    check("".join(pieces))
    check("query q { match { " + " ".join(pieces) + " } return { $p } }")
    check("query q { " + " ".join(pieces) + " }")


@settings(deadline=None, max_examples=200)
@given(read_queries(CATALOG), st.randoms(use_true_random=False))
def test_damaged_queries(query: object, chance: random.Random) -> None:
    source = query.source  # type: ignore[attr-defined]
    for _ in range(3):
        at = chance.randrange(len(source) + 1)
        match chance.randrange(4):
            case 0:
                source = source[:at] + source[at + chance.randrange(1, 6) :]
            case 1:
                source = source[:at] + chance.choice(_PIECES) + source[at:]
            case 2:
                other = chance.randrange(len(source) + 1)
                source = source[: min(at, other)] + source[max(at, other) :]
            case _:
                source = source[:at] + source[: chance.randrange(len(source) + 1)] + source[at:]
        check(source)


@settings(deadline=None, max_examples=30)
@given(st.lists(st.sampled_from(_PIECES), max_size=30))
def test_lint_never_raises(pieces: list[str]) -> None:
    report = lint(SCHEMA, {"a.gq": "query q { " + " ".join(pieces) + " }", "b.gq": "".join(pieces)})
    report.render()
    report.to_json()


@pytest.mark.slow
def test_the_time_for_large_texts_grows_with_their_length_only() -> None:
    """Patterns that trip naive lexers and parsers; what is quadratic takes minutes at this size."""
    size = MAX_SOURCE_LENGTH // 10
    texts = [
        "(" * size,
        '"' * size,
        "/*" * (size // 2),
        "query " * (size // 6),
        "query q { } " * (size // 12),
        "query q { match { " + "$a " * (size // 3),
        "query q { match { " + "$p: Person " * (size // 11) + " } return { $p } }",
        "query q { delete T where " + "not " * (size // 4),
        "query q { delete Company where size in [" + "1," * (size // 2) + "] }",
        "query q { delete Company where " + "size = 1 and " * (size // 13) + "true }",
        "query q { match { $p: Person } return { " + "$p.age as a, " * (size // 13) + " $p } }",
        "query q { match { $p: Person } return { " + "$p.agee, $q, " * (size // 13) + " $p } }",
        "query q { " + "insert Person { name: 1 } " * (size // 26) + " }",
        "9" * size,
        "\\" * size,
        'query q { match { $p: Person { name: "' + "\\" * (size // 2 * 2) + '" } } return { $p } }',
    ]
    for text in texts:
        start = time.process_time()
        check(text)
        assert time.process_time() - start < 10, text[:60]
