"""A plan that leaves a condition out, or applies one twice, cannot be made."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from omnigraph.errors import InternalError
from omnigraph.query.lower.compile import compile_query
from omnigraph.read.plan.planner import plan_query
from omnigraph.read.plan.statistics import Statistics
from omnigraph.read.plan.steps import (
    CheckStep,
    CombineStep,
    ExpandStep,
    InnerStep,
    PlannedBlock,
    ScanStep,
    Step,
    every_step,
)
from omnigraph.read.tables.reader import ArrowTables
from tests.read.asking import graph
from tests.read.graphs import CATALOG, arrow_tables

QUERIES = [
    "$a: Person  $a.age > 3  $a knows $b  $b.age < 3  $a.age < $b.age",
    "$a: Person  $a $e:knows $b  $b $f:knows $a  $e.since = $f.since  $e.since > 1",
    "$a: Person  $t: Team  $a.age = $t.size  $a.name = $t.title  $t.size > 3",
    '$a: Person  search($a.bio, "x")  $t: Team  $a knows{1,3} $a',
    "$a: Person  not { $a knows $b  $b.age > 3  not { $b memberOf $t  $t.size > 1 } }",
    "$a: Person  not { $a $e:knows $a  $e.since > 1  ($e.since = $a.age or $a.active) }",
]


def planned(clauses: str) -> PlannedBlock:
    query = compile_query(f"query q() {{ match {{ {clauses} }} return {{ $a.name }} }}", CATALOG)
    reader = ArrowTables(arrow_tables(graph("a b c", "ab bc", teams="t u")))
    return plan_query(query, Statistics(CATALOG, reader)).stages[0].block


def blocks(block: PlannedBlock) -> Iterator[PlannedBlock]:
    """A block and all blocks inside it."""
    yield block
    for step in every_step(block.steps):
        if isinstance(step, InnerStep):
            yield step.inner


def spoiled(step: Step) -> Iterator[tuple[Step, ...]]:
    """The step with something missing or something twice."""
    yield ()
    yield (step, step)
    for name in ("filters", "edge_filters", "to_filters", "on"):
        conditions = getattr(step, name, ())
        if conditions:
            yield (replace(step, **{name: conditions[1:]}),)
            yield (replace(step, **{name: (*conditions, conditions[0])}),)
    if isinstance(step, CombineStep):
        for at, inner in enumerate(step.steps):
            for instead in spoiled(inner):
                yield (replace(step, steps=(*step.steps[:at], *instead, *step.steps[at + 1 :])),)


@pytest.mark.parametrize("clauses", QUERIES)
def test_a_plan_with_a_condition_too_few_or_too_many_cannot_be_made(clauses):
    tried = 0
    for block in blocks(planned(clauses)):
        for at, step in enumerate(block.steps):
            for instead in spoiled(step):
                tried += 1
                with pytest.raises(InternalError, match="plan of this query"):
                    PlannedBlock(block.block, (*block.steps[:at], *instead, *block.steps[at + 1 :]))
    assert tried >= 4


def test_a_condition_is_not_applied_before_its_variables_are_bound():
    block = planned("$a: Person  $a knows $b  $a.age < $b.age")
    assert [type(step).__name__ for step in block.steps] == ["ScanStep", "ExpandStep", "FilterStep"]
    scan, expand, compare = block.steps
    assert isinstance(scan, ScanStep)
    assert isinstance(expand, ExpandStep)
    for steps in ((scan, compare, expand), (expand, scan, compare)):
        with pytest.raises(InternalError, match="before"):
            PlannedBlock(block.block, steps)


def test_an_edge_that_closes_a_cycle_is_followed_before_the_conditions_on_it():
    block = planned(QUERIES[1])
    names = [type(step) for step in block.steps]
    assert CheckStep in names
    assert names.index(CheckStep) < len(names) - 1
