"""The rules of `return`, `order` and `limit` on page 02, one test for each."""

from __future__ import annotations

import datetime

import pytest

from omnigraph.errors import BadRequest
from tests.read.asking import ask, graph, person, run, values


def test_an_entity_is_an_object_without_nulls_blobs_and_vectors():
    people = graph([person("a", age=3, spot=[1.0, 2.0], tags=[])])
    assert values(ask(people, "match { $p: Person } return { $p }")) == [
        {"@id": "a", "name": "a", "age": 3, "active": True, "tags": []}
    ]


def test_an_edge_is_an_object_with_its_ends():
    people = graph("a b", [("a", "b")])
    (edge,) = values(ask(people, "match { $p: Person  $p $w:knows $q } return { $w }"))
    assert (edge["@src"], edge["@dst"]) == ("a", "b")
    assert list(edge)[:3] == ["@id", "@src", "@dst"]


def test_columns_are_named_by_alias_else_by_property_else_by_variable():
    rows = ask(graph("a"), "match { $p: Person } return { $p.name as n, $p.age, $p }")
    assert list(rows[0]) == ["n", "p.age", "p"]


def test_every_other_column_is_a_group_key():
    people = graph([person("a", age=1), person("b", age=1), person("c")])
    text = "match { $p: Person } return { $p.age, count($p) as n }"
    assert values(ask(people, text)) == [(None, 1), (1, 2)]


def test_counting_an_entity_counts_rows_and_counting_a_property_counts_values():
    people = graph([person("a", age=1), person("b")])
    text = "match { $p: Person } return { count($p) as rows, count($p.age) as ages }"
    assert values(ask(people, text)) == [(2, 1)]


def test_sum_keeps_whole_numbers_whole_avg_gives_floats_and_both_skip_nulls():
    people = graph([person("a", age=1, score=0.5), person("b", age=2, score=0.25), person("c")])
    text = "match { $p: Person } return { sum($p.age) as s, avg($p.age) as a, sum($p.score) as f }"
    found = values(ask(people, text))
    assert found == [(3, 1.5, 0.75)]
    assert [type(value) for value in found[0]] == [int, float, float]


def test_a_mean_is_rounded_once():
    many = graph(teams="x")
    sizes = [2**53 + 2, 2**53 + 2, 2**53 + 1]  # as floats, their sum is 3 * (2**53 + 2) - 2
    many["node:Team"] = [{"id": f"t{at}", "title": f"t{at}", "size": size} for at, size in enumerate(sizes)]
    found = values(ask(many, "match { $t: Team } return { avg($t.size) as a, median($t.size) as m }"))
    assert found == [(sum(sizes) / 3, 2.0**53 + 2)]


@pytest.mark.parametrize(
    ("teams", "total"),
    [
        ([2**53 + 1] * 3, 3 * 2**53 + 3),
        ([2**63 - 1, -(2**63), 1], 0),
        ([2**63 - 2, 1], 2**63 - 1),
        ([-(2**63) + 1, -1], -(2**63)),
        ([2**62, -(2**62), 5, -7], -2),
    ],
)
def test_sums_of_large_integers_are_exact(teams, total):
    many = graph(teams="x")
    many["node:Team"] = [{"id": f"t{at}", "title": f"t{at}", "size": size} for at, size in enumerate(teams)]
    assert values(ask(many, "match { $t: Team } return { sum($t.size) as s }")) == [total]


def test_sums_of_unsigned_integers_are_unsigned():
    people = graph([person("a", big=2**63), person("b", big=2**63 - 1), person("c")])
    assert values(ask(people, "match { $p: Person } return { sum($p.big) as s }")) == [2**64 - 1]


@pytest.mark.parametrize(("name", "value"), [("big", 2**63), ("size", 2**62), ("size", -(2**62) - 1)])
def test_a_sum_that_does_not_fit_is_refused_and_named(name, value):
    full = graph([person("a", big=value if value > 0 else 0), person("b", big=max(value, 0))])
    full["node:Team"] = [{"id": f"t{at}", "title": f"t{at}", "size": min(value, 2**62)} for at in range(2)]
    kind = "Person" if name == "big" else "Team"
    with pytest.raises(BadRequest, match=rf"does not fit [IU]64 in `sum\(\$x\.{name}\)`") as caught:
        ask(full, f"match {{ $x: {kind} }} return {{ $x.{name} as k, sum($x.{name}) as s }}")
    assert caught.value.details["expression"] == f"sum($x.{name})"


@pytest.mark.parametrize("name", ["age", "score", "rate", "active", "name", "born", "seen", "big"])
def test_min_and_max_keep_the_type(name):
    low = {"age": -1, "score": 0.5, "rate": 0.5, "active": False, "name": "B", "big": 1}
    high = {"age": 7, "score": 2.5, "rate": 2.5, "active": True, "name": "é", "big": 2**64 - 1}
    low |= {"born": datetime.date(2000, 1, 1), "seen": datetime.datetime(2000, 1, 1, tzinfo=datetime.UTC)}
    high |= {"born": datetime.date(2020, 1, 1), "seen": datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)}
    people = graph([{**person("B"), name: low[name]}, {**person("é"), name: high[name]}])
    text = f"match {{ $p: Person }} return {{ min($p.{name}) as low, max($p.{name}) as high }}"
    assert values(ask(people, text)) == [(low[name], high[name])]


@pytest.mark.parametrize("scores", [(-0.0,), (0.0, -0.0), (-0.0, 0.0)])
def test_least_and_greatest_of_the_two_zeros_are_one_zero(scores):
    people = [person(str(at), score=score) for at, score in enumerate(scores)]
    found = ask(graph(people), "match { $p: Person } return { min($p.score) as low, max($p.score) as high }")
    assert [str(value) for value in values(found)[0]] == ["0.0", "0.0"]


def test_only_aggregates_over_an_empty_match_give_one_row():
    text = "match { $p: Person } return { count($p) as n, sum($p.age) as s, avg($p.age) as a, min($p.name) as m }"
    assert values(ask(graph(), text)) == [(0, None, None, None)]


def test_grouped_aggregates_over_an_empty_match_give_no_row():
    assert ask(graph(), "match { $p: Person } return { $p.age, count($p) as n }") == []


def test_order_by_an_aggregate_and_by_an_alias():
    people = graph("a b c", "ab ac bc")
    text = "match { $p: Person  $p knows $q } return { $p.name, count($q) as n } order { %s }"
    assert values(ask(people, text % "count($q) desc")) == [("a", 2), ("b", 1)]
    assert values(ask(people, text % "n")) == [("b", 1), ("a", 2)]


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        ("$p nulls last", ["a", "b", "c"]),
        ("$p desc nulls first", ["c", "b", "a"]),
        ("$p.name nulls last", ["a", "b", "c"]),
        ("$k nulls last, $p", ["b", "c", "a"]),
        ("$k desc nulls first, $p", ["a", "c", "b"]),
    ],
)
def test_only_what_an_optional_left_out_is_null_among_entities(order, expected):
    people = graph("a b c", [("b", "a"), ("c", "b")])
    text = f"match {{ $p: Person  optional {{ $p knows $k }} }} return {{ $p.name }} order {{ {order} }}"
    assert values(ask(people, text)) == expected


def test_nulls_sort_as_the_smallest_value():
    people = graph([person("a", age=0), person("b"), person("c", age=-5)])
    text = "match { $p: Person } return { $p.age } order { $p.age %s }"
    assert values(ask(people, text % "asc")) == [None, -5, 0]
    assert values(ask(people, text % "desc")) == [0, -5, None]


def test_ids_sort_by_code_point():
    names = ["b", "B", "é", "\U0001d11e", "\uffff", "a", "10", "9"]
    rows = ask(graph([person(name) for name in names]), "match { $p: Person } return { $p.name }")
    assert values(rows) == sorted(names)


def test_ties_are_broken_by_ids_in_order_of_binding_whatever_the_direction():
    people = graph("c a b", "ac ab cb")
    text = "match { $p: Person  $p knows $q } return { $p.name as p, $q.name as q } order { $p.active desc }"
    assert values(ask(people, text)) == [("a", "b"), ("a", "c"), ("c", "b")]


def test_rows_come_in_id_order_without_an_order():
    people = graph("c a b", "ac ab cb")
    text = "match { $q: Person  $p knows $q } return { $q.name as q, $p.name as p }"
    assert values(ask(people, text)) == [("b", "a"), ("b", "c"), ("c", "a")]


def test_limit_keeps_the_first_rows_and_limit_zero_keeps_none():
    people = graph("c a b")
    text = "query q($n: I64) { match { $p: Person } return { $p.name } limit $n }"
    assert values(ask(people, text, params={"n": 2})) == ["a", "b"]
    assert ask(people, text, params={"n": 0}) == []


def test_a_negative_limit_is_refused():
    with pytest.raises(BadRequest, match="limit"):
        ask(graph("a"), "query q($n: I64) { match { $p: Person } return { $p.name } limit $n }", params={"n": -1})


def test_limit_zero_of_only_aggregates_is_empty_too():
    assert ask(graph("a"), "match { $p: Person } return { count($p) as n } limit 0") == []


def test_comparisons_parameters_and_literals_can_be_returned():
    people = graph([person("a", age=3), person("b")])
    text = "query q($x: I64) { match { $p: Person } return { $p.age > 2 as old, $x as x, 7 as seven, $p.name } }"
    assert values(ask(people, text, params={"x": 5})) == [(True, 5, 7, "a"), (None, 5, 7, "b")]


def test_now_is_one_instant_per_run():
    one, two = values(run(graph("a b"), "match { $p: Person } return { now() as at }").rows())
    assert one == two


def test_the_same_rows_and_columns_whatever_the_size_of_the_table():
    people = graph([person(f"p{n:05d}", age=n % 7) for n in range(3000)])
    text = "match { $p: Person  $p.age = 3 } return { $p.name, $p.age } order { $p.name desc } limit 3"
    assert values(ask(people, text)) == [("p02999", 3), ("p02992", 3), ("p02985", 3)]


def test_lists_can_be_group_keys():
    people = graph([person("a", tags=["y"]), person("b", tags=["x", "y"]), person("c", tags=["y"]), person("d")])
    people["node:Person"].append(person("e", tags=["x"]))
    text = "match { $p: Person } return { $p.tags, count($p) as n }"
    assert values(ask(people, text)) == [(None, 1), (["x"], 1), (["x", "y"], 1), (["y"], 2)]


def test_groups_can_be_ordered_by_an_entity_that_is_a_key():
    text = "match { $p: Person } return { $p, count($p) as n } order { $p desc }"
    assert [row["p"]["@id"] for row in ask(graph("a c b"), text)] == ["c", "b", "a"]


def test_a_stage_that_begins_behind_some_rows_hands_on_the_rest():
    people = graph([person(name, age=age) for name, age in zip("abcdef", (5, 4, 3, 2, 1, None), strict=True)])
    counted = "match { $p: Person } return { count($p) as n, count($p.age) as ages, sum($p.age) as total }"
    assert ask(people, f"match {{ $p: Person }} with {{ $p }} offset 4 {counted}") == [{"n": 2, "ages": 1, "total": 1}]
    assert ask(people, f"match {{ $p: Person }} with {{ $p }} order {{ $p.age }} limit 3 offset 2 {counted}") == [
        {"n": 3, "ages": 3, "total": 2 + 3 + 4}
    ]
    by_value = "with { $p.age as age } order { age desc } limit 2 offset 1 match { $q: Person  $q.age = age }"
    rows = ask(people, f"match {{ $p: Person }} {by_value} return {{ age, $q.name as name }}")
    assert rows == [{"age": 3, "name": "c"}, {"age": 4, "name": "b"}]
