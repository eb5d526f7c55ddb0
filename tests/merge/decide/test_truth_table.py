"""What becomes of a row, for every combination of its state in the base, in the source and in the target.

One graph holds all combinations at once, each under an id of its own, in nodes, in edges with a key and in edges
without one. What is expected is worked out from the three rules alone.
"""

from __future__ import annotations

import datetime
import itertools
from dataclasses import dataclass
from typing import Any

import pytest

import omnigraph as og
from omnigraph.errors import BadRequest, MergeConflicts
from tests.merge.graphs import (
    CITY,
    KNOWS,
    LIVES,
    PERSON,
    RATES,
    Row,
    city,
    content,
    drop,
    knows,
    lives,
    person,
    put,
    rates,
    rows,
)

BASE, ONE, TWO = 0, 1, 2
NEW = {"absent": None, "one": ONE, "two": TWO, "brief": None}
OLD = {"same": BASE, "one": ONE, "two": TWO, "deleted": None, "undone": BASE, "again": BASE, "again_one": ONE}


@dataclass(frozen=True)
class Case:
    """One row: whether the base has it, and what each side did."""

    base: int | None
    source_did: str
    target_did: str

    @property
    def name(self) -> str:
        return f"{'old' if self.base is not None else 'new'}-{self.source_did}-{self.target_did}".replace("_", "")

    @property
    def states(self) -> dict[str, int | None]:
        return OLD if self.base is not None else NEW

    @property
    def source(self) -> int | None:
        return self.states[self.source_did]

    @property
    def target(self) -> int | None:
        return self.states[self.target_did]

    @property
    def conflict(self) -> str | None:
        if self.source in (self.target, self.base) or self.target == self.base:
            return None
        if self.source is None or self.target is None:
            return "DeleteVsUpdate"
        return "DivergentInsert" if self.base is None else "DivergentUpdate"

    @property
    def merged(self) -> int | None:
        """The result where there is no conflict."""
        return self.target if self.source == self.base else self.source


CASES = [Case(None, s, t) for s, t in itertools.product(NEW, NEW)]
CASES += [Case(BASE, s, t) for s, t in itertools.product(OLD, OLD)]


@dataclass(frozen=True)
class Kind:
    """One kind of entity in which the table is played through."""

    table_key: str
    field: str

    def record(self, name: str, value: int) -> Row:
        if self.table_key == CITY:
            return city(name, tags=[str(value)])
        if self.table_key == RATES:
            return rates(name, "rome", stars=value)
        if self.table_key == KNOWS:
            return knows(name, "hub", name, since=value)
        return person(name, age=value)

    def id(self, name: str) -> str:
        return f'["{name}","rome"]' if self.table_key == RATES else name

    def delete(self, graph: og.Graph, branch: str, names: list[str]) -> None:
        if self.table_key == PERSON:
            drop(graph, branch, "Person", *names)
        elif self.table_key == CITY:
            drop(graph, branch, "City", *names, by="name")
        elif self.table_key == RATES:
            drop(graph, branch, "Rates", *names, by="from")
        else:
            drop(graph, branch, "Knows", *names, by="to")

    def value(self, row: Row | None) -> int | None:
        if row is None:
            return None
        found = row[self.field]
        return int(found[0]) if isinstance(found, list) else found


KINDS = {
    "node": Kind(PERSON, "age"),
    "node with a list": Kind(CITY, "tags"),
    "edge with a key": Kind(RATES, "stars"),
    "edge without a key": Kind(KNOWS, "since"),
}


def build(graph: og.Graph, kind: Kind, cases: list[Case]) -> None:
    """A graph on which each case has happened, between `main` (the target) and `side` (the source)."""
    needed = [person("hub"), city("rome")]
    if kind.table_key in (RATES, KNOWS):
        needed += [person(case.name) for case in cases]
    put(graph, "main", *needed)
    put(graph, "main", *(kind.record(case.name, BASE) for case in cases if case.base is not None))
    graph.branch_create("side")
    for branch in ("side", "main"):
        did = {case.name: case.source_did if branch == "side" else case.target_did for case in cases}
        base = {case.name for case in cases if case.base is not None}
        put(
            graph,
            branch,
            *(kind.record(name, ONE) for name, done in did.items() if done in ("one", "undone", "brief")),
            *(kind.record(name, TWO) for name, done in did.items() if done == "two"),
        )
        gone = [name for name, done in did.items() if done in ("deleted", "again", "again_one", "brief")]
        kind.delete(graph, branch, gone)
        put(
            graph,
            branch,
            *(kind.record(name, BASE) for name, done in did.items() if done in ("undone", "again") and name in base),
            *(kind.record(name, ONE) for name, done in did.items() if done == "again_one"),
        )


def values(graph: og.Graph, kind: Kind, cases: list[Case], at: str = "main") -> dict[str, int | None]:
    found = rows(graph, kind.table_key, at)
    return {case.name: kind.value(found.get(kind.id(case.name))) for case in cases}


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_rows_without_a_conflict(graph: og.Graph, kind: Kind) -> None:
    cases = [case for case in CASES if case.conflict is None]
    build(graph, kind, cases)
    assert values(graph, kind, cases, "side") == {case.name: case.source for case in cases}
    assert values(graph, kind, cases, "main") == {case.name: case.target for case in cases}
    result = graph.merge("side")
    assert result.outcome == "merged"
    assert values(graph, kind, cases) == {case.name: case.merged for case in cases}
    (counts,) = result.tables
    written = [(case.target, case.merged) for case in cases if case.target != case.merged]
    assert counts.inserts == sum(before is None for before, _ in written)
    assert counts.deletes == sum(after is None for _, after in written)
    assert counts.total == len(written)


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_every_conflict_is_returned_with_three_versions_and_nothing_is_published(graph: og.Graph, kind: Kind) -> None:
    build(graph, kind, CASES)
    before, head = content(graph), graph.head()
    expected = {kind.id(case.name): case for case in CASES if case.conflict}
    with pytest.raises(MergeConflicts) as caught:
        graph.merge("side")
    assert graph.head() == head
    assert content(graph) == before
    found = {conflict.row_id: conflict for conflict in caught.value.conflicts}
    assert len(found) == len(caught.value.conflicts)
    assert found.keys() == expected.keys()
    for row_id, case in expected.items():
        conflict = found[row_id]
        assert (conflict.kind.value, conflict.table_key) == (case.conflict, kind.table_key)
        versions = [kind.value(row) for row in (conflict.base, conflict.source, conflict.target)]
        assert versions == [case.base, case.source, case.target], case.name
        assert case.name in conflict.message
    dry = graph.merge("side", dry_run=True)
    assert {conflict.row_id for conflict in dry.conflicts} == expected.keys()


@pytest.mark.parametrize("strategy", ["ours", "theirs"])
@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_a_strategy_settles_divergent_rows_only(graph: og.Graph, kind: Kind, strategy: str) -> None:
    build(graph, kind, CASES)
    graph.merge("side", strategy=strategy)
    chosen = {case.name: case.target if strategy == "ours" else case.source for case in CASES}
    expected = {case.name: chosen[case.name] if case.conflict else case.merged for case in CASES}
    assert values(graph, kind, CASES) == expected


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_resolutions_of_single_rows(graph: og.Graph, kind: Kind) -> None:
    cases = [case for case in CASES if case.conflict]
    build(graph, kind, cases)
    given: dict[str, Any] = {"tags": ["9"]} if kind.table_key == CITY else {kind.field: 9}
    given |= {"src": "hub", "dst": "hub"} if kind.table_key == KNOWS else {}
    answers = itertools.cycle(["ours", "theirs", given, None])
    resolutions = {(kind.table_key, kind.id(case.name)): next(answers) for case in cases}
    expected: dict[str, int | None] = {}
    for case, answer in zip(cases, resolutions.values()):
        expected[case.name] = (
            {"ours": case.target, "theirs": case.source}.get(answer)
            if isinstance(answer, str)
            else (9 if answer else None)
        )
    graph.merge("side", resolutions=resolutions)
    assert values(graph, kind, cases) == expected


def test_an_answer_about_a_row_without_a_conflict_is_taken(graph: og.Graph) -> None:
    kind = KINDS["node"]
    cases = [case for case in CASES if not case.conflict and (case.source, case.target) != (None, None)]
    build(graph, kind, cases)
    answers = itertools.cycle(["ours", "theirs"])
    resolutions = {(kind.table_key, kind.id(case.name)): next(answers) for case in cases}
    expected = {
        case.name: case.target if answer == "ours" else case.source for case, answer in zip(cases, resolutions.values())
    }
    graph.merge("side", resolutions=resolutions)
    assert values(graph, kind, cases) == expected


def test_what_no_resolution_answers_still_fails(graph: og.Graph) -> None:
    kind = KINDS["node"]
    cases = [case for case in CASES if case.conflict]
    build(graph, kind, cases)
    settled = {(PERSON, case.name): "theirs" for case in cases[:5]}
    with pytest.raises(MergeConflicts) as caught:
        graph.merge("side", resolutions=settled)
    assert {conflict.row_id for conflict in caught.value.conflicts} == {case.name for case in cases[5:]}


def test_a_resolution_wins_over_the_strategy(graph: og.Graph) -> None:
    kind = KINDS["node"]
    cases = [case for case in CASES if case.conflict == "DivergentUpdate"]
    build(graph, kind, cases)
    graph.merge("side", strategy="ours", resolutions={(PERSON, cases[0].name): "theirs"})
    expected = {case.name: case.target for case in cases} | {cases[0].name: cases[0].source}
    assert values(graph, kind, cases) == expected


NO_SENSE: list[tuple[str | None, Any, str]] = [
    # A strategy, answers, and what is said about them.
    ("mine", None, "`mine` is no strategy"),
    (None, {"ada": "ours"}, "a pair of table key and row id"),
    (None, {(PERSON, "ada"): "mine"}, "`ours`, `theirs`, a row or None"),
    (None, {("node:Persn", "ada"): "ours"}, "no table `node:Persn`"),
    (None, {(PERSON, "ada"): {"aeg": 1}}, "no property `aeg`"),
    (None, {(PERSON, "ada"): {"age": "old"}}, "age"),
    (None, {(PERSON, "ada"): {"slug": "bob"}}, "key"),
    (None, {(PERSON, "ada"): {"age": 1.5}}, "`age` must be I32, not 1.5"),
    (None, {(PERSON, "ada"): {"id": "bob"}}, "an id cannot be changed"),
    (None, {(CITY, "rome"): {"tags": "abc"}}, r"`tags` must be \[String\], not"),
    (None, {(CITY, "rome"): {"map": "sha256:00"}}, "`map` must be Blob"),
    (None, {(PERSON, "nobody"): None}, "neither the source nor the target has it"),
    (None, {("Person", "ada"): "ours"}, "did you mean `node:Person`"),
]


def test_answers_that_make_no_sense_are_refused(graph: og.Graph) -> None:
    put(graph, "main", person("ada", age=1))
    graph.branch_create("side")
    put(graph, "side", person("ada", age=2))
    put(graph, "main", person("ada", age=3))
    for strategy, resolutions, message in NO_SENSE:
        with pytest.raises(BadRequest, match=message):
            graph.merge("side", strategy=strategy, resolutions=resolutions)
    assert rows(graph, PERSON)["ada"]["age"] == 3


CASCADES: list[tuple[str, str, list[str], set[str], set[str]]] = [
    # What the source does, what the target does, conflicts, people left, edges left.
    ("delete node", "nothing", [], {"ada"}, set()),
    ("nothing", "delete node", [], {"ada"}, set()),
    ("delete node", "delete node", [], {"ada"}, set()),
    ("delete node", "delete edge", [], {"ada"}, set()),
    ("delete edge", "delete node", [], {"ada"}, set()),
    ("delete edge", "delete edge", [], {"ada", "bob"}, set()),
    ("delete node", "update node", ["DeleteVsUpdate node:Person bob"], set(), set()),
    ("update node", "delete node", ["DeleteVsUpdate node:Person bob"], set(), set()),
    ("delete node", "update edge", ["DeleteVsUpdate edge:Knows e", "OrphanEdge edge:Knows e"], set(), set()),
    ("update edge", "delete node", ["DeleteVsUpdate edge:Knows e"], set(), set()),
    ("delete edge", "update edge", ["DeleteVsUpdate edge:Knows e"], set(), set()),
    ("delete node", "add edge", ["OrphanEdge edge:Knows new"], set(), set()),
    ("add edge", "delete node", ["OrphanEdge edge:Knows new"], set(), set()),
    ("delete edge", "add edge", [], {"ada", "bob"}, {"new"}),
    ("update node", "update edge", [], {"ada", "bob"}, {"e"}),
    ("update edge", "update node", [], {"ada", "bob"}, {"e"}),
    ("update node", "add edge", [], {"ada", "bob"}, {"e", "new"}),
    ("add edge", "add edge", [], {"ada", "bob"}, {"e", "new"}),
]


def _do(graph: og.Graph, branch: str, what: str) -> None:
    if what == "delete node":
        drop(graph, branch, "Person", "bob")
    elif what == "delete edge":
        drop(graph, branch, "Knows", "bob", by="to")
    elif what == "update node":
        put(graph, branch, person("bob", age=9))
    elif what == "update edge":
        put(graph, branch, knows("e", "ada", "bob", since=9))
    elif what == "add edge":
        put(graph, branch, knows("new", "bob", "ada"))


@pytest.mark.parametrize(
    ("source", "target", "conflicts", "people", "edges"), CASCADES, ids=[f"{c[0]}-{c[1]}" for c in CASCADES]
)
def test_nodes_with_edges(
    graph: og.Graph, source: str, target: str, conflicts: list[str], people: set[str], edges: set[str]
) -> None:
    put(graph, "main", person("ada"), person("bob", age=1), knows("e", "ada", "bob", since=1))
    graph.branch_create("side")
    _do(graph, "side", source)
    _do(graph, "main", target)
    before = content(graph)
    found = graph.merge("side", dry_run=True).conflicts
    assert sorted(f"{c.kind.value} {c.table_key} {c.row_id}" for c in found) == conflicts
    if conflicts:
        with pytest.raises(MergeConflicts):
            graph.merge("side")
        assert content(graph) == before
        return
    graph.merge("side")
    assert rows(graph, PERSON).keys() == people
    assert rows(graph, KNOWS).keys() == edges


@pytest.mark.parametrize(("answer", "people", "edges"), [(None, {"ada"}, set()), ("theirs", {"ada"}, set())])
def test_an_edge_that_lost_its_end_is_settled_by_an_answer_about_the_edge(
    graph: og.Graph, answer: Any, people: set[str], edges: set[str]
) -> None:
    put(graph, "main", person("ada"), person("bob"))
    graph.branch_create("side")
    drop(graph, "side", "Person", "bob")
    put(graph, "main", knows("new", "bob", "ada"))
    graph.merge("side", resolutions={(KNOWS, "new"): answer})
    assert rows(graph, PERSON).keys() == people
    assert rows(graph, KNOWS).keys() == edges


def test_an_edge_that_lost_its_end_is_settled_by_an_answer_about_the_node(graph: og.Graph) -> None:
    put(graph, "main", person("ada"), person("bob", age=1))
    graph.branch_create("side")
    drop(graph, "side", "Person", "bob")
    put(graph, "main", knows("new", "bob", "ada"))
    graph.merge("side", resolutions={(PERSON, "bob"): "ours"})
    assert rows(graph, PERSON)["bob"]["age"] == 1
    assert rows(graph, KNOWS).keys() == {"new"}


def test_two_people_with_one_mail_are_a_unique_violation(graph: og.Graph) -> None:
    put(graph, "main", person("ada"))
    graph.branch_create("side")
    put(graph, "side", person("bob", mail="m"))
    put(graph, "main", person("eve", mail="m"))
    with pytest.raises(MergeConflicts) as caught:
        graph.merge("side", strategy="theirs")
    (conflict,) = caught.value.conflicts
    assert (conflict.kind.value, conflict.table_key, conflict.row_id) == ("UniqueViolation", PERSON, "bob")
    assert (conflict.base, conflict.target) == (None, None)
    assert conflict.source is not None
    assert conflict.source["mail"] == "m"
    graph.merge("side", resolutions={(PERSON, "bob"): {"mail": "other"}})
    assert {id: row["mail"] for id, row in rows(graph, PERSON).items()} == {"ada": None, "bob": "other", "eve": "m"}


def test_values_that_were_swapped_between_rows_are_no_violation(graph: og.Graph) -> None:
    put(graph, "main", person("ada", mail="a"), person("bob", mail="b"))
    graph.branch_create("side")
    put(graph, "side", person("ada", mail="b"), person("bob", mail="a"))
    put(graph, "main", city("rome"))
    graph.merge("side")
    assert {id: row["mail"] for id, row in rows(graph, PERSON).items()} == {"ada": "b", "bob": "a"}


def test_one_home_on_each_side_is_a_cardinality_violation(graph: og.Graph) -> None:
    put(graph, "main", person("ada"), city("rome"), city("oslo"))
    graph.branch_create("side")
    put(graph, "side", lives("ada", "rome"))
    put(graph, "main", lives("ada", "oslo"))
    with pytest.raises(MergeConflicts) as caught:
        graph.merge("side")
    (conflict,) = caught.value.conflicts
    assert (conflict.kind.value, conflict.table_key) == ("CardinalityViolation", LIVES)
    graph.merge("side", resolutions={(LIVES, '["ada","oslo"]'): None})
    assert rows(graph, LIVES).keys() == {'["ada","rome"]'}


def test_a_given_row_that_breaks_a_rule_is_a_value_violation(graph: og.Graph) -> None:
    put(graph, "main", person("ada", age=1))
    graph.branch_create("side")
    put(graph, "side", person("ada", age=2))
    put(graph, "main", person("ada", age=3))
    with pytest.raises(MergeConflicts) as caught:
        graph.merge("side", resolutions={(PERSON, "ada"): {"age": 999}})
    (conflict,) = caught.value.conflicts
    assert conflict.kind.value == "ValueConstraintViolation"
    assert [row and row["age"] for row in (conflict.base, conflict.source, conflict.target)] == [1, 2, 3]


def test_values_of_a_given_row_are_written_as_in_a_load(graph: og.Graph) -> None:
    put(graph, "main", city("rome", founded="2020-01-01"), city("oslo", founded="2020-01-01"))
    graph.branch_create("side")
    put(graph, "side", city("rome", tags=["a"]), city("oslo", tags=["a"]))
    put(graph, "main", city("rome", tags=["b"]), city("oslo", tags=["b"]))
    given = {"founded": "1999-12-31", "seen": "2024-05-01T10:00:00Z", "map": "b25l", "shape": [1, 2]}
    graph.merge("side", resolutions={(CITY, "rome"): given, (CITY, "oslo"): {"tags": ["c"]}})
    found = rows(graph, CITY)
    assert found["rome"]["founded"] == datetime.date(1999, 12, 31)
    assert found["rome"]["seen"] == datetime.datetime(2024, 5, 1, 10, tzinfo=datetime.UTC)
    assert found["rome"]["shape"] == [1.0, 2.0]
    assert found["rome"]["map"] is not None
    assert found["oslo"]["founded"] == datetime.date(2020, 1, 1)


def test_answers_are_checked_when_there_is_nothing_to_merge_too(graph: og.Graph) -> None:
    graph.branch_create("side")
    with pytest.raises(BadRequest, match="no table `node:Persn`"):
        graph.merge("side", resolutions={("node:Persn", "ada"): "ours"})


def test_blobs_vectors_dates_and_floats_are_compared_by_value(graph: og.Graph) -> None:
    when = "2024-05-01T10:00:00Z"
    full = city("rome", map="b25l", founded="2020-01-01", seen=when, shape=[1.0, 2.0], tags=["x", "y"])
    put(graph, "main", full, city("oslo"), person("ada", weight=0.1))
    graph.branch_create("side")
    put(graph, "side", city("rome", tags=["z"]), city("oslo", shape=[3.0, 4.0]), person("ada", weight=0.2))
    put(graph, "main", city("rome", tags=["x"]), city("paris", map="dHdv"))
    put(graph, "main", full, person("ada", weight=0.3))
    put(graph, "main", person("ada", weight=0.1))
    graph.merge("side")
    found = rows(graph, CITY)
    assert found["rome"]["tags"] == ["z"]
    assert found["rome"]["map"] == rows(graph, CITY, "side")["rome"]["map"]
    assert found["rome"]["map"] is not None
    assert found["oslo"]["shape"] == [3.0, 4.0]
    assert found.keys() == {"rome", "oslo", "paris"}
    assert rows(graph, PERSON)["ada"]["weight"] == 0.2


def test_different_blobs_collide_and_a_given_row_keeps_the_targets_blob(graph: og.Graph) -> None:
    put(graph, "main", city("rome", map="b25l"))
    graph.branch_create("side")
    put(graph, "side", city("rome", map="dHdv"))
    put(graph, "main", city("rome", map="dGhyZWU="))
    ours = rows(graph, CITY)["rome"]["map"]
    (conflict,) = graph.merge("side", dry_run=True).conflicts
    assert conflict.kind.value == "DivergentUpdate"
    assert len({row["map"] for row in (conflict.base, conflict.source, conflict.target) if row}) == 3
    graph.merge("side", resolutions={(CITY, "rome"): {"tags": ["t"]}})
    assert rows(graph, CITY)["rome"]["map"] == ours
    assert rows(graph, CITY)["rome"]["tags"] == ["t"]
