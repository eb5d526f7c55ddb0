"""What a condition connects is joined before what nothing connects."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from omnigraph.ledger.store import GraphStore, create_store
from omnigraph.query import ir
from omnigraph.query.lower.compile import compile_query
from omnigraph.spark.query.bindings import KEY, Bindings
from omnigraph.spark.query.joins.join_order import next_to_join, parts_and_conditions
from omnigraph.spark.query.needs import every_operator
from omnigraph.spark.query.run import query_frame
from tests.parity.graphs import put_rows

SCHEMA = "node Person { slug: String @key  age: I64? }\nedge Knows: Person -> Person { }"


@pytest.fixture
def graph(tmp_path: Path) -> GraphStore:
    store = create_store(str(tmp_path / "g"), SCHEMA)
    put_rows(store, {"node:Person": [{"id": f"p{n}", "slug": f"p{n}", "age": n} for n in range(4)]})
    return store


def joins_of(graph: GraphStore, match: str) -> ir.Operator:
    """The part of a compiled query that joins."""
    compiled = compiled_of(graph, match)
    return next(each for each in every_operator(compiled.root) if isinstance(each, ir.Join | ir.Filter))


def compiled_of(graph: GraphStore, match: str) -> ir.ReadQuery:
    text = f"query q() {{ match {{ {match} }} return {{ count($a) as n }} }}"
    compiled = compile_query(text, graph.catalog(graph.snapshot().schema_digest))
    assert isinstance(compiled, ir.ReadQuery)
    return compiled


def order_of(graph: GraphStore, match: str) -> list[str]:
    """The variables of the parts, in the order in which they are joined."""
    parts, conditions = parts_and_conditions(joins_of(graph, match))
    assert all(isinstance(part, ir.Scan) for part in parts)
    frame: Any = None
    bound = [Bindings(frame, {(part.var, KEY): part.var}) for part in parts if isinstance(part, ir.Scan)]
    rows = Bindings(frame, bound[0].places, waiting=tuple(conditions))
    rest = bound[1:]
    found = [*rows.vars]
    while rest:
        part = rest.pop(next_to_join(rows, rest))
        found += part.vars
        rows = Bindings(frame, {**rows.places, **part.places}, waiting=rows.waiting)
    return found


def test_without_conditions_the_order_is_that_of_the_text(graph: GraphStore) -> None:
    assert order_of(graph, "$a: Person  $b: Person  $c: Person") == ["a", "b", "c"]


def test_a_condition_brings_its_variables_together(graph: GraphStore) -> None:
    assert order_of(graph, "$a: Person  $b: Person  $c: Person  $d: Person  $a.age = $d.age") == ["a", "d", "b", "c"]
    match = "$a: Person  $b: Person  $c: Person  $d: Person  $c.age < $a.age  $d.age < $c.age"
    assert order_of(graph, match) == ["a", "c", "d", "b"]


def test_what_stands_below_a_condition_that_can_fail_stays_there(graph: GraphStore) -> None:
    operator = joins_of(graph, "$a: Person  $b: Person  $a.age / $b.age = 1  $a.age = $b.age")
    parts, conditions = parts_and_conditions(operator)
    assert (parts, conditions) == ([operator], [])


@pytest.mark.spark
def test_spark_does_not_meet_every_row_before_it_looks_at_the_condition(spark: Any, graph: GraphStore) -> None:
    compiled = compiled_of(graph, "$a: Person  $b: Person  $c: Person  $a.age = $c.age")
    frame = query_frame(spark, graph, graph.snapshot(), compiled)
    plan = frame._jdf.queryExecution().optimizedPlan().toString()
    joins = [line for line in plan.splitlines() if "Join" in line]
    assert len(joins) == 2
    assert "=" not in joins[0].split("CASE", 1)[0], "the first line is the join that is made last"
    assert " = " in joins[1]
    assert frame.collect()[0].n == 16
