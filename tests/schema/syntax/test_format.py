"""The formatter: one layout, comments kept, nothing changed in meaning, twice as good as once."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings

from omnigraph.errors import SchemaError
from omnigraph.schema.syntax.format import format_schema, print_schema
from omnigraph.schema.syntax.parse import parse_schema
from omnigraph.schema.syntax.source import comments_of
from tests.schema.sample import SAMPLE
from tests.strategies.schemas import messy_schema_sources, schema_sources

VALUES = ", ".join(letter * 21 for letter in "abcde")
MESSY = """\
/* licence
   text */


// about named
interface Named{name:String}// trailing
node   Person@desc("x") /* mid */ implements Named,Foo   { // head
   slug:String@key,  // the key

   // leading


   age : I32 ? /* inner */ @index /* tail */ bio: String @check(bio,"a"),
   e: enum(VALUES)? @index // x
   // last
}
interface Foo { /* only */ }
edge A: Person->Person
edge B: Person->Person @card( .. 3 )
edge C: Person->Person { @key(@src, dst) @unit( k = 1 ) }  // done
edge D: Person -> Person { }
// end"""

TIDY = """\
/* licence
   text */

// about named
interface Named {
    name: String
}  // trailing

/* mid */
node Person @desc("x") implements Named, Foo {  // head
    slug: String @key  // the key

    // leading

    /* inner */
    age: I32? @index  /* tail */
    bio: String
    @check(bio, "a")
    e: enum(
        aaaaaaaaaaaaaaaaaaaaa, bbbbbbbbbbbbbbbbbbbbb, ccccccccccccccccccccc, ddddddddddddddddddddd,
        eeeeeeeeeeeeeeeeeeeee
    )? @index  // x
    // last
}

interface Foo {
    /* only */
}

edge A: Person -> Person
edge B: Person -> Person @card(..3)

edge C: Person -> Person {
    p: I32 @unit(k=1)
    @key(@src, dst)
}  // done

edge D: Person -> Person {}

// end
"""


def test_the_layout() -> None:
    source = MESSY.replace("{ @key(@src, dst) @unit( k = 1 ) }", "{ p:I32 @unit( k = 1 ), @key(@src, dst) }")
    assert format_schema(source.replace("VALUES", VALUES)) == TIDY


def test_formatting_twice_changes_nothing() -> None:
    assert format_schema(TIDY) == TIDY


def test_an_empty_text_stays_empty_and_comments_alone_stay() -> None:
    assert format_schema(" \n ") == ""
    assert format_schema("\n\n// alone\n\n\n/* two */") == "// alone\n\n/* two */\n"


def test_windows_line_ends_and_spaces_at_line_ends_go() -> None:
    assert format_schema("// a \r\nnode A {\r\n /* b \r\n c */ a: I32 }\r\n") == (
        "// a\nnode A {\n    /* b\n c */\n    a: I32\n}\n"
    )


def test_literals_keep_their_spelling() -> None:
    source = 'node A @note("\\u00e9", 1.50, 007) {}\n'
    assert format_schema(source) == source


def test_a_text_that_does_not_parse_is_refused() -> None:
    with pytest.raises(SchemaError):
        format_schema("node A {")


def test_a_text_that_parses_is_formatted_whatever_it_means() -> None:
    assert format_schema("node a{id:Foo}") == "node a {\n    id: Foo\n}\n"


@settings(max_examples=60, deadline=None)
@given(messy_schema_sources())
def test_meaning_and_comments_survive_and_twice_is_once(source: str) -> None:
    formatted = format_schema(source)
    assert parse_schema(formatted) == parse_schema(source)
    assert format_schema(formatted) == formatted
    assert Counter(words(source)) == Counter(words(formatted))


def words(source: str) -> list[str]:
    return [" ".join(comment.text.split()) for comment in comments_of(source)]


@settings(max_examples=60, deadline=None)
@given(schema_sources())
def test_parse_print_parse_gives_the_same_tree(source: str) -> None:
    tree = parse_schema(source)
    printed = print_schema(tree)
    assert parse_schema(printed) == tree
    assert format_schema(printed) == printed


def test_printing_the_sample() -> None:
    assert parse_schema(print_schema(parse_schema(SAMPLE))) == parse_schema(SAMPLE)
