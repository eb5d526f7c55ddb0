"""What the planner expects and what it chooses from that: estimates, ids that are kept, the price of an adjacency."""

from __future__ import annotations

import pytest

from omnigraph.query.lower.compile import compile_query
from omnigraph.read.plan.choice import LOOKUP, Choices, choose
from omnigraph.read.plan.planner import plan_query
from omnigraph.read.plan.statistics import Statistics
from omnigraph.read.plan.steps import EitherStep, ExpandStep, InnerStep, Plan, every_step_of
from omnigraph.read.run import run_on
from omnigraph.read.tables.caches import ReadCaches
from omnigraph.read.tables.reader import ArrowTables
from tests.read.asking import graph
from tests.read.graphs import CATALOG, Database, arrow_tables

PERSON, KNOWS = "node:Person", "edge:Knows"
NAMES = [f"p{n:03d}" for n in range(100)]


def people(degree: int) -> Database:
    """A hundred people of whom each knows as many."""
    pairs = [(name, NAMES[(at + 1 + step) % 100]) for at, name in enumerate(NAMES) for step in range(degree)]
    return graph(NAMES, pairs)


def planned(reader: ArrowTables, clauses: str, parameters: str = "", **lengths: int) -> Plan:
    compiled = compile_query(f"query q({parameters}) {{ match {{ {clauses} }} return {{ $p.name }} }}", CATALOG)
    return plan_query(compiled, Statistics(CATALOG, reader, lengths=lengths))


def test_a_walk_is_expected_to_reach_more_with_each_hop() -> None:
    reader = ArrowTables(arrow_tables(people(3)))

    def reached(hops: str) -> float:
        plan = planned(reader, f'$p: Person {{ name: "p000" }}  $p knows{hops} $q')
        (step,) = [step for step in every_step_of(plan) if isinstance(step, ExpandStep)]
        return step.rows

    assert [reached(hops) for hops in ("", "{1,2}", "{2,2}", "{1,3}")] == [3.0, 12.0, 9.0, 39.0]
    assert reached("{1,9}") == 100.0, "not more than there are"


def test_a_list_among_the_parameters_is_expected_to_give_as_many_rows_as_it_has_values() -> None:
    reader = ArrowTables(arrow_tables(people(3)))

    def rows(**lengths: int) -> float:
        (step, *_) = every_step_of(planned(reader, "$p: Person  $p.name in $names", "$names: [String]", **lengths))
        return step.rows

    assert rows() == pytest.approx(10)
    assert [rows(names=length) for length in (2, 64, 1024)] == pytest.approx([2, 64, 100])


def test_a_query_is_planned_anew_when_its_lists_are_of_another_magnitude() -> None:
    clauses = "match { $p: Person  $p.name in $names  $p knows $q } return { count($q) as n }"
    reader, caches = ArrowTables(arrow_tables(people(3))), ReadCaches()
    compiled = compile_query(f"query q($names: [String]) {{ {clauses} }}", CATALOG)
    for count, plans in ((2, 1), (3, 1), (64, 2), (65, 2)):
        result = run_on(reader, CATALOG, caches, compiled, {"names": NAMES[:count]})
        assert (result.rows()[0]["n"], caches.plans.report().entries) == (3 * count, plans)


def test_an_either_is_expected_to_give_the_rows_of_all_its_arms_where_it_binds() -> None:
    reader = ArrowTables(arrow_tables(people(3)))

    def rows(arms: str) -> float:
        plan = planned(reader, f"$p: Person  {arms}")
        (step,) = [step for step in every_step_of(plan) if isinstance(step, EitherStep)]
        return step.rows

    assert rows("either { $p knows $x } or { $x knows $p }") == 600.0
    assert rows("either { $p.age = 1 } or { $p.age = 2 }") < 100.0


def test_a_block_is_matched_on_its_own_where_that_looks_at_fewer_rows() -> None:
    reader = ArrowTables(arrow_tables(people(3)))

    def seeded(clauses: str) -> bool:
        (step,) = [step for step in every_step_of(planned(reader, clauses)) if isinstance(step, InnerStep)]
        return step.seeded

    # From all people 300 edges are looked at, from those a condition leaves about 90, from one person 3.
    assert seeded("$p: Person  not { $p knows $q }")
    assert not seeded("$p: Person  not { $p knows $q  $q.age > 1 }")
    assert seeded('$p: Person { name: "p000" }  not { $p knows $q  $q.age > 1 }')


def test_look_ups_by_key_without_an_index_end_with_the_ids_in_memory() -> None:
    reader, caches = ArrowTables(arrow_tables(people(1))), ReadCaches()
    plan = planned(reader, '$p: Person { name: "p007" }')

    def chosen() -> bool:
        return PERSON in choose(plan, reader, CATALOG, caches).in_memory

    assert [chosen() for _ in range(3)] == [False, False, True]
    fresh = ReadCaches()
    fresh.node_ids(reader, PERSON)
    assert PERSON in choose(planned(reader, "$p: Person"), reader, CATALOG, fresh).in_memory
    assert PERSON not in choose(planned(reader, "$p: Person"), reader, CATALOG, ReadCaches()).in_memory


def test_an_adjacency_costs_more_the_more_edges_it_has_and_nothing_once_it_is_there() -> None:
    def of(degree: int, caches: ReadCaches) -> Choices:
        reader = readers[degree]
        return choose(planned(reader, "$p: Person  $p knows $q"), reader, CATALOG, caches)

    readers = {degree: ArrowTables(arrow_tables(people(degree))) for degree in (1, 9)}
    small, large = (of(degree, ReadCaches()).edges[KNOWS].csr_cost for degree in (1, 9))
    assert large > small > LOOKUP
    caches = ReadCaches()
    caches.node_ids(readers[9], PERSON)
    without_ids = of(9, caches).edges[KNOWS].csr_cost
    assert LOOKUP < without_ids < large
    caches.topology(readers[9], KNOWS, one_kind=True)
    assert of(9, caches).edges[KNOWS].csr_cost == 0
