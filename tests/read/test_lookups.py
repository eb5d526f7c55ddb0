"""Reads that came together give what each gives alone, and those that are look-ups by key read their rows at once."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import omnigraph as og
from omnigraph.errors import Cancelled, OmniGraphError, PolicyDenied
from omnigraph.handle.asked import AskedRead, ReadAsk
from omnigraph.handle.asking import ask, ask_together
from omnigraph.policy.bundle import parse_bundle
from omnigraph.policy.decide_access import Policy
from omnigraph.read.state.control import CancelToken
from omnigraph.storage.reading import reading

SCHEMA = """
node Person { slug: String @key age: I64? tags: [String]? note: String? }
node City { number: I64 @key name: String }
node Thing { label: String? }
edge Knows: Person -> Person { since: I64? }
"""
PEOPLE = {f"p{number}": number % 90 for number in range(2500)}
CITIES = {number: f"city {number}" for number in range(-500, 1500)}
BY_SLUG = "query q($s: String) { match { $p: Person { slug: $s } } return { $p.slug, $p.age } }"
WHOLE = "query q($s: String) { match { $p: Person { slug: $s } } return { $p } }"
CITY = "query q($n: I64) { match { $c: City { number: $n } } return { $c.name } }"
OLDER = "query q($a: I64) { match { $p: Person  $p.age >= $a } return { count($p) as people } }"
FRIENDS = "query q($s: String) { match { $p: Person { slug: $s }  $p knows $f } return { $f.slug } order { $f.slug } }"


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Iterator[og.Graph]:
    with og.init(tmp_path_factory.mktemp("together") / "g", schema=SCHEMA) as graph:
        graph.load([{"slug": s, "age": a, "tags": [s]} for s, a in PEOPLE.items()], type="Person", mode="append")
        graph.load([{"number": n, "name": name} for n, name in CITIES.items()], type="City", mode="append")
        graph.load([{"a": f"p{n}", "b": f"p{n + 1}"} for n in range(50)], type="Knows", src="a", dst="b", mode="append")
        graph.optimize()
        graph.branch_create("review")
        graph.mutate('query m() { update Person set { age: 1000 } where slug = "p7" }', branch="review")
        graph.mutate('query m() { delete Person where slug = "p8" }', branch="review")
        yield graph


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Iterator[og.Graph]:
    """A graph whose people are always looked up by the index, and never held in memory."""
    with og.init(tmp_path_factory.mktemp("large") / "g", schema=SCHEMA) as graph:
        graph.load([{"slug": f"p{n}", "age": n} for n in range(20_000)], type="Person", mode="append")
        graph.optimize()
        graph.branch_create("review")
        graph.mutate('query m() { update Person set { age: -1 } where slug = "p11" }', branch="review")
        yield graph


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many ids each read by id asked for."""
    found: list[int] = []
    read = reading._rows_in

    def counted(handles: Any, table: Any, ids: Sequence[str], *rest: Any) -> pa.Table:
        found.append(len(ids))
        return read(handles, table, ids, *rest)

    monkeypatch.setattr(reading, "_rows_in", counted)
    return found


def answers(graph: og.Graph, asks: Sequence[ReadAsk]) -> list[Any]:
    """The rows of each, or the kind and text of its error."""
    return [_answer(each) for each in ask_together(graph, asks)]


def _answer(read: AskedRead | Exception) -> Any:
    try:
        if isinstance(read, Exception):
            raise read
        return read.result().rows()
    except OmniGraphError as error:
        return type(error), error.message


def alone(graph: og.Graph, ask: ReadAsk) -> Any:
    try:
        return graph.query(ask.source, ask.name, ask.params, branch=ask.branch, at=ask.at).rows()
    except OmniGraphError as error:
        return type(error), error.message


def expected(ask: ReadAsk) -> Any:
    """What was loaded says; None where this judge knows nothing."""
    params = ask.params or {}
    if ask.source == CITY and "n" in params:
        return [{"c.name": CITIES[params["n"]]}] if params["n"] in CITIES else []
    if ask.source != BY_SLUG or not isinstance(params.get("s"), str):
        return None
    slug = params["s"]
    if ask.branch == "review" and slug in ("p7", "p8"):
        return [{"p.slug": "p7", "p.age": 1000}] if slug == "p7" else []
    return [{"p.slug": slug, "p.age": PEOPLE[slug]}] if slug in PEOPLE else []


@pytest.mark.parametrize("seed", range(12))
def test_everybody_gets_what_he_gets_alone(graph: og.Graph, seed: int) -> None:
    draw = random.Random(seed)

    def drawn() -> ReadAsk:
        branch = draw.choice([None, "main", "review", "nowhere"] if draw.random() < 0.3 else [None])
        slug = f"p{draw.choice([7, 8, draw.randrange(2600)])}"
        source, params = draw.choice(
            [
                (BY_SLUG, {"s": slug}),
                (BY_SLUG, {"s": slug}),
                (WHOLE, {"s": slug}),
                (CITY, {"n": draw.randrange(-600, 1600)}),
                (BY_SLUG, {"s": 7}),
                (BY_SLUG, {}),
                (OLDER, {"a": draw.randrange(90)}),
                (FRIENDS, {"s": slug}),
                ("query q( {", {}),
            ]
        )
        return ReadAsk(source, None, params, branch, draw.choice([None, None, "main", "review"]))

    asks = [drawn() for _ in range(draw.randrange(1, 40))]
    found = answers(graph, asks)
    assert found == [alone(graph, one) for one in asks]
    known = [(one, rows) for one, rows in zip(asks, found, strict=True) if one.at is None and one.branch != "nowhere"]
    assert [rows for one, rows in known if expected(one) is not None] == [
        judged for one, _ in known if (judged := expected(one)) is not None
    ]


def test_look_ups_of_one_state_are_one_read(large: og.Graph, reads: list[int]) -> None:
    asks = [ReadAsk(BY_SLUG, None, {"s": f"p{number}"}) for number in (5, 6, 2499, 6, 99_999)]
    assert answers(large, asks) == [[{"p.slug": f"p{n}", "p.age": n}] for n in (5, 6, 2499, 6)] + [[]]
    assert reads == [4]


def test_other_columns_and_other_states_are_other_reads(large: og.Graph, reads: list[int]) -> None:
    asks = [
        ReadAsk(source, None, {"s": f"p{number}"}, branch)
        for source in (BY_SLUG, WHOLE)
        for branch in ("main", "review")
        for number in (10, 11)
    ]
    found = answers(large, asks)
    assert reads == [2, 2, 2, 2]
    assert found == [alone(large, one) for one in asks]
    assert [rows[0]["p.age"] for rows in found[:4]] == [10, 11, 10, -1]


def test_a_branch_is_looked_up_once(graph: og.Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[str] = []
    look = type(graph._store).snapshot
    monkeypatch.setattr(
        type(graph._store), "snapshot", lambda self, *a, **k: looks.append(k["branch"]) or look(self, *a, **k)
    )
    branches = ["main", "review", None, "main"]
    answers(graph, [ReadAsk(BY_SLUG, None, {"s": "p7"}, branch) for branch in branches])
    assert looks == ["main", "review"]


def test_a_read_that_fails_for_all_is_made_by_each(large: og.Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    read = reading._rows_in

    def breaks(handles: Any, table: Any, ids: Sequence[str], *rest: Any) -> pa.Table:
        if "p2" in ids:
            raise og.errors.StorageError(f"lost {sorted(ids)}", og.errors.StorageKind.PERMANENT)
        return read(handles, table, ids, *rest)

    monkeypatch.setattr(reading, "_rows_in", breaks)
    found = answers(large, [ReadAsk(BY_SLUG, None, {"s": slug}) for slug in ("p1", "p2", "p3")])
    assert found == [
        [{"p.slug": "p1", "p.age": 1}],
        (og.errors.StorageError, "lost ['p2']"),
        [{"p.slug": "p3", "p.age": 3}],
    ]


def test_each_is_cancelled_and_runs_out_of_time_for_itself(graph: og.Graph) -> None:
    token = CancelToken()
    asks = [
        ReadAsk(BY_SLUG, None, {"s": "p1"}),
        ReadAsk(BY_SLUG, None, {"s": "p2"}, cancel=token),
        ReadAsk(BY_SLUG, None, {"s": "p3"}, timeout=1e-9),
        ReadAsk(BY_SLUG, None, {"s": "p4"}, timeout=-1),
    ]
    reads = ask_together(graph, asks)
    token.cancel()
    found = [_answer(each) for each in reads]
    assert found[0] == [{"p.slug": "p1", "p.age": 1}]
    assert [each[0] for each in found[1:]] == [Cancelled, og.errors.QueryTimeout, og.errors.BadRequest]


def test_the_policy_is_asked_for_each(graph: og.Graph) -> None:
    rule = {
        "id": "reads",
        "allow": {"actors": {"group": "team"}, "actions": ["read"], "branch_scope": "unprotected"},
    }
    bundle = {"version": 1, "groups": {"team": ["ada"]}, "protected_branches": ["main"], "rules": [rule]}
    under = graph.under(Policy(parse_bundle(bundle)))
    who = [("ada", "review"), ("eve", "review"), ("ada", "main"), (None, "review")]
    found = answers(under, [ReadAsk(BY_SLUG, None, {"s": "p7"}, branch, actor=actor) for actor, branch in who])
    assert found[0] == [{"p.slug": "p7", "p.age": 1000}]
    assert [each[0] for each in found[1:]] == [PolicyDenied] * 3


@pytest.mark.parametrize(
    ("source", "params", "is_one"),
    [
        (BY_SLUG, {"s": "p1"}, True),
        (WHOLE, {"s": "nobody"}, True),
        (CITY, {"n": 4}, True),
        ('query q() { match { $p: Person { slug: "p4" } } return { $p.age } limit 1 }', {}, True),
        (OLDER, {"a": 4}, False),
        (FRIENDS, {"s": "p1"}, False),
        ("query q($a: I64) { match { $p: Person  $p.age = $a } return { $p.slug } }", {"a": 4}, False),
        ("query q($s: String) { match { $p: Person { slug: $s, age: 4 } } return { $p.slug } }", {"s": "p4"}, False),
        ("query q($s: String) { match { $p: Person { slug: $s } } return { count($p) as n } }", {"s": "p4"}, False),
    ],
)
def test_what_counts_as_a_look_up(graph: og.Graph, source: str, params: dict[str, Any], is_one: bool) -> None:
    assert (ask(graph, ReadAsk(source, None, params)).row is not None) == is_one


def test_kept_rows_are_not_read_again(tmp_path: Path, reads: list[int]) -> None:
    with og.init(tmp_path / "g", schema=SCHEMA) as graph:
        graph.load([{"slug": f"p{n}", "age": n} for n in range(20)], type="Person", mode="append")
        asks = [ReadAsk(BY_SLUG, None, {"s": f"p{n}"}) for n in range(4)]
        first = answers(graph, asks)
        graph.mutate('query m() { insert Person { slug: "new" } }')
        assert answers(graph, asks) == first == [[{"p.slug": f"p{n}", "p.age": n}] for n in range(4)]
        assert reads == [4]
