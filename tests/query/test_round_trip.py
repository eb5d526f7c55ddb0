"""What can be written can be read: random trees as text give the same trees, and formatting changes nothing."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st

from omnigraph.diagnostics import QueryParseError, QueryTypeError
from omnigraph.query.lower.compile import compile_file
from omnigraph.query.text import syntax
from omnigraph.query.text.format import format_queries
from omnigraph.query.text.parse import parse_queries
from omnigraph.query.text.print import (
    expression_text,
    header_text,
    order_text,
    projection_text,
    target_text,
    traversal_text,
    value_text,
)
from omnigraph.query.text.tokens import KEYWORDS, SOFT_KEYWORDS
from tests.query.sample import CATALOG, compiled
from tests.strategies.trees import expressions, query_trees

QUIET = settings(
    deadline=None,
    max_examples=40,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def block_text(clauses: tuple[syntax.Clause, ...]) -> str:
    return "{ " + " , ".join(clause_text(clause) for clause in clauses) + " }"


def clause_text(clause: syntax.Clause) -> str:
    match clause:
        case syntax.Bind(variable, type_, properties):
            inline = " { " + ", ".join(value_text(each) for each in properties) + " }" if properties else ""
            return f"${variable.name}: {type_.text}{inline}"
        case syntax.Traversal():
            return traversal_text(clause)
        case syntax.NotBlock(clauses):
            return f"not {block_text(clauses)}"
        case syntax.ExistsBlock(clauses):
            return f"exists {block_text(clauses)}"
        case syntax.OptionalBlock(clauses):
            return f"optional {block_text(clauses)}"
        case syntax.EitherBlock(arms):
            return "either " + " or ".join(block_text(arm.clauses) for arm in arms)
        case syntax.FilterClause(expression):
            return expression_text(expression)


def limits_text(part: syntax.Read | syntax.Stage) -> str:
    order = ", ".join(order_text(key) for key in part.order)
    text = f" order {{ {order} }}" if part.order else ""
    text += "" if part.limit is None else f" limit {expression_text(part.limit)}"
    return text + ("" if part.offset is None else f" offset {expression_text(part.offset)}")


def read_text(read: syntax.Read) -> str:
    text = f"match {block_text(read.clauses)}"
    for stage in read.stages:
        projections = ", ".join(projection_text(each) for each in stage.projections)
        text += f" with {'distinct ' if stage.distinct else ''}{{ {projections} }}"
        text += "" if stage.where is None else f" where {expression_text(stage.where)}"
        text += f"{limits_text(stage)} match {block_text(stage.clauses)}"
    projections = ", ".join(projection_text(each) for each in read.projections)
    text += f" return {'distinct ' if read.distinct else ''}{{ {projections} }}"
    if read.having:
        text += f" having {{ {', '.join(expression_text(each) for each in read.having)} }}"
    return text + limits_text(read)


def statement_text(statement: syntax.Statement) -> str:
    match statement:
        case syntax.Insert(type_, assignments):
            new = "new " if statement.new else ""
            return f"insert {new}{type_.text} {{ {', '.join(value_text(each) for each in assignments)} }}"
        case syntax.InsertRows(type_, rows, new):
            return f"insert {'new ' if new else ''}{type_.text} from ${rows.name}"
        case syntax.Update(target, assignments, predicate):
            where = "" if predicate is None else f" where {expression_text(predicate)}"
            return f"update {target_text(target)} set {{ {', '.join(value_text(a) for a in assignments)} }}{where}"
        case syntax.Delete(target, predicate):
            where = "" if predicate is None else f" where {expression_text(predicate)}"
            return f"delete {target_text(target)}{where}"


def query_text(query: syntax.Query) -> str:
    body = query.body
    if isinstance(body, syntax.Read):
        text = read_text(body)
    else:
        match = "" if body.clauses is None else f"match {block_text(body.clauses)} "
        text = match + " ".join(statement_text(each) for each in body.statements)
    return f"{header_text(query)} {{ {text} }}"


@QUIET
@given(expressions(3))
def test_an_expression_reads_back(expression: syntax.Expression) -> None:
    source = f"query q($a: I64, $b: String) {{ match {{ }} return {{ {expression_text(expression)} as v }} }}"
    [query] = parse_queries(source).queries
    assert isinstance(query.body, syntax.Read)
    assert query.body.projections[0].expression == expression


@QUIET
@given(query_trees())
def test_a_query_reads_back_and_formatting_keeps_it(query: syntax.Query) -> None:
    source = query_text(query)
    [found] = parse_queries(source).queries
    assert found == query
    text = format_queries(source)
    assert parse_queries(text).queries == (query,)
    assert format_queries(text) == text


@QUIET
@given(st.lists(query_trees(), min_size=1, max_size=2))
def test_any_tree_compiles_or_is_refused_with_a_place(queries: list[syntax.Query]) -> None:
    source = "\n".join(query_text(query).replace("query q", f"query q{at}", 1) for at, query in enumerate(queries))
    try:
        compile_file(source, CATALOG)
    except QueryTypeError as error:
        for diagnostic in error.diagnostics:
            assert 0 <= diagnostic.span.start < diagnostic.span.end <= len(source)


@pytest.mark.parametrize("word", [*KEYWORDS, *SOFT_KEYWORDS])
def test_every_keyword_is_a_name_where_a_name_may_stand(word: str) -> None:
    names = [word.capitalize() if each else word for each in (False, True)]
    schema = (
        f"node {names[1]} {{ {word}: I32?  key: String @key }} "
        f"edge {names[1]}Edge: {names[1]} -> {names[1]} {{ {word}: I32? }} edge X{word}: {names[1]} -> {names[1]}"
    )
    from omnigraph.schema.compile import compile_schema

    catalog = compile_schema(schema)
    node, edge = names[1], f"{word}Edge"
    source = f"""
    query {word} {{
      match {{ $a: {node} {{ {word}: 1 }} $a.{word} > 3 $a {edge} $b $a <{edge}> $b $a $w:{edge} $b $w.{word} = 1 }}
      return {{ $a.{word} as {word}, $b.{word} + 1 as other }}
      order {{ $a.{word} desc }}
    }}
    query m {{ insert {node} {{ {word}: 1, key: "x" }} update {node} set {{ {word}: 2 key: "y" }} where key = "z" }}
    query m2 {{ update {node} set {{ {word}: 2 }} where key = "z" }}
    """
    found = parse_queries(source)
    assert parse_queries(format_queries(source)) == found
    compile_file(syntax.QueryFile((found.queries[0], found.queries[2]), source, "a.gq"), catalog)


@pytest.mark.parametrize(
    "text",
    [
        "1" + " + 1" * 5000,
        "$p.tags" + "[0]" * 3000,
        "-" * 3000 + "1",
        "not " * 3000 + "true",
        "case { when true then " * 300 + "1" + " else 2 }" * 300,
        "lower(" * 500 + '"x"' + ")" * 500,
        "[" + "1, " * 100_001 + "1]",
    ],
    ids=["sum", "index", "minus", "not", "case", "calls", "list"],
)
def test_what_is_too_deep_or_too_long_is_refused(text: str) -> None:
    with pytest.raises(QueryParseError):
        compiled(f"query q {{ match {{ $p: Person }} return {{ {text} as v }} }}")
    with pytest.raises(QueryParseError):
        compiled(f"query q {{ delete Person where {text} = 1 }}")


@example("")
@QUIET
@given(st.text(alphabet="$pa.{}[]()<>|*+-/%=!:,@\"' \n10", max_size=40))
def test_token_soup(soup: str) -> None:
    for source in (soup, f"query q {{ match {{ {soup} }} return {{ $p }} }}", f"query q {{ delete T where {soup} }}"):
        try:
            compile_file(source, CATALOG)
        except (QueryParseError, QueryTypeError):
            continue
