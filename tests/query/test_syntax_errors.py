"""Syntax errors: each has a place, says what was expected in words, and suggests what was meant."""

from __future__ import annotations

import pytest

from omnigraph.errors import QueryParseError
from omnigraph.query.text.parse import MAX_ERRORS, parse_queries
from tests.query.sample import unmarked

CASES: list[tuple[str, str, str | None]] = [
    ("⟦qurey⟧ q { delete T where true }", "expected `query`, found `qurey`", "did you mean `query`?"),
    (
        "⟦match⟧ { $p: P } return { $p }",
        "expected `query`, found the keyword `match`",
        "every query starts with `query name`",
    ),
    ("query ⟦{⟧ delete T where true }", "expected the name of the query, found `{`", None),
    (
        "query q { ⟦macth⟧ { $p: P } return { $p } }",
        "expected `delete`, `insert`, `match` or `update`, found `macth`",
        "did you mean `match`?",
    ),
    (
        "query q { ⟦return⟧ { $p } }",
        "expected `delete`, `insert`, `match` or `update`, found the keyword `return`",
        "a read starts with a match block",
    ),
    (
        "query q { match { $p: P } ⟦retrun⟧ { $p } }",
        "expected `delete`, `insert`, `return`, `update` or `with`, found `retrun`",
        "did you mean `return`?",
    ),
    (
        "query q { match { $p: P } ⟦match⟧ { $q: P } return { $p } }",
        "expected `delete`, `insert`, `return`, `update` or `with`, found the keyword `match`",
        "put all clauses into one match block",
    ),
    (
        "query q { match { $p: P return ⟦{⟧ $p } }",
        "expected a clause or `}`, found `{`",
        "is a `}` missing before `return`?",
    ),
    (
        "query q { match { $p: P } return { $p } ⟦ordr⟧ { $p.x } }",
        "expected `having`, `limit`, `offset`, `order` or `}`, found `ordr`",
        "did you mean `order`?",
    ),
    (
        "query q { match { $p: P } return { $p } limit 3 ⟦order⟧ { $p.x } }",
        "expected `offset` or `}`, found the keyword `order`",
        None,
    ),
    (
        "query q { match { $p: P } return { ⟦}⟧ }",
        "expected a value, found `}`",
        None,
    ),
    (
        "query q { match { $p: P } return { $p } ⟦insert⟧ T { x: 1 } }",
        "a query is a read or a mutation, never both",
        "move the statement into a query of its own",
    ),
    (
        "query q { insert T { x: 1 } ⟦match⟧ { $p: P } return { $p } }",
        "a match block stands before all statements of a mutation",
        "move it to the start, or into a query of its own",
    ),
    ("query q { match { $p: ⟦}⟧ return { $p } }", "expected a type, found `}`", None),
    ("query q { match { $p.⟦=⟧ 3 } return { $p } }", "expected a property name, found `=`", None),
    (
        "query q { match { $p: P $p knows ⟦}⟧ return { $p } }",
        "expected a variable, `[` or `{`, found `}`",
        "an edge has two ends; a node is bound by `$x: knows`",
    ),
    (
        "query q { match { $p P ⟦}⟧ return { $p } }",
        "expected a variable, `[` or `{`, found `}`",
        "an edge has two ends; a node is bound by `$x: P`",
    ),
    (
        "query q { match { p⟦:⟧ P } return { $p } }",
        "expected an operator, `and`, `or`, the next item or `}`, found `:`",
        "a variable is written `$p`",
    ),
    (
        "query q(⟦n⟧: String) { match { $p: P } return { $p } }",
        "expected a variable or `)`, found `n`",
        "a variable is written `$n`",
    ),
    (
        "query q { match { $p: P $p.name =⟦=⟧ 3 } return { $p } }",
        "expected a value, found `=`",
        "equality is written `=`",
    ),
    (
        "query q { match { $p knows{1⟦.⟧.2} $f } return { $p } }",
        "expected `}`, found `.`",
        "bounds are written `{1,3}`",
    ),
    (
        "query q { match { $p: P $p.n > 1⟦.⟧ } return { $p } }",
        "expected `and`, `or`, the next item or `}`, found `.`",
        "a float is written `1.0`",
    ),
    (
        "query q { match { $p: P $p.n > ⟦.⟧5 } return { $p } }",
        "expected a value, found `.`",
        "a float is written `0.5`",
    ),
    (
        "query q { match { $p: P ⟦where⟧ $p.age > 3 } return { $p } }",
        "unexpected `where` in a match block",
        "a filter stands in the match block without `where`",
    ),
    (
        "query q { match { $p: P $p.name ⟦is⟧ 3 } return { $p } }",
        "unexpected `is` in a match block",
        "write `is null` or `is not null`",
    ),
    (
        "query q { match { $p: P not $p ⟦knows⟧ $f } return { $p } }",
        "unexpected `knows` in a match block",
        "write `not { $p knows … }`",
    ),
    (
        "query q { match { $p: P } return { $p } order ⟦by⟧ { $p.x } }",
        "expected `{`, found `by`",
        "write `order { … }`",
    ),
    (
        "query q { match { $p: P } return { count(⟦*⟧) as n } }",
        "expected a value or `)`, found `*`",
        "count the rows of a variable: `count($x)`",
    ),
    (
        "query q { match { $p -[knows]-⟦>⟧ $f } return { $p } }",
        "expected a value, found `>`",
        "a traversal is written `$a knows $b`",
    ),
    (
        "query q { match { $p: P $p.age > 1 ⟦<⟧ 3 } return { $p } }",
        "expected `and`, `or`, the next item or `}`, found `<`",
        "comparisons do not chain: join them with `and`",
    ),
    (
        'query q { match { $p: P $p.name ⟦startswith⟧ "x" } return { $p } }',
        "unexpected `startswith` in a match block",
        "did you mean `starts_with`?",
    ),
    (
        "query q { match { $p: P ⟦age⟧ > 3 } return { $p } }",
        "unexpected `age` in a match block",
        "a property is written `$x.age`",
    ),
    (
        "query q { match { $p: P $p.status = ⟦running⟧ } return { $p } }",
        "unexpected `running` in a match block",
        'write "running" for a string or a value of an enum, or `$x.running` for a property',
    ),
    (
        "query q($p: String) { match { ⟦$p⟧ knows $f } return { $f } }",
        "`$p` is a parameter and cannot be an end of an edge",
        "bind a variable of another name",
    ),
    (
        'query q { match { $p: P { name: ⟦"x } } return { $p } }⟧',
        "the string is not closed",
        'close it with `"` on the same line; a line break in a string is written `\\n`',
    ),
    ("query q { match { $p: P ⟦/*⟧ } return { $p } }", "the comment is not closed", "close it with `*/`"),
    (
        "query q { match { $p: P $p.name = ⟦'⟧x' } return { $p } }",
        "unexpected character `'`",
        'strings are written with double quotes: "…"',
    ),
    ("query q { match { $p: P ⟦\x07⟧ } return { $p } }", "unexpected character U+0007", None),
    (
        "query q { match { $p: P ⟦;⟧ } return { $p } }",
        "unexpected character `;`",
        "statements are not separated by `;`",
    ),
    ("query q { match { $p: P $p.age > ⟦12abc⟧ } return { $p } }", "`12abc` is neither a number nor a name", None),
    (
        'query q { match { $p: P { name: "a⟦\\x⟧" } } return { $p } }',
        "strings have no escape `\\x`",
        'the escapes are \\" \\\\ \\/ \\b \\f \\n \\r \\t and \\uXXXX',
    ),
    (
        'query q { match { $p: P { name: "⟦\\ud800⟧" } } return { $p } }',
        "half of a surrogate pair is not a character",
        'the escapes are \\" \\\\ \\/ \\b \\f \\n \\r \\t and \\uXXXX',
    ),
    (
        'query q { match { $p: P { name: ⟦"\ud800"⟧ } } return { $p } }',
        "the string holds half of a surrogate pair, which is not a character",
        None,
    ),
    (
        "query q { match { $p: P } return { $p } limit 3 ",
        "the query ends too early: expected `offset` or `}`",
        "the `{` of line 1 is not closed",
    ),
    (
        "query q { ⟦delete⟧ T }",
        "`delete T` needs a `where`",
        "to delete all rows write `where true`",
    ),
    ("query q { update T set ⟦{ }⟧ where true }", "`set` needs at least one assignment", None),
    (
        'query q ⟦@descripton("x")⟧ { delete T where true }',
        "unknown annotation `@descripton`",
        "did you mean `description`?",
    ),
    (
        'query q @description("x") ⟦@description("y")⟧ { delete T where true }',
        "`@description` is given twice",
        None,
    ),
    (
        "query q { delete T where true }\nquery ⟦q⟧ { delete T where true }",
        "query `q` is defined twice; the first one is on line 1",
        "rename one of them",
    ),
    (
        "query q { match { $a <knows{1,2}>⟦{1,2}⟧ $b } return { $a } }",
        "the bounds of a traversal are written once",
        None,
    ),
    ("⟦⟧", "there is no query in this text", "write `query name { match { … } return { … } }`"),
    ("⟦⟧ // nothing\n", "there is no query in this text", "write `query name { match { … } return { … } }`"),
]


@pytest.mark.parametrize(("text", "message", "hint"), CASES, ids=[case[1][:50] for case in CASES])
def test_syntax_error(text: str, message: str, hint: str | None) -> None:
    source, places = unmarked(text)
    with pytest.raises(QueryParseError) as raised:
        parse_queries(source, "file.gq")
    [found] = raised.value.diagnostics
    assert (found.code, found.message, found.hint) == ("Q000", message, hint)
    if places and places[0][0] < places[0][1]:
        assert (found.span.start, found.span.end) == places[0]
    assert f"file.gq:{found.span.line}:{found.span.column}" in str(raised.value)
    assert raised.value.kind == "parse"


def test_every_broken_query_of_a_file_is_reported() -> None:
    source, places = unmarked(
        """query a { match { $p: P } ⟦retrun⟧ { $p } }
query good { match { $p: P } return { $p } }
query b { match { $p: P return ⟦{⟧ $p } }
query c { delete where ⟦x⟧ = 1 }
query d { delete T where x = ⟦}⟧
nonsense here
query e { insert T { a: 1 } ⟦delete T where true⟧ }
"""
    )
    with pytest.raises(QueryParseError) as raised:
        parse_queries(source)
    found = [(d.span.start, d.span.end) for d in raised.value.diagnostics]
    assert found == places


def test_a_missing_brace_breaks_one_query_only() -> None:
    with pytest.raises(QueryParseError) as raised:
        parse_queries("query a { match { $p: P return { $p } }\n\nquery b { match { $p: P } return { $p } }\n")
    assert len(raised.value.diagnostics) == 1


def test_the_number_of_reported_errors_is_bounded() -> None:
    with pytest.raises(QueryParseError) as raised:
        parse_queries("query q { } " * (MAX_ERRORS * 3))
    assert len(raised.value.diagnostics) == MAX_ERRORS


def test_lines_and_columns_count_from_one_and_only_line_feeds_end_lines() -> None:
    with pytest.raises(QueryParseError) as raised:
        parse_queries("query q {\r\n\t\x0b  match { $p: P }\n\n  retrun { $p } }")
    [found] = raised.value.diagnostics
    assert (found.span.line, found.span.column) == (4, 3)
