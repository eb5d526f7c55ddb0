"""Queries stop when they are told to, and when they would hold too much."""

from __future__ import annotations

import threading

import pyarrow as pa
import pytest

from omnigraph.errors import BadRequest, Cancelled, QueryTimeout, ResourceLimit
from omnigraph.query.evaluate import room
from omnigraph.read.state.control import CancelToken
from tests.read.asking import graph, person, run

MANY = graph([person(f"p{n}") for n in range(2000)], teams=[f"t{n}" for n in range(2000)])
PRODUCT = "match { $p: Person  $t: Team } return { count($p) as n }"


def test_a_product_that_is_too_large_is_refused_before_it_is_made():
    with pytest.raises(ResourceLimit) as caught:
        run(MANY, PRODUCT, memory_limit=1_000_000)
    assert caught.value.details["limit"] == "query_memory"
    assert caught.value.details["limit_value"] == 1_000_000
    assert "OMNIGRAPH_QUERY_MEMORY" in caught.value.message
    assert "more selective" in caught.value.message


@pytest.mark.parametrize(
    ("order", "first"),
    [
        ("", [(0, 0), (0, 1), (0, 10)]),
        ("order { $t.title desc }", [(0, 999), (1, 999), (10, 999)]),
        ("order { $p.name desc, $t.title }", [(999, 0), (999, 1), (999, 10)]),
        ("order { $p.active, $t.title desc }", [(0, 999), (1, 999), (10, 999)]),
        ("order { $p.name = $t.title desc }", [(0, 0), (0, 1), (0, 10)]),
    ],
)
def test_a_product_with_a_limit_stops_early(order, first):
    text = f"match {{ $p: Person  $t: Team }} return {{ $p.name as p, $t.title as t }} {order} limit 3"
    found = run(MANY, text, memory_limit=30_000_000)
    assert [(row["p"], row["t"]) for row in found] == [(f"p{p}", f"t{t}") for p, t in first]


def test_a_product_of_three_with_a_condition_and_a_limit_stops_early():
    text = (
        "match { $p: Person  $t: Team  $q: Person  $q.name > $p.name  not { $p memberOf $t } } "
        "return { $p.name as p, $t.title as t, $q.name as q } limit 2"
    )
    found = run(MANY, text, memory_limit=60_000_000)
    assert [tuple(row.values()) for row in found] == [("p0", "t0", "p1"), ("p0", "t0", "p10")]


@pytest.mark.parametrize("mode", ["csr", "indexed"])
def test_an_expansion_that_is_too_large_is_refused(mode):
    names = [f"p{n}" for n in range(200)]
    dense = graph([person(name) for name in names], [(a, b) for a in names for b in names])
    with pytest.raises(ResourceLimit):
        run(
            dense,
            "match { $a: Person  $a knows $b  $b knows $c } return { count($a) as n }",
            mode,
            memory_limit=2_000_000,
        )


def test_within_the_limit_nothing_is_refused():
    assert run(MANY, PRODUCT, memory_limit=1_000_000_000).scalar() == 4_000_000


def test_a_cancelled_query_stops():
    token = CancelToken()
    token.cancel()
    with pytest.raises(Cancelled):
        run(MANY, PRODUCT, cancel=token)


def test_a_query_is_cancelled_from_another_thread():
    names = [f"p{n}" for n in range(400)]
    dense = graph([person(name) for name in names], [(a, b) for a in names[:60] for b in names])
    token = CancelToken()
    timer = threading.Timer(0.05, token.cancel)
    timer.start()
    text = "match { $a: Person  $a knows{1,4} $b } return { count($a) as n }"

    def run_until_cancelled() -> None:
        while True:
            run(dense, text, "csr", cancel=token)

    with pytest.raises(Cancelled):
        run_until_cancelled()


def test_a_query_stops_when_its_time_is_over():
    names = [f"p{n}" for n in range(400)]
    dense = graph([person(name) for name in names], [(a, b) for a in names[:60] for b in names])
    text = "match { $a: Person  $a knows $b  $b knows $c  $c knows $d } return { count($a) as n }"
    with pytest.raises(QueryTimeout, match=r"within 0\.001 s") as caught:
        run(dense, text, "csr", timeout=0.001)
    assert caught.value.details["timeout"] == 0.001
    assert run(MANY, "match { $p: Person } return { count($p) as n }", timeout=60).scalar() == 2000


@pytest.mark.parametrize(
    "limits",
    [{"timeout": 0}, {"timeout": "soon"}, {"timeout": float("nan")}, {"memory_limit": 0}, {"memory_limit": "1"}],
)
def test_a_limit_that_is_none_is_refused_in_words(limits):
    (name,) = limits
    with pytest.raises(BadRequest, match=f"{name} must be a .*number of .* above 0"):
        run(MANY, PRODUCT, **limits)


def test_texts_count_by_their_bytes():
    names = [f"p{n}" for n in range(200)]
    long = graph([person(name, bio=name * 10_000) for name in names], [(name, "p0") for name in names])
    for text in (
        "match { $p: Person  $p knows $q  $q.bio < $p.bio } return { count($p) as n }",
        "match { $p: Person } return { $p.bio as b, count($p) as n }",
        "match { $p: Person } return { $p.bio } order { $p.age }",
    ):
        with pytest.raises(ResourceLimit):
            run(long, text, memory_limit=1_000_000)


@pytest.mark.parametrize(
    "value",
    [
        'length(replace($s, "x", $s))',
        "length(replace($p.name + $s, $o, $s))",
        "length($p.name + $s + $s)",
        "length(join([$p.name, $s], $s))",
        "length(join($l, $s))",
        "size([$p.name, $s])",
        "size([$p.name] + [$s])",
        "length(case { when $p.name = $s then $p.name else $s })",
        "length(coalesce($p.bio, $s))",
    ],
)
def test_values_that_are_made_on_the_way_count(value):
    text = f"""query q($s: String, $o: String, $l: [String]) {{
        match {{ $p: Person  {value} > 0 }} return {{ count($p) as n }} }}"""
    given = {"s": "x" * 2000, "o": "x", "l": ["a"] * 3000}
    with pytest.raises(ResourceLimit) as caught:
        run(MANY, text, params=given, memory_limit=2_000_000)
    assert caught.value.details["needed"] > 2_000_000
    assert run(MANY, text, params={**given, "s": "x"}, memory_limit=200_000_000).scalar() == 2000


def test_texts_that_no_column_can_hold_are_refused_in_words():
    text = "query q($s: String) { match { $p: Person  length($p.name + $s) > 0 } return { count($p) as n } }"
    with pytest.raises(ResourceLimit, match=r"`\$p.name \+ \$s` would take"):
        run(MANY, text, params={"s": "x" * 1_100_000})


@pytest.mark.parametrize("value", ["$q.bio", "$q.name", "$q"])
def test_texts_of_a_result_that_no_column_can_hold_are_refused_in_words(monkeypatch, value):
    monkeypatch.setattr(room, "CAPACITY", 10_000)
    people = [person("hub", bio="x" * 100), *(person(f"p{n}") for n in range(200))]
    star = graph(people, [(f"p{n}", "hub") for n in range(200)])
    text = f"match {{ $p: Person  $p knows $q }} return {{ $p.name as p, {value} as q }}"
    assert len(run(star, text + " limit 50")) == 50
    wide = graph(
        [person("h" * 100), *(person(f"p{n}") for n in range(200))], [(f"p{n}", "h" * 100) for n in range(200)]
    )
    with pytest.raises(ResourceLimit, match="the texts of"):
        run(star if value != "$q.name" else wide, text)


def test_what_the_machine_refuses_is_a_limit_too(monkeypatch):
    from omnigraph.read.operators import execute

    def refuse(*_: object) -> None:
        raise pa.lib.ArrowMemoryError("malloc of size 8 failed")

    monkeypatch.setattr(execute, "_run_steps", refuse)
    with pytest.raises(ResourceLimit, match="no memory left") as caught:
        run(MANY, PRODUCT)
    assert caught.value.details["limit"] == "machine_memory"
