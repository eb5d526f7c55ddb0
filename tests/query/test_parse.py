"""The grammar of `.gq`: what can be written, and what tree it makes."""

from __future__ import annotations

from typing import Any

import pytest

from omnigraph.errors import QueryParseError
from omnigraph.query.text import syntax
from omnigraph.query.text.parse import MAX_CLAUSES, MAX_SOURCE_LENGTH, parse_queries
from omnigraph.query.text.print import expression_text, traversal_text
from omnigraph.query.text.tokens import KEYWORDS
from tests.query.sample import unmarked


def parse(source: str) -> syntax.Query:
    [query] = parse_queries(source).queries
    return query


def parsed_read(source: str) -> syntax.Read:
    body = parse(source).body
    assert isinstance(body, syntax.Read)
    return body


def clauses(text: str, parameters: str = "") -> tuple[syntax.Clause, ...]:
    return parsed_read(f"query q{parameters} {{ match {{ {text} }} return {{ $p }} }}").clauses


def condition(text: str, parameters: str = "($a: Bool, $b: Bool, $c: Bool)") -> syntax.Expression:
    [clause] = clauses(text, parameters)
    assert isinstance(clause, syntax.FilterClause)
    return clause.expression


def predicate(text: str) -> syntax.Expression:
    body = parse(f"query q($a: Bool, $b: Bool) {{ delete T where {text} }}").body
    assert isinstance(body, syntax.Mutation)
    [statement] = body.statements
    assert isinstance(statement, syntax.Delete)
    return statement.predicate


def shape(expression: syntax.Expression) -> Any:
    """An expression as nested tuples, for comparing precedence."""
    match expression:
        case syntax.And(items):
            return ("and", *map(shape, items))
        case syntax.Or(items):
            return ("or", *map(shape, items))
        case syntax.Not(item):
            return ("not", shape(item))
        case syntax.Comparison(operator, left, right):
            return (operator.value, shape(left), shape(right))
        case _:
            return expression_text(expression)


def problem(source: str) -> tuple[str, str | None, tuple[int, int]]:
    """The one syntax error of a text: message, hint, place."""
    with pytest.raises(QueryParseError) as raised:
        parse_queries(source)
    [found] = raised.value.diagnostics
    assert found.code == "Q000"
    return found.message, found.hint, (found.span.start, found.span.end)


# --- the whole


SAMPLE = """
query friends_in($name: String, $city: String?)
  @description("Friends of a person, by city") @instruction("Use for people look-ups") {
  match {
    $p: Person { name: $name }
    $p knows{1,2} $f
    $f.age >= 18
    not { $f blockedBy $p }
  }
  return { $f.name, $f.age, count($f) as n }
  order { n desc, $f.name }
  limit 20
}
"""


def test_the_sample_of_the_language() -> None:
    query = parse(SAMPLE)
    assert query.name.text == "friends_in"
    assert [(p.variable.name, p.type.name.text, p.optional) for p in query.parameters] == [
        ("name", "String", False),
        ("city", "String", True),
    ]
    assert query.annotation("description") == "Friends of a person, by city"
    assert query.annotation("instruction") == "Use for people look-ups"
    body = query.body
    assert isinstance(body, syntax.Read)
    assert [type(clause) for clause in body.clauses] == [
        syntax.Bind,
        syntax.Traversal,
        syntax.FilterClause,
        syntax.NotBlock,
    ]
    assert [(p.alias.text if p.alias else None) for p in body.projections] == [None, None, "n"]
    assert [key.descending for key in body.order] == [True, None]
    assert isinstance(body.limit, syntax.Literal)
    assert body.limit.value == 20


def test_spans_cover_what_was_written() -> None:
    query = parse(SAMPLE)
    body = query.body
    assert isinstance(body, syntax.Read)
    texts = [SAMPLE[clause.span.start : clause.span.end] for clause in body.clauses]
    assert texts == ["$p: Person { name: $name }", "$p knows{1,2} $f", "$f.age >= 18", "not { $f blockedBy $p }"]
    assert SAMPLE[query.span.start : query.span.end] == SAMPLE.strip()
    assert [(clause.span.line, clause.span.column) for clause in body.clauses] == [(5, 5), (6, 5), (7, 5), (8, 5)]


def test_trees_are_equal_wherever_they_stand() -> None:
    assert parse(SAMPLE) == parse(SAMPLE.replace("\n", " \n\n "))


def test_white_space_and_comments_never_matter() -> None:
    assert parse('query q{match{$p:Person{name:"a"}$p knows$f}return{$p}}') == parse(
        """// first
        query /* { */ q { // }
          match { $p : /* a
          b */ Person { name : "a" } $p
          knows
          $f }
          return { $p } } // end"""
    )


def test_several_queries_in_one_file_keep_their_order() -> None:
    file = parse_queries("query b { delete T where true } query a { delete T where true }")
    assert [query.name.text for query in file.queries] == ["b", "a"]


# --- lexical


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('"a"', "a"),
        ('""', ""),
        (r'"a\"b\\c\/d\ne\tf\rg\bh\fi"', 'a"b\\c/d\ne\tf\rg\bh\fi'),
        (r'"\u00e4\ud83d\ude00"', "ä😀"),
        ('"// no comment /* */"', "// no comment /* */"),
        ("12", 12),
        ("-12", -12),
        ("1.5", 1.5),
        ("-1.5e-3", -0.0015),
        ("2e3", 2000.0),
        ("true", True),
        ("false", False),
        ("null", None),
    ],
)
def test_literals(text: str, value: Any) -> None:
    tree = predicate(f"x = {text}")
    assert isinstance(tree, syntax.Comparison)
    assert isinstance(tree.right, syntax.Literal)
    assert (tree.right.value, type(tree.right.value)) == (value, type(value))


def test_lists_and_calls() -> None:
    assert shape(predicate("x in [1, 2,]")) == ("in", "x", "[1, 2]")
    assert shape(predicate("x in []")) == ("in", "x", "[]")
    assert shape(predicate('x = date("2026-01-02")')) == ("=", "x", 'date("2026-01-02")')
    assert shape(predicate("x < now()")) == ("<", "x", "now()")


def test_parameter_types() -> None:
    query = parse("query q($a: I64, $b: [String]?, $c: Vector(3),) { delete T where true }")
    assert [(p.type.name.text, p.type.is_list, p.type.size, p.optional) for p in query.parameters] == [
        ("I64", False, None, False),
        ("String", True, None, True),
        ("Vector", False, 3, False),
    ]


def test_commas_are_optional_between_projections_assignments_and_inline_properties() -> None:
    with_commas = parse(
        'query q { match { $p: P { a: 1, b: "x" } } return { $p.a, $p.b as c, count($p) } order { c, $p } }'
    )
    without = parse('query q { match { $p: P { a: 1 b: "x" } } return { $p.a $p.b as c count($p) } order { c $p } }')
    assert with_commas == without
    assert parse("query q { insert T { a: 1, b: $x, c: now() } }") == parse(
        "query q { insert T { a: 1 b: $x c: now() } }"
    )


def test_clauses_may_be_separated_by_commas_too() -> None:
    assert clauses("$p: P, $p knows $f, $f.a = 1,") == clauses("$p: P $p knows $f $f.a = 1")


# --- match


def test_a_binding_may_have_inline_properties_of_every_kind() -> None:
    [bind] = clauses(
        '$p: P { a: 1, b: "x", c: $v, d: [1], e: null, f: true, g: now(), h: date("2026-01-01"), i: -1.5 }'
    )
    assert isinstance(bind, syntax.Bind)
    assert [item.name.text for item in bind.properties] == list("abcdefghi")
    assert clauses("$p: P { }") == clauses("$p: P")


@pytest.mark.parametrize(
    ("text", "undirected", "bounds", "edge_variable"),
    [
        ("$a knows $b", False, None, None),
        ("$a knows{2,4} $b", False, (2, 4), None),
        ("$a knows{2} $b", False, (2, 2), None),
        ("$a knows{2,} $b", False, (2, None), None),
        ("$a knows{,2} $b", False, (None, 2), None),
        ("$a <knows> $b", True, None, None),
        ("$a <knows>{1,2} $b", True, (1, 2), None),
        ("$a <knows{1,2}> $b", True, (1, 2), None),
        ("$a $w:knows $b", False, None, "w"),
        ("$a $w:<knows> $b", True, None, "w"),
        ("$a $_:knows $_", False, None, "_"),
    ],
)
def test_traversals(
    text: str, undirected: bool, bounds: tuple[int | None, int | None] | None, edge_variable: str | None
) -> None:
    [hop] = clauses(text)
    assert isinstance(hop, syntax.Traversal)
    assert hop.edge.text == "knows"
    assert hop.undirected is undirected
    assert (None if hop.bounds is None else (hop.bounds.low, hop.bounds.high)) == bounds
    assert (hop.edge_variable.name if hop.edge_variable else None) == edge_variable


@pytest.mark.parametrize("word", KEYWORDS)
def test_every_keyword_can_be_an_edge(word: str) -> None:
    texts = [f"$a {word} $b", f"$a {word}{{1,2}} $b", f"$a <{word}> $b", f"$a $w:{word} $b", f"$a <{word}>{{2,2}} $b"]
    found = clauses(" ".join(texts))
    assert [traversal_text(hop) for hop in found if isinstance(hop, syntax.Traversal)] == texts


@pytest.mark.parametrize("word", KEYWORDS)
def test_every_keyword_can_be_a_property_a_type_an_alias_and_a_query(word: str) -> None:
    read = parsed_read(
        f"query {word} {{ match {{ $p: {word} {{ {word}: 1 {word}: $p }} $p.{word} = $p.{word} "
        f"$p.{word} not {{ $p.{word} in $p.{word} }} }} "
        f"return {{ $p.{word} as {word}, $p.{word} $p.{word} as x }} order {{ $p.{word} desc $p.{word} }} }}"
    )
    assert len(read.clauses) == 4
    assert [p.alias.text if p.alias else None for p in read.projections] == [word, None, "x"]
    assert len(read.order) == 2
    mutation = parse(f"query q {{ insert {word} {{ {word}: 1 }} update {word} set {{ {word}: 2 }} where true }}").body
    assert isinstance(mutation, syntax.Mutation)
    assert len(mutation.statements) == 2


@pytest.mark.parametrize("word", [word for word in KEYWORDS if word not in {"true", "false", "null"}])
def test_every_keyword_can_be_a_bare_property_in_a_predicate(word: str) -> None:
    """Save for the three literals, which always mean themselves there."""
    assert shape(predicate(f"{word} = 1")) == ("=", word, "1")
    assert shape(predicate(f"x = 1 and {word} >= 2")) == ("and", ("=", "x", "1"), (">=", word, "2"))
    assert shape(predicate(f"{word} in [1]")) == ("in", word, "[1]")
    assert shape(predicate(f'not {word} contains "x"')) == ("not", ("contains", word, '"x"'))
    assert shape(predicate(f"x < {word} or ({word} = 1)")) == ("or", ("<", "x", word), ("=", word, "1"))


@pytest.mark.parametrize("word", [word for word in KEYWORDS if word not in {"true", "false", "null", "not"}])
def test_every_keyword_can_be_a_bare_property_before_words_of_their_contexts(word: str) -> None:
    text = f'{word} is null or not {word} is not null and {word} matches "x" and {word} ends_with "y"'
    assert expression_text(predicate(text)) == text
    assert isinstance(predicate(f"{word} is null"), syntax.NullTest)
    [key] = parsed_read(f"query q {{ match {{ }} return {{ 1 as {word} }} order {{ {word} nulls last }} }}").order
    assert (expression_text(key.expression), key.nulls_first) == (word, False)


def test_a_property_called_not_is_tested_for_null() -> None:
    assert expression_text(predicate("not is null and x = 1")) == "not is null and x = 1"
    assert isinstance(predicate("not is not null"), syntax.NullTest)


def test_a_keyword_between_two_parameters_stays_an_operator() -> None:
    assert shape(condition("$a and $b or not $c")) == ("or", ("and", "$a", "$b"), ("not", "$c"))
    assert shape(condition("$a in $b", "($a: I32, $b: [I32])")) == ("in", "$a", "$b")


def test_a_keyword_behind_the_end_of_a_traversal_starts_the_next_clause() -> None:
    found = clauses("$a knows $b not $c = $b true $a $w:knows $b false $b knows $c", "($flag: Bool)")
    assert [type(clause).__name__ for clause in found] == [
        "Traversal",
        "FilterClause",
        "FilterClause",
        "Traversal",
        "FilterClause",
        "Traversal",
    ]


def test_a_parameter_is_a_filter_of_its_own() -> None:
    found = clauses("$flag $p: P $flag $a $w:knows $b $flag not { $p knows $a } $flag", "($flag: Bool)")
    kinds = ["FilterClause", "Bind", "FilterClause", "Traversal", "FilterClause", "NotBlock", "FilterClause"]
    assert [type(clause).__name__ for clause in found] == kinds


def test_not_with_a_block_and_not_with_an_expression() -> None:
    block, negation = clauses("not { $p knows $f } not ($p.a = 1)")
    assert isinstance(block, syntax.NotBlock)
    assert isinstance(negation, syntax.FilterClause)
    assert shape(negation.expression) == ("not", ("=", "$p.a", "1"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("$a or $b and $c", ("or", "$a", ("and", "$b", "$c"))),
        ("$a and $b or $c", ("or", ("and", "$a", "$b"), "$c")),
        ("($a or $b) and $c", ("and", ("or", "$a", "$b"), "$c")),
        ("not $a and $b", ("and", ("not", "$a"), "$b")),
        ("not ($a and $b)", ("not", ("and", "$a", "$b"))),
        ("not not $a", ("not", ("not", "$a"))),
        ("not $p.x = 1 and $b", ("and", ("not", ("=", "$p.x", "1")), "$b")),
        ("$a and $b and $c", ("and", "$a", "$b", "$c")),
        (
            '$p.x contains "a" or $p.y starts_with "b"',
            ("or", ("contains", "$p.x", '"a"'), ("starts_with", "$p.y", '"b"')),
        ),
        ("$p.x in [1] and $p.x != 2", ("and", ("in", "$p.x", "[1]"), ("!=", "$p.x", "2"))),
        ("($p.x = 1) = ($p.y = 2)", ("=", ("=", "$p.x", "1"), ("=", "$p.y", "2"))),
    ],
)
def test_precedence(text: str, expected: Any) -> None:
    assert shape(condition(text)) == expected


# --- mutations


def test_statements() -> None:
    body = parse(
        """query hire($name: String, $co: String) {
          insert Person { name: $name, joined: now() }
          insert WorksAt { from: $name, to: $co, since: date("2026-01-01") }
          update Person set { age: 3, order: 4 } where name = $name or limit > 3
        }"""
    ).body
    assert isinstance(body, syntax.Mutation)
    assert [type(statement).__name__ for statement in body.statements] == ["Insert", "Insert", "Update"]
    deletes = parse("query q { delete A where true delete B where x = 1 }").body
    assert isinstance(deletes, syntax.Mutation)
    assert len(deletes.statements) == 2


MIXING = (
    "mutation 'm' mixes inserts/updates and deletes; split it into separate mutations: "
    "(1) inserts and updates, then (2) deletes"
)


@pytest.mark.parametrize(
    "text",
    [
        "insert A { x: 1 } ⟦delete A where true⟧",
        "delete A where true ⟦insert A { x: 1 }⟧",
        "update A set { x: 1 } where true ⟦delete A where true⟧",
        "delete A where true delete B where true ⟦update A set { x: 1 } where true⟧ insert C { }",
    ],
)
def test_the_mixing_rule_is_enforced_while_parsing(text: str) -> None:
    source, [place] = unmarked(f"query m {{ {text} }}")
    assert problem(source) == (MIXING, None, place)


# --- bounds


def test_nesting_is_bounded() -> None:
    ok = "(" * 60 + "true" + ")" * 60
    predicate(ok)
    for deep in ("(" * 200 + "true" + ")" * 200, "not " * 200 + "true", "x in " + "[" * 200 + "]" * 200):
        message, hint, _ = problem(f"query q {{ delete T where {deep} }}")
        assert message == "more than 64 brackets or negations within each other"
        assert hint == "simplify the query"
    message, _, _ = problem("query q { match { " + "not { " * 100 + "}" * 100 + " } return { 1 as a } }")
    assert message == "more than 64 brackets or negations within each other"


def test_the_length_of_a_text_is_bounded() -> None:
    message, hint, _ = problem("query q { delete T where true }" + " " * MAX_SOURCE_LENGTH)
    assert message == f"the text is {MAX_SOURCE_LENGTH + 31} characters long; at most {MAX_SOURCE_LENGTH} are allowed"
    assert hint == "split the file"


def test_the_number_of_clauses_is_bounded() -> None:
    def query(count: int) -> str:
        return f"query q {{ match {{ {'$p: P ' * count} }} return {{ $p }} }}"

    parse(query(MAX_CLAUSES))
    message, _, _ = problem(query(MAX_CLAUSES + 1))
    assert message == f"the match block has {MAX_CLAUSES + 1} clauses; at most {MAX_CLAUSES} are allowed"
    searches = " and ".join(['search($p.x, "a")'] * MAX_CLAUSES)
    message, _, _ = problem(f"query q {{ match {{ $p: P {searches} }} return {{ $p }} }}")
    assert message.startswith("the match block has")


def test_a_long_conjunction_is_no_nesting() -> None:
    tree = predicate(" and ".join(["x = 1"] * 5000))
    assert isinstance(tree, syntax.And)
    assert len(tree.items) == 5000


def test_numbers_have_bounds() -> None:
    assert problem("query q { delete T where x = " + "9" * 5000 + " }")[0] == (
        "an integer of 5000 digits does not fit any type"
    )
    assert problem("query q { delete T where x = 1e999 }")[0] == "the number is too large for a float"


@pytest.mark.parametrize(
    "where",
    [
        "offset > 3",
        "first = 1 and offset = 3",
        "3 < offset",
        "offset + 1 > last",
        'matches matches "x"',
        "is is null",
        'ends_with ends_with "x"',
        "distinct in [1, 2]",
        "with = having",
        "case = 3",
        "not (exists or optional)",
        "size(new) > 1",
    ],
)
def test_words_of_the_language_are_properties_in_a_where(where: str) -> None:
    for text in (f"delete T where {where}", f"update T set {{ offset: offset + 1 }} where {where}"):
        [query] = parse_queries(f"query q {{ {text} }}").queries
        assert isinstance(query.body, syntax.Mutation)
        statement = query.body.statements[0]
        assert isinstance(statement, syntax.Delete | syntax.Update)
        assert statement.predicate is not None
        assert expression_text(statement.predicate) == where


def test_a_block_may_start_with_a_number_and_an_edge_may_be_called_like_a_block() -> None:
    source = "query q { match { $p: P optional { -3 < $p.x } exists { 3 < $p.x } $p exists{1,2} $f } return { $p } }"
    [query] = parse_queries(source).queries
    assert isinstance(query.body, syntax.Read)
    assert [type(clause) for clause in query.body.clauses] == [
        syntax.Bind,
        syntax.OptionalBlock,
        syntax.ExistsBlock,
        syntax.Traversal,
    ]


def test_an_edge_may_be_called_like_an_operator() -> None:
    source = 'query q { match { $p matches $f $p ends_with{1,2} $f $p.x matches "a" } return { $p matches "x" as m } }'
    [query] = parse_queries(source).queries
    assert isinstance(query.body, syntax.Read)
    kinds = [type(clause) for clause in query.body.clauses]
    assert kinds == [syntax.Traversal, syntax.Traversal, syntax.FilterClause]
    assert isinstance(query.body.projections[0].expression, syntax.Comparison)


@pytest.mark.parametrize("word", ["exists", "optional", "not"])
def test_a_block_may_hold_nothing_but_a_number(word: str) -> None:
    [query] = parse_queries(f"query q() {{ match {{ $a: P, {word} {{ -1 }} }} return {{ 1 as x }} }}").queries
    assert isinstance(query.body, syntax.Read)
    assert isinstance(query.body.clauses[1], syntax.ExistsBlock | syntax.OptionalBlock | syntax.NotBlock)
    [edge] = parse_queries(f"query q() {{ match {{ $a {word}{{1,2}} $b }} return {{ 1 as x }} }}").queries
    assert isinstance(edge.body, syntax.Read)
    assert isinstance(edge.body.clauses[0], syntax.Traversal)
