"""The rules of `match` on page 02, one test for each."""

from __future__ import annotations

import pytest

from tests.read.asking import ask, graph, person, values

PAIRS = "match { $a: Person  $a %s $b } return { $a.name as a, $b.name as b }"


def test_inline_properties_are_equality_filters():
    people = graph([person("a", age=1), person("b", age=2)])
    assert values(ask(people, "match { $p: Person { age: 2 } } return { $p.name }")) == ["b"]


def test_inline_property_on_a_list_is_membership():
    people = graph([person("a", tags=["x", "y"]), person("b", tags=["y"]), person("c")])
    assert values(ask(people, 'match { $p: Person { tags: "x" } } return { $p.name }')) == ["a"]


def test_an_edge_is_followed_in_its_declared_direction():
    assert values(ask(graph("a b", "ab"), PAIRS % "knows")) == [("a", "b")]


def test_an_edge_reads_from_whichever_end_is_typed():
    people = graph("a b", teams="t u", member_of=[("a", "t"), ("b", "u")])
    from_target = 'match { $t: Team { title: "u" }  $p memberOf $t } return { $p.name }'
    assert values(ask(people, from_target)) == ["b"]


def test_a_pair_comes_once_however_many_edges_connect_it():
    assert values(ask(graph("a b", "ab ab ab"), PAIRS % "knows")) == [("a", "b")]


def test_a_pair_comes_once_however_many_walks_connect_it():
    diamond = graph("a b c d", "ab ac bd cd")
    assert values(ask(diamond, PAIRS % "knows{2,2}")) == [("a", "d")]


def test_variable_length_reports_by_shortest_distance():
    chain = graph("a b c d", "ab bc cd ac")
    # c is one hop from a by the short cut, so it is not two hops away, and d is two hops away, not three.
    assert values(ask(chain, PAIRS % "knows{2,3}")) == [("a", "d"), ("b", "d")]


def test_the_source_is_not_reported_by_a_cycle():
    assert values(ask(graph("a b", "ab ba"), PAIRS % "knows{1,4}")) == [("a", "b"), ("b", "a")]


def test_a_self_loop_puts_a_node_at_distance_one_from_itself():
    loop = graph("a b", "aa ab")
    assert values(ask(loop, PAIRS % "knows{1,3}")) == [("a", "a"), ("a", "b")]
    assert values(ask(loop, PAIRS % "knows{2,3}")) == []


def test_undirected_is_a_set_of_both_directions():
    assert values(ask(graph("a b c", "ab ba bc"), PAIRS % "<knows>")) == [
        ("a", "b"),
        ("b", "a"),
        ("b", "c"),
        ("c", "b"),
    ]


def test_an_edge_binding_gives_one_row_per_parallel_edge():
    parallel = graph("a b", [("a", "b", {"since": 2}), ("a", "b", {"since": 1})])
    text = "match { $a: Person  $a $w:knows $b } return { $w.since } order { $w.since }"
    assert values(ask(parallel, text)) == [1, 2]


def test_an_edge_binding_can_be_filtered_and_returned():
    parallel = graph("a b", [("a", "b", {"since": 2}), ("a", "b", {"since": 1})])
    text = "match { $a: Person  $a $w:knows $b  $w.since > 1 } return { $w }"
    assert values(ask(parallel, text)) == [{"@id": "k0", "@src": "a", "@dst": "b", "since": 2}]


def test_a_self_loop_is_bound_once_as_an_edge():
    loop = graph("a", [("a", "a")])
    assert values(ask(loop, "match { $a: Person  $a $w:knows $b } return { count($w) as n }")) == [1]


def test_asking_for_a_self_loop():
    assert values(ask(graph("a b", "aa ab"), "match { $p: Person  $p knows $p } return { $p.name }")) == ["a"]


def test_unrelated_variables_give_their_product():
    both = graph("a b", teams="t u")
    text = "match { $p: Person  $t: Team } return { $p.name as p, $t.title as t }"
    assert values(ask(both, text)) == [("a", "t"), ("a", "u"), ("b", "t"), ("b", "u")]


def test_unrelated_variables_join_on_equal_properties():
    people = graph([person("a", age=1), person("b", age=1), person("c", age=2), person("d"), person("e")])
    text = "match { $p: Person  $q: Person  $p.age = $q.age  $p.name < $q.name } return { $p.name as p, $q.name as q }"
    assert values(ask(people, text)) == [("a", "b")]


def test_a_variable_bound_twice_satisfies_both():
    triangle = graph("a b c", "ab bc ca ac")
    text = (
        "match { $a: Person  $a knows $b  $b knows $c  $a knows $c } "
        "return { $a.name as a, $b.name as b, $c.name as c }"
    )
    assert values(ask(triangle, text)) == [("a", "b", "c")]


def test_not_keeps_rows_without_an_inner_match():
    assert values(ask(graph("a b", "ab"), "match { $p: Person  not { $p knows $x } } return { $p.name }")) == ["b"]


def test_not_with_filters_on_outer_variables():
    people = graph([person("a", age=1), person("b", age=5)], "ab ba")
    text = "match { $p: Person  not { $p knows $x  $x.age > $p.age } } return { $p.name }"
    assert values(ask(people, text)) == ["b"]


def test_not_over_several_hops():
    chain = graph("a b c", "ab bc")
    text = 'match { $p: Person  not { $p knows{1,2} $x  $x.name = "c" } } return { $p.name }'
    assert values(ask(chain, text)) == ["c"]


def test_not_inside_not():
    # People all of whom know somebody: nobody they know knows nobody.
    chain = graph("a b c", "ab bc")
    text = "match { $p: Person  not { $p knows $x  not { $x knows $y } } } return { $p.name }"
    assert values(ask(chain, text)) == ["a", "c"]


def test_a_variable_bound_again_inside_not_is_the_same_variable():
    people = graph([person("a", age=1), person("b", age=2)])
    text = "match { $p: Person  not { $p: Person { age: 1 } } } return { $p.name }"
    assert values(ask(people, text)) == ["b"]


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("$p.age = null", ["none"]),
        ("$p.age != null", ["one", "two"]),
        ("$p.age != 1", ["two"]),
        ("not $p.age = 1", ["two"]),
        ("$p.age = 1 or $p.age != 1", ["one", "two"]),
        ("$p.age = 1 or $p.active", ["none", "one", "two"]),
        ("not ($p.age = 1 and $p.active)", ["two"]),
        ("$p.age in [1, 7]", ["one"]),
    ],
)
def test_null_compares_as_unknown(condition, expected):
    people = graph([person("one", age=1), person("two", age=2), person("none")])
    assert values(ask(people, f"match {{ $p: Person  {condition} }} return {{ $p.name }}")) == expected


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ('$p.bio contains "b%"', ["percent"]),
        ('$p.bio contains "A"', ["upper"]),
        ('$p.bio starts_with "a_"', ["score"]),
        ('$p.bio contains ""', ["percent", "score", "upper"]),
    ],
)
def test_string_predicates_are_exact_and_know_no_wildcards(condition, expected):
    people = graph(
        [person("percent", bio="ab%c"), person("score", bio="a_c"), person("upper", bio="Abc"), person("no")]
    )
    assert values(ask(people, f"match {{ $p: Person  {condition} }} return {{ $p.name }}")) == expected


def test_a_bare_boolean_property_is_a_filter():
    people = graph([person("a", active=True), person("b", active=False)])
    assert values(ask(people, "match { $p: Person  $p.active } return { $p.name }")) == ["a"]


def test_an_anonymous_variable_is_its_own_each_time():
    people = graph("a b c", "ab ac")
    text = "match { $p: Person  $p knows $_  $p knows $_ } return { count($p) as n }"
    assert values(ask(people, text)) == [4]


def test_ids_of_different_types_do_not_meet():
    # The person `x` and the team `x` are two nodes: a hop from one to the other is no self-loop.
    both = graph("x", teams="x", member_of=[("x", "x")])
    assert values(ask(both, "match { $p: Person  $p memberOf $t } return { $t.title }")) == ["x"]
