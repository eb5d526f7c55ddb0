"""Mutations over a match: read once, run for every binding, and never half of what two bindings want."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from omnigraph.errors import BadRequest, KeyConflict, ValidationFailed
from omnigraph.graph import Graph, init
from omnigraph.handle.writes import read_match
from omnigraph.ledger.store import open_store
from omnigraph.write.mutate.mutate import mutate

SCHEMA = """
node Person { slug: String @key  level: I32 @default(1)  name: String?  tags: [String]?  @range(level, 0..9) }
node Team { name: String @key  size: I32? }
node Note { text: String  about: String? }
edge Knows: Person -> Person { since: I32? }
edge In: Person -> Team { role: String?  @key(src, dst) }
"""
PEOPLE = [
    {"type": "Person", "data": {"slug": "a", "level": 1, "name": "Ann"}},
    {"type": "Person", "data": {"slug": "b", "level": 2, "name": "Bob"}},
    {"type": "Person", "data": {"slug": "c", "level": 9}},
    {"type": "Team", "data": {"name": "x"}},
    {"type": "Team", "data": {"name": "y"}},
    {"edge": "Knows", "from": "a", "to": "b", "id": "k1", "data": {"since": 1}},
    {"edge": "Knows", "from": "a", "to": "c", "id": "k2", "data": {"since": 2}},
    {"edge": "Knows", "from": "b", "to": "c", "id": "k3"},
    {"edge": "In", "from": "a", "to": "x"},
    {"edge": "In", "from": "b", "to": "x"},
]


@pytest.fixture
def graph(tmp_path: Path) -> Iterator[Graph]:
    with init(str(tmp_path / "graph.omni"), schema=SCHEMA) as made:
        made.load(PEOPLE, mode="append")
        yield made


def run(graph: Graph, body: str, declared: str = "", **params: Any) -> Any:
    return graph.mutate(f"query q({declared}) {{ {body} }}", params=params)


def levels(graph: Graph) -> dict[str, int]:
    rows = graph.query("query q() { match { $p: Person } return { $p.slug as s, $p.level as l } }").rows()
    return {row["s"]: row["l"] for row in rows}


def edges(graph: Graph, name: str) -> list[tuple[str, str]]:
    text = f"query q() {{ match {{ $a $e:{name} $b }} return {{ $e.@src as s, $e.@dst as d }} }}"
    return sorted((row["s"], row["d"]) for row in graph.query(text).rows())


# --- update ------------------------------------------------------------------------------------------------------


def test_an_update_runs_for_every_row_that_is_bound(graph: Graph):
    result = run(
        graph,
        "match { $p: Person  $p in $t  $t.name = $team } update $p set { level: $p.level + 1 }",
        "$team: String",
        team="x",
    )
    assert levels(graph) == {"a": 2, "b": 3, "c": 9}
    assert (result.affected_nodes, result.affected_edges) == (2, 0)
    assert result.inserted_ids == {}


def test_bindings_that_say_the_same_of_a_row_say_it_once(graph: Graph):
    # c is reached from a and from b
    result = run(graph, 'match { $p knows $q } update $q set { name: "known" }')
    assert result.affected_nodes == 2


def test_bindings_that_say_different_things_of_a_row_are_refused(graph: Graph):
    before = graph.head()
    with pytest.raises(BadRequest, match=r"set `level` of Person \"c\" to different values, 1 and 2"):
        run(graph, "match { $p knows $q } update $q set { level: $p.level }")
    assert graph.head() == before


def test_bare_names_are_the_row_and_variables_are_what_was_matched(graph: Graph):
    run(graph, 'match { $p: Person { slug: "a" } } update Person set { level: level + $p.level } where level < 9')
    assert levels(graph) == {"a": 2, "b": 3, "c": 9}
    run(graph, "update Person set { level: level * 2 } where level + 1 < 4")
    assert levels(graph) == {"a": 4, "b": 3, "c": 9}


def test_statements_keep_the_values_of_the_match(graph: Graph):
    run(graph, 'match { $p: Person { slug: "a" } } update $p set { level: 5 } update $p set { level: $p.level + 1 }')
    assert levels(graph)["a"] == 2
    run(graph, 'match { $p: Person { slug: "a" } } update $p set { level: 5 } update $p set { level: level + 1 }')
    assert levels(graph)["a"] == 6


def test_a_condition_narrows_the_rows_that_are_bound(graph: Graph):
    run(graph, "match { $p: Person } update $p set { level: 0 } where level = 2")
    assert levels(graph) == {"a": 1, "b": 0, "c": 9}


def test_rules_are_checked_on_the_state_after(graph: Graph):
    with pytest.raises(ValidationFailed) as failed:
        run(graph, "match { $p: Person } update $p set { level: $p.level + 1 }")
    assert failed.value.counts == {"range": 1}
    with pytest.raises(BadRequest, match="division by zero"):
        run(graph, "update Person set { level: 1 % (level - 1) } where level > 0")


def test_an_edge_is_updated_through_its_variable(graph: Graph):
    result = run(graph, "match { $a $w:knows $b  $b.level = 9 } update $w set { since: $a.level * 10 }")
    assert result.affected_edges == 2
    found = graph.query("query q() { match { $a $w:knows $b } return { $w.@id as i, $w.since as s } }").rows()
    assert {row["i"]: row["s"] for row in found} == {"k1": 1, "k2": 10, "k3": 20}


def test_nothing_matched_is_nothing_done(graph: Graph):
    before = graph.head()
    for body in (
        'match { $p: Person { slug: "nobody" } } update $p set { level: 0 }',
        'match { $p: Person { slug: "nobody" } } insert Note { text: "x" }',
        'match { $p: Person { slug: "nobody" } } delete $p',
        'match { $p: Person { slug: "nobody" } } delete Person where slug = "a"',
    ):
        result = run(graph, body)
        assert (result.commit, result.affected_nodes, result.affected_edges) == (None, 0, 0)
    assert graph.head() == before


# --- insert ------------------------------------------------------------------------------------------------------


def test_an_insert_runs_for_every_pair(graph: Graph):
    result = run(graph, "match { $a: Person  $b: Person  $a.level < $b.level } insert Knows { from: $a, to: $b }")
    assert result.affected_edges == 3
    assert len(result.inserted_ids["edge:Knows"]) == 3
    assert edges(graph, "knows") == [("a", "b"), ("a", "b"), ("a", "c"), ("a", "c"), ("b", "c"), ("b", "c")]


def test_an_insert_runs_once_for_what_it_names(graph: Graph):
    run(graph, "match { $a knows $b } insert Note { text: $a.slug, about: $a.name }")
    rows = graph.query("query q() { match { $n: Note } return { $n.text as t, $n.about as a } order { t } }").rows()
    assert rows == [{"t": "a", "a": "Ann"}, {"t": "b", "a": "Bob"}]
    run(graph, 'match { $a knows $b } insert Note { text: "once" }')
    count = 'query q() { match { $n: Note { text: "once" } } return { count($n) as n } }'
    assert graph.query(count).rows() == [{"n": 1}]


def test_a_keyed_edge_is_inserted_or_updated(graph: Graph):
    result = run(graph, 'match { $p: Person  $t: Team { name: "x" } } insert In { from: $p, to: $t, role: $p.name }')
    assert edges(graph, "in") == [("a", "x"), ("b", "x"), ("c", "x")]
    assert result.affected_edges == 3
    assert result.inserted_ids == {"edge:In": ('["c","x"]',)}


def test_inserts_that_make_one_row_in_two_ways_are_refused(graph: Graph):
    run(graph, 'match { $a knows $b } insert Team { name: "z", size: 3 }')
    with pytest.raises(BadRequest, match=r"`size` of Team \"z\""):
        run(graph, 'match { $a: Person } insert Team { name: "z", size: $a.level }')


def test_an_end_that_an_optional_left_null_is_missing(graph: Graph):
    with pytest.raises(ValidationFailed) as failed:
        run(graph, "match { $a: Person  optional { $a in $t } } insert In { from: $a, to: $t, role: $a.slug }")
    assert failed.value.counts == {"missing_value": 1}


def test_insert_new_refuses_what_exists(graph: Graph):
    with pytest.raises(KeyConflict) as failed:
        run(graph, 'insert new Person { slug: "a" } insert new Person { slug: "z" }')
    assert failed.value.counts == {"existing_id": 1}
    assert failed.value.violations[0].row_id == "a"
    with pytest.raises(KeyConflict):
        run(graph, 'insert new Person { slug: "z" } insert new Person { slug: "z" }')
    with pytest.raises(KeyConflict):
        run(graph, 'match { $p: Person } insert new Team { name: "z" , size: $p.level }')
    result = run(graph, 'insert new Person { slug: "z" } insert Person { slug: "z", level: 4 }')
    assert result.inserted_ids == {"node:Person": ("z",)}
    assert levels(graph)["z"] == 4
    with pytest.raises(KeyConflict):
        run(graph, 'insert new In { from: "a", to: "x" }')


# --- rows --------------------------------------------------------------------------------------------------------


def test_rows_are_inserted_from_a_parameter(graph: Graph):
    rows = [{"slug": "a", "name": "Anna"}, {"slug": "d", "level": 3, "tags": ["t"]}, {"slug": "e"}]
    result = run(graph, "insert Person from $rows", "$rows: [Person]", rows=rows)
    assert levels(graph) == {"a": 1, "b": 2, "c": 9, "d": 3, "e": 1}
    assert result.affected_nodes == 3
    assert result.inserted_ids == {"node:Person": ("d", "e")}
    given = [{"from": "a", "to": "y", "role": "r"}, {"src": "d", "dst": "y"}]
    run(graph, "insert In from $rows", "$rows: [In]", rows=given)
    assert edges(graph, "in") == [("a", "x"), ("a", "y"), ("b", "x"), ("d", "y")]
    assert run(graph, "insert In from $rows", "$rows: [In]", rows=[]).commit is None


def test_all_violations_of_rows_are_listed_with_their_places(graph: Graph):
    rows = [
        {"slug": "d", "level": 99},
        {"slug": 5},
        {"level": 3},
        {"slug": "e", "zz": 1, "level": "x"},
        {"slug": "f", "level": None},
        {"slug": "a", "level": 3},
    ]
    with pytest.raises(ValidationFailed) as failed:
        run(graph, "insert Person from $rows", "$rows: [Person]", rows=rows)
    assert failed.value.counts == {
        "unknown_property": 1,
        "wrong_type": 2,
        "missing_value": 1,
        "range": 1,
        "missing_key": 1,
    }
    assert {(v.kind, v.source, v.record) for v in failed.value.violations} == {
        ("range", "$rows", 1),
        ("wrong_type", "$rows", 2),
        ("missing_key", "$rows", 3),
        ("unknown_property", "$rows", 4),
        ("wrong_type", "$rows", 4),
        ("missing_value", "$rows", 5),
    }
    with pytest.raises(ValidationFailed) as failed:
        run(graph, "insert Knows from $rows", "$rows: [Knows]", rows=[{"from": "a", "to": "zz"}, {"from": "a"}])
    assert {(v.kind, v.record) for v in failed.value.violations} == {("missing_endpoint", 1), ("missing_value", 2)}
    with pytest.raises(KeyConflict) as failed:
        run(graph, "insert new Person from $rows", "$rows: [Person]", rows=[{"slug": "z"}, {"slug": "b"}])
    assert failed.value.violations[0].record == 2


# --- delete ------------------------------------------------------------------------------------------------------


def test_what_is_bound_is_deleted(graph: Graph):
    result = run(graph, "match { $a $w:knows $b  $b.level = 9 } delete $w")
    assert result.affected_edges == 2
    assert edges(graph, "knows") == [("a", "b")]
    result = run(graph, "match { $a knows $b } delete $b")
    assert (result.affected_nodes, result.affected_edges) == (1, 2)
    assert sorted(levels(graph)) == ["a", "c"]


def test_a_delete_by_condition_runs_for_every_binding(graph: Graph):
    result = run(graph, "match { $a knows $b } delete In where from = $b.slug")
    assert result.affected_edges == 1
    assert edges(graph, "in") == [("a", "x")]


# --- beside others -----------------------------------------------------------------------------------------------


def test_what_the_match_read_is_leaned_on(graph: Graph, tmp_path: Path):
    """Another process changes what was matched before this one commits: it is matched again."""
    script = (
        "import sys, omnigraph as og\n"
        'g = og.open(sys.argv[1]); g.load([{"name": "x", "size": 7}], type="Team", mode="merge"); g.close()'
    )
    reads = []

    def read(*args: Any, **options: Any) -> Any:
        found = read_match(*args, **options)
        if not reads:
            subprocess.run([sys.executable, "-c", script, str(tmp_path / "graph.omni")], check=True)
        reads.append(found.num_rows)
        return found

    text = 'query q() { match { $t: Team { name: "x" }  $t.size is null } insert Note { text: "n", about: $t.name } }'
    with open_store(str(tmp_path / "graph.omni")) as store:
        assert mutate(store, text, read=read).commit is None
    assert reads == [1, 0]
