"""Whose identity a query looks at, and which traversals begin with the edges: the less, the less is read."""

from __future__ import annotations

import datetime

import pytest

from omnigraph.query import ir
from omnigraph.query.lower.compile import compile_query
from omnigraph.query.predicates import bound
from omnigraph.read.tables.arrow_types import result_type
from omnigraph.schema.compiler.compile import compile_schema
from omnigraph.spark.query.conditions import Conditions
from omnigraph.spark.query.identities import Identities, with_rows_counted
from omnigraph.spark.query.needs import Needs, every_operator

CATALOG = compile_schema(
    """
    node Person { name: String @key  age: I32? }
    edge Knows: Person -> Person { since: I32? }
    """
)
NOW = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
WALK = "$a: Person  $a $e:knows $b  $b $f:knows $c"


def looked_at(text: str) -> tuple[Identities, ir.ReadQuery]:
    query = compile_query(f"query q() {{ match {{ {text} }} }}", CATALOG)
    assert isinstance(query, ir.ReadQuery)
    root = with_rows_counted(query.root)
    needs = Needs(query, lambda type_: result_type(type_, CATALOG))
    known = Identities(root, needs, Conditions(root, lambda expr: bound(expr, {}, NOW)))
    return known, query


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"{WALK} }} return {{ count($f) as n", {"b"}),
        (f"{WALK} }} return {{ count(distinct $f) as n", {"b", "f"}),
        (f"{WALK} }} return {{ $e.since, count($a) as n", {"b"}),
        (f"{WALK} }} return {{ $e.id, count($a) as n", {"b", "e"}),
        (f"{WALK} }} return {{ $c.age", {"a", "b", "c", "e", "f"}),
        (f"{WALK}  $c knows $a }} return {{ count($f) as n", {"a", "b", "c"}),
        (f"{WALK}  $a.age > 3 }} return {{ count($f) as n", {"a", "b"}),
        (f"{WALK}  not {{ $c knows $d }} }} return {{ count($f) as n", {"b", "c"}),
        ("$a: Person  optional { $a $e:knows $b } } return { count($e) as n", {"a", "b", "e"}),
        (f"{WALK} }} return {{ collect($f.since) as n", {"a", "b", "c", "e", "f"}),
        (f"{WALK} }} with {{ $f, count($e) as k }} match {{ $f.since > 3 }} return {{ k", {"b", "f"}),
        ("$a: Person } return { $a.age, count($a) as n", set()),
    ],
)
def test_whose_identity_is_looked_at(text: str, expected: set[str]) -> None:
    known, query = looked_at(text)
    assert {each.name for each in query.all_variables if known.told_apart(each.name)} == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("$a: Person  $a $e:knows $b } return { count($e) as n", [True]),
        ("$a: Person  $a knows $b } return { $b.age", [True]),
        ("$a: Person  $a knows $b } return { $a.age", [False]),
        ("$a: Person  $a knows $b  $a.age > 3 } return { count($b) as n", [False]),
        ('$a: Person  $a knows $b  $a.id = "x" } return { count($b) as n', [False]),
        ("$a: Person  $a knows $a } return { count($a) as n", [False]),
        ("$a: Person  $a knows{1,3} $b } return { count($b) as n", [False]),
        (f"{WALK} }} return {{ count($f) as n", [False, True]),
    ],
)
def test_which_traversals_begin_with_the_edges(text: str, expected: list[bool]) -> None:
    known, query = looked_at(text)
    steps = [each for each in every_operator(with_rows_counted(query.root)) if isinstance(each, ir.Expand)]
    assert [known.begins_with_edges(step) for step in steps] == expected
