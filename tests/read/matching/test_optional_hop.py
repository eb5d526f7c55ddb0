"""An `optional` of one hop: the rows of the join and those it leaves alone, by every form and in every direction."""

from __future__ import annotations

import pytest

from tests.read.asking import ask, graph, person, run, values

PEOPLE = graph(
    [person("a", age=1, score=0.5), person("b", age=2), person("c"), person("d", age=4, score=2.0)],
    [("a", "b"), ("a", "b"), ("b", "b"), ("d", "a", {"since": 7}), ("d", "a", {"since": 8}), ("d", "c")] * 3,
    teams="t u",
    member_of=[("a", "t"), ("d", "t"), ("d", "u")],
)
ROWS = {
    "$p knows $q": [("a", "b"), ("b", "b"), ("c", None), ("d", "a"), ("d", "c")],
    "$q knows $p": [("a", "d"), ("b", "a"), ("b", "b"), ("c", "d"), ("d", None)],
    "$p <knows> $q": [("a", "b"), ("a", "d"), ("b", "a"), ("b", "b"), ("c", "d"), ("d", "a"), ("d", "c")],
    "$p memberOf $q": [("a", "t"), ("b", None), ("c", None), ("d", "t"), ("d", "u")],
    "$p knows $q  $q.age > 1": [("a", "b"), ("b", "b"), ("c", None), ("d", None)],
}


@pytest.mark.parametrize("hop", ROWS)
def test_a_row_from_which_nothing_is_reached_stays_once(hop: str) -> None:
    found = ask(PEOPLE, f"match {{ $p: Person  optional {{ {hop} }} }} return {{ $p.name, $q.@id as q }}")
    assert values(found) == ROWS[hop]


def test_a_bound_edge_gives_a_row_each() -> None:
    found = values(
        ask(
            PEOPLE,
            "match { $p: Person  optional { $p $w:knows $q } } return { $p.name, count($w) as n, sum($w.since) as s }",
        )
    )
    assert found == [("a", 6, None), ("b", 3, None), ("c", 0, None), ("d", 9, 45)]


@pytest.mark.parametrize(
    ("aggregate", "expected"),
    [
        ("count($q)", 18),
        ("count($q.age)", 15),
        ("sum($q.age)", 6 * 2 + 3 * 2 + 6 * 1),
        ("max($q.name)", "c"),
        ("sum($q.score)", 6 * 0.5),
        ("collect(distinct $q.name)", ["b", "a", "c"]),
    ],
)
def test_aggregates_skip_rows_that_were_left_alone(aggregate: str, expected: object) -> None:
    # More rows than people, so values are taken from whole columns, those of `$w` and of rows alone left out.
    text = f"match {{ $p: Person  optional {{ $p $w:knows $q }} }} return {{ {aggregate} as n }}"
    assert values(ask(PEOPLE, text)) == [expected]


def test_whole_numbers_without_nulls_are_summed_past_the_rows_that_were_left_alone() -> None:
    people = graph([person(name, age=at) for at, name in enumerate("abcd")], [("b", "d"), ("b", "c"), ("d", "d")] * 3)
    text = "match { $p: Person  optional { $p $w:knows $q } } return { sum($q.age) as s, avg($q.age) as m }"
    assert values(ask(people, text)) == [(24, 24 / 9)]


def test_in_memory_an_edge_to_a_node_that_is_not_there_leaves_a_row_alone() -> None:
    people = graph("a b c", [("a", "zz"), ("b", "zz"), ("b", "c")])
    text = "match { $p: Person  optional { $p knows $q } } return { $p.name, $q.name as q }"
    assert values(run(people, text, "csr").rows()) == [("a", None), ("b", "c"), ("c", None)]


def test_a_hop_from_what_an_optional_left_null_finds_nothing() -> None:
    text = (
        "match { $p: Person  optional { $p knows $q }  optional { $q memberOf $t } } "
        "return { $p.name, $q.name as q, $t.title as t }"
    )
    assert values(ask(PEOPLE, text)) == [
        ("a", "b", None),
        ("b", "b", None),
        ("c", None, None),
        ("d", "a", "t"),
        ("d", "c", None),
    ]


@pytest.mark.parametrize("names", [["n07"], ["n00", "n03", "n09"], [f"n{number:02d}" for number in range(12)]])
@pytest.mark.parametrize("edge", ["", "$w:"])
def test_few_nodes_and_many_find_the_same(names: list[str], edge: str) -> None:
    """Few look up their neighbours and have nothing put in; many are a stretch of what is kept for all.

    n08 to n11 are in no edge, n00 is only an end.
    """
    reached = {1: [0, 2], 2: [2], 3: [0, 1, 7], 5: [4], 7: [7]}
    people = graph(
        [person(f"n{number:02d}", age=number) for number in range(12)],
        [(f"n{source:02d}", f"n{target:02d}") for source, targets in reached.items() for target in targets],
    )
    found = ask(
        people,
        "query q($names: [String]) { match { $p: Person  $p.name in $names  optional { $p "
        f"{edge}knows $q }} }} return {{ $p.age as p, $q.age as q }} }}",
        params={"names": names},
    )
    starts = [int(name[1:]) for name in names]
    assert values(found) == [(start, end) for start in starts for end in reached.get(start, [None])]


@pytest.mark.parametrize("value", [3, 0.5, 2**60])
def test_sums_of_groups_take_rows_that_were_left_alone_for_nothing(value: float) -> None:
    name = "big" if value > 3 else "score" if value < 1 else "age"
    people = graph(
        [person(each, active=each in "ab", **{name: value}) for each in "abcd"],
        [("a", "b"), ("a", "c"), ("d", "d")] * 4,
    )
    text = (
        "match { $p: Person  optional { $p $w:knows $q } } return "
        f"{{ $p.active as g, sum($q.{name}) as s, avg($q.{name}) as m, min($q.{name}) as l, count($q.{name}) as n }}"
    )
    assert values(ask(people, text)) == [(False, 4 * value, value, value, 4), (True, 8 * value, value, value, 8)]
    alone = 'match { $p: Person  $p.name in ["b", "c"]  optional { $p knows $q } } '
    assert values(ask(people, f"{alone} return {{ sum($q.{name}) as s, avg($q.{name}) as m }}")) == [(None, None)]
