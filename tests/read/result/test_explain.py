"""What the planner chooses, and how it says so."""

from __future__ import annotations

from omnigraph.config import override
from omnigraph.query.lower.compile import compile_query
from omnigraph.read.result.explain import Explanation
from omnigraph.read.run import run_on
from omnigraph.read.tables.caches import ReadCaches
from omnigraph.read.tables.reader import ArrowTables
from tests.read.asking import graph, person, run
from tests.read.graphs import CATALOG, arrow_tables

NAMES = [f"p{n:04d}" for n in range(1000)]
PEOPLE = graph(
    [person(name, age=at % 50) for at, name in enumerate(NAMES)],
    [(name, NAMES[(at * 7 + step) % 1000]) for at, name in enumerate(NAMES) for step in range(3)],
    teams="t",
    member_of=[(name, "t") for name in NAMES[:10]],
)


def explained(text: str, caches: ReadCaches | None = None, reader: ArrowTables | None = None) -> Explanation:
    compiled = compile_query(f"query q() {{ {text} }}", CATALOG)
    reader = reader or ArrowTables(arrow_tables(PEOPLE))
    found = run_on(reader, CATALOG, caches or ReadCaches(), compiled).explain()
    assert found is not None
    return found


def steps(explanation: Explanation) -> list[str]:
    return [f"{line.name} {line.what}".strip() for line in explanation.lines]


def test_the_plan_starts_where_the_fewest_rows_are():
    text = 'match { $a: Person  $a knows $b  $b: Person { name: "p0007" } } return { $a.name }'
    assert steps(explained(text))[:2] == [
        'scan $b: node:Person where $b.name = "p0007"',
        "expand $b <-Knows- $a: node:Person",
    ]


def test_single_variable_filters_go_into_the_scan_and_the_expansion():
    text = "match { $a: Person  $a knows $b  $a.age = 3  $b.age > 4 } return { $a.name }"
    assert steps(explained(text))[:2] == [
        "scan $a: node:Person where $a.age = 3",
        "expand $a -Knows-> $b: node:Person where $b.age > 4",
    ]


def test_both_ends_bound_is_a_check():
    text = "match { $a: Person  $a knows $b  $b knows $a } return { $a.name }"
    assert "check" in [line.name for line in explained(text).lines]


def test_not_asks_for_existence_only():
    assert steps(explained("match { $a: Person  not { $a knows $b } } return { $a.name }"))[1:3] == [
        "anti-join on $a",
        "exists $a -Knows->",
    ]


def test_not_with_a_selective_inside_finds_its_matches_first():
    text = 'match { $a: Person  not { $a knows $b  $b.name = "p0001" } } return { count($a) as n }'
    found = steps(explained(text))
    assert found[1] == "anti-join on $a, all matches first"
    assert found[2].startswith("scan $b")


def test_the_mode_can_be_forced_and_says_so():
    text = "match { $a: Person  $a knows $b } return { $a.name }"
    for mode in ("indexed", "csr"):
        with override(traversal_mode=mode):
            assert f"{mode} (forced)" in explained(text).to_text()


def test_a_large_frontier_is_followed_in_memory_and_a_small_one_by_look_up():
    class Indexed(ArrowTables):
        def is_indexed(self, table_key: str, column: str) -> bool:
            return True

    reader = Indexed(arrow_tables(PEOPLE))
    wide = explained("match { $a: Person  $a knows $b } return { $a.name }", reader=reader)
    narrow = explained('match { $a: Person { name: "p0001" }  $a knows $b } return { $b.name }', reader=reader)
    assert wide.lines[1].choice.startswith("csr")
    assert narrow.lines[1].choice.startswith("indexed")


def test_look_ups_turn_into_an_adjacency_when_they_have_cost_as_much():
    class Indexed(ArrowTables):
        def is_indexed(self, table_key: str, column: str) -> bool:
            return True

    reader, caches = Indexed(arrow_tables(PEOPLE)), ReadCaches()
    text = 'match { $a: Person { name: "p0001" }  $a knows $b } return { $b.name }'
    choices = [explained(text, caches, reader).lines[1].choice.split(":")[0] for _ in range(12)]
    assert choices[0] == "indexed"
    assert choices[-1] == "csr"
    assert choices == sorted(choices, reverse=True)


def test_a_run_shows_estimates_real_rows_and_times():
    found = explained("match { $a: Person  $a.age = 3 } return { $a.name } limit 5")
    scan = found.lines[0]
    assert scan.rows == 20
    assert scan.estimate is not None
    assert scan.seconds is not None
    assert found.to_json()["run"]["rows"] == 5
    assert found.to_json()["steps"][0]["estimated_rows"] == scan.estimate
    assert "5 rows" in found.to_text().splitlines()[-1]


def test_sums_do_not_depend_on_the_plan():
    rates = [person(name, score=1 / (at + 3)) for at, name in enumerate(NAMES)]
    people = {**PEOPLE, "node:Person": rates}
    compiled = compile_query("query q() { match { $a: Person  $a knows $b } return { sum($b.score) as s } }", CATALOG)
    found = set()
    for mode in ("csr", "indexed"):
        for order in (people, {key: rows[::-1] for key, rows in people.items()}):
            with override(traversal_mode=mode):
                found.add(run_on(ArrowTables(arrow_tables(order)), CATALOG, ReadCaches(), compiled).scalar())
    assert len(found) == 1


def test_every_kind_of_block_has_its_line():
    text = (
        "match { $p: Person  exists { $p knows $e }  either { $p knows $z } or { $z knows $p } "
        "optional { $p knows{1,2}[since > 1] $q as $w } } with { $p, count($q) as n } limit 2 "
        "match { $p knows|memberOf $x } return distinct { $p.name, n, $x.@type as t } offset 1"
    )
    found = run(graph("a b", "ab ba"), text).explain()
    assert found is not None
    names = [line.name for line in found.lines]
    for name in ("semi-join", "either", "arm", "optional", "aggregate", "stage", "distinct", "limit", "project"):
        assert name in names
    shown = found.to_text()
    assert "$p -Knows->{1,2}[since > 1] $q: node:Person as $w" in shown
    assert "$p -Knows|MemberOf-> $x: node:Person|Team" in shown
    assert "all from row 1 on" in shown


def test_a_sort_says_its_directions():
    text = "match { $a: Person } return { $a.name } order { $a.age desc nulls last, $a.name }"
    assert "sort by $a.age desc nulls last, $a.name, id of $a" in steps(explained(text))
