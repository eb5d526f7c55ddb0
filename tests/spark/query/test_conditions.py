"""Which conditions reach a scan: those of its own block that mean the same to Lance, and no others."""

from __future__ import annotations

import datetime
from collections.abc import Iterator

import pytest

from omnigraph.query import ir
from omnigraph.query.lower.compile import compile_query
from omnigraph.query.predicates import bound
from omnigraph.schema.compiler.compile import compile_schema
from omnigraph.spark.query.conditions import Conditions
from omnigraph.spark.query.needs import every_operator
from omnigraph.spark.source.spark_filters import from_json, to_json
from omnigraph.storage.reading import filters
from omnigraph.storage.reading.filters import Filter

CATALOG = compile_schema(
    """
    node Person { name: String @key  age: I32?  score: F64?  born: Date?  active: Bool? }
    edge Knows: Person -> Person { since: I32? }
    """
)
COLUMNS = {"id", "src", "dst", "name", "age", "score", "born", "active", "since"}
NOW = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)


def pushed(clauses: str, var: str) -> list[Filter]:
    """What holds for a variable at each operator that binds it."""
    query = compile_query(f"query q() {{ match {{ {clauses} }} return {{ count($p) as n }} }}", CATALOG)
    assert isinstance(query, ir.ReadQuery)
    conditions = Conditions(query.root, lambda expr: bound(expr, {}, NOW))
    found = (conditions.on(operator, var, COLUMNS) for operator in binding(query.root, var))
    return [each for each in found if each is not None]


def binding(root: ir.Operator, var: str) -> Iterator[ir.Operator]:
    for operator in every_operator(root):
        match operator:
            case ir.Scan(var=name) if name == var:
                yield operator
            case ir.Expand(to_var=name, edge_var=edge) if var in (name, edge):
                yield operator


AGE = filters.compare("age", ">", 3)


@pytest.mark.parametrize(
    ("clauses", "var", "expected"),
    [
        ("$p: Person  $p.age > 3", "p", [AGE]),
        ("$p: Person  3 < $p.age", "p", [AGE]),
        ('$p: Person { name: "a" }', "p", [filters.eq("name", "a")]),
        ("$p: Person  $p.age in [1, 2]", "p", [filters.is_in("age", [1, 2])]),
        ("$p: Person  $p.age is not null", "p", [filters.not_(filters.is_null("age"))]),
        ('$p: Person  $p.born >= date("2020-01-02")', "p", [filters.compare("born", ">=", datetime.date(2020, 1, 2))]),
        ("$p: Person  $p.age > 3 or $p.active = true", "p", [filters.or_(AGE, filters.eq("active", True))]),
        ("$p: Person  $p $k:knows $q  $k.since = 2  $q.age > 3", "k", [filters.eq("since", 2)]),
        ("$p: Person  $p knows $q  $q.age > 3", "q", [AGE]),
        ("$p: Person  $p.age > 3  not { $p knows $_ }", "p", [AGE]),
        ("$p: Person  $p.age > 3  optional { $p knows $_ }", "p", [AGE]),
        # Of another block, of a variable that may be null, of two variables, not the same to Lance.
        ("$p: Person  not { $p knows $q  $p.age > 3 }", "p", []),
        ("$p: Person  optional { $p knows $q }  $q.age > 3", "q", []),
        ("$p: Person  $p knows $q  $p.age > $q.age", "p", []),
        ("$p: Person  $p.score > 0.5", "p", []),
        ("$p: Person  $p.age > 3.5", "p", []),
        ("$p: Person  12 / $p.age > 3", "p", []),
        ("$p: Person  $p.age > 3 or $p.score > 1.0", "p", []),
    ],
)
def test_conditions_reach_the_scan_of_their_own_block(clauses: str, var: str, expected: list[Filter]) -> None:
    assert pushed(clauses, var) == expected


def test_a_condition_survives_the_way_through_an_option() -> None:
    condition = filters.and_(
        filters.or_(filters.eq("name", "é"), filters.starts_with("name", "x")),
        filters.not_(filters.is_null("born")),
        filters.compare("born", "<", datetime.date(2020, 1, 2)),
        filters.is_in("age", [1, 2**40]),
    )
    assert from_json(to_json(condition)) == condition
