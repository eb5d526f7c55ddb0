"""The formatter: one layout, comments kept, the same tree, and nothing more to do the second time."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omnigraph.errors import QueryParseError
from omnigraph.query.text.format import WIDTH, format_queries
from omnigraph.query.text.parse import parse_queries
from omnigraph.query.text.tokens import tokenize
from omnigraph.schema.syntax.source import comments_of
from tests.query.sample import CATALOG
from tests.query.test_parse import SAMPLE
from tests.strategies.queries import RandomQuery, read_queries


def test_the_layout_of_a_read() -> None:
    assert format_queries(SAMPLE) == (
        """query friends_in($name: String, $city: String?)
  @description("Friends of a person, by city")
  @instruction("Use for people look-ups") {
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
    )


def test_the_layout_of_mutations() -> None:
    source = """query m($a: I32){insert Person{name:"x" age:$a}
    update   Person set{age:1,bio:"y"}where(name="x")or not(age=1 and true)}
    query d{delete Person where name in["a","b"]}"""
    assert format_queries(source) == (
        """query m($a: I32) {
  insert Person { name: "x", age: $a }
  update Person set { age: 1, bio: "y" } where name = "x" or not (age = 1 and true)
}

query d {
  delete Person where name in ["a", "b"]
}
"""
    )


def test_long_lines_are_broken_at_blocks() -> None:
    columns = ", ".join(f"$person.property_number_{i} as column_{i}" for i in range(5))
    parameters = ", ".join(f"$parameter_number_{i}: String" for i in range(5))
    values = ", ".join(f'property_{i}: "some text that is long"' for i in range(4))
    text = format_queries(
        f"query q({parameters}) {{ match {{ $person: Person {{ {values} }} }} return {{ {columns} }} }}"
    )
    assert max(map(len, text.splitlines())) <= WIDTH
    assert "query q(\n  $parameter_number_0: String,\n" in text
    assert "    $person: Person {\n      property_0:" in text
    assert "  return {\n    $person.property_number_0 as column_0,\n" in text


def test_comments_stay_where_they_belong() -> None:
    source = """// about the file

/* about q */ query q { // open
  match { // in match
    $p: Person { name: "x", // n
       age: 3 } // after p

    $p knows{1,2} $f   $f.age >= 18 and ($f.x or /* mid */ $f.y) /* t */


    // last
  }
  return { $f.name $f.age // age
  }
  // before limit
  limit 20
  // end
} // after q
// end of file
"""
    assert format_queries(source) == (
        """// about the file

/* about q */
query q {  // open
  match {  // in match
    $p: Person {
      name: "x",  // n
      age: 3
    }  // after p

    $p knows{1,2} $f
    /* mid */
    $f.age >= 18 and ($f.x or $f.y)  /* t */

    // last
  }
  return {
    $f.name,
    $f.age  // age
  }
  // before limit
  limit 20
  // end
}  // after q
// end of file
"""
    )


@pytest.mark.parametrize(
    "expression",
    [
        "($p.a or $p.b) and $p.c",
        "$p.a and ($p.b and $p.c)",
        "not (not $p.a)",
        "not ($p.a and $p.b)",
        "($p.a = 1) = ($p.b = 2)",
        "(not $p.a) = true",
        "$p.a in [1, -2.50, 1e3]",
        '$p.a = "\\u00e4\\n"',
        '$p.a = date("2026-01-02")',
    ],
)
def test_parentheses_and_spellings_are_kept_where_they_matter(expression: str) -> None:
    source = f"query q {{ match {{ {expression} }} return {{ $p }} }}"
    text = format_queries(source)
    assert parse_queries(text) == parse_queries(source)
    assert format_queries(text) == text


def test_a_lone_variable_stays_apart_from_what_follows() -> None:
    source = "query q { match { $x, $p: Person $y, not $z } return { $p } }"
    text = format_queries(source)
    assert parse_queries(text) == parse_queries(source)


def test_a_text_that_does_not_parse_is_refused() -> None:
    with pytest.raises(QueryParseError):
        format_queries("query q {")


_SEPARATORS = (" ", "\n", "\t ", "  // a comment\n", " /* one, { two } */ ", "\r\n\n", "/* over\n   lines */", "//\n")


@st.composite
def laid_out(draw: st.DrawFn) -> str:
    """A random query (or two) with random white space and comments between all tokens."""
    queries: list[RandomQuery] = draw(st.lists(read_queries(CATALOG, max_hops=2), min_size=1, max_size=2))
    parts: list[str] = []
    for index, query in enumerate(queries):
        source = query.source.replace("query q", f'query q{index} @description("d")', 1)
        if "(" in query.source.split("{")[0]:
            source = query.source.replace("query q", f"query q{index}", 1)
        parts.extend(token.value for token in tokenize(source))
    separators = draw(st.lists(st.sampled_from(_SEPARATORS), min_size=len(parts) + 1, max_size=len(parts) + 1))
    return "".join(a + b for a, b in zip(separators, [*parts, ""], strict=True))


@settings(deadline=None, max_examples=150)
@given(laid_out())
def test_formatting_keeps_the_tree_and_the_comments_and_is_stable(source: str) -> None:
    text = format_queries(source)
    assert parse_queries(text) == parse_queries(source)
    assert format_queries(text) == text

    def comments(of: str) -> list[str]:
        return [re.sub(r"\s+", " ", comment.text) for comment in comments_of(of)]

    assert comments(text) == comments(source)
