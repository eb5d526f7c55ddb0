"""Two changes of one row, property by property: every combination of what each side did to two properties of it.

One graph holds all combinations, each under an id of its own, for a list, a blob, a vector and a plain value. What is
expected is worked out here from the rule for one property alone.
"""

from __future__ import annotations

import base64
import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

import omnigraph as og
from omnigraph.errors import BadRequest, MergeConflicts
from omnigraph.merge.merge import merge
from omnigraph.merge.placement import Placement
from tests.merge.graphs import CITY, KNOWS, PERSON, Row, city, content, drop, knows, person, put, rows, store_of

VALUES: dict[str, Callable[[int], Any]] = {
    "tags": lambda n: [f"t{n}", "x"],
    "map": lambda n: base64.b64encode(f"map {n}".encode()).decode(),
    "shape": lambda n: [float(n), 1.0],
    "seen": lambda n: f"2024-05-0{n + 1}T10:00:00Z",
}
STATES = (0, 1, 2, None)
CLASH = "clash"


def merged(base: int | None, source: int | None, target: int | None) -> int | str | None:
    """The rule for one property."""
    if source in (target, base):
        return target
    return source if target == base else CLASH


@dataclass(frozen=True)
class Case:
    """A property with its states in base, source and target, and the same for `founded` beside it."""

    about: str
    own: tuple[int | None, int | None, int | None]
    beside: tuple[int | None, int | None, int | None]
    name: str = field(default="", compare=False)

    def record(self, name: str, side: int) -> Row:
        own, beside = self.own[side], self.beside[side]
        values = {self.about: None if own is None else VALUES[self.about](own)}
        return city(name, **values, founded=None if beside is None else f"20{beside:02}-01-01")

    @property
    def results(self) -> dict[str, int | str | None]:
        return {self.about: merged(*self.own), "founded": merged(*self.beside)}

    @property
    def both_changed(self) -> bool:
        base, source, target = ((self.own[n], self.beside[n]) for n in range(3))
        return source not in (base, target) and target != base

    @property
    def clashing(self) -> set[str]:
        return {name for name, value in self.results.items() if value == CLASH} if self.both_changed else set()

    def result(self, strategy: str | None = None) -> dict[str, Any]:
        side = 1 if strategy == "theirs" else 2
        chosen = {self.about: self.own[side], "founded": self.beside[side]}
        return {name: chosen[name] if value == CLASH else value for name, value in self.results.items()}


def all_cases() -> dict[str, Case]:
    found: dict[str, Case] = {}
    for property_ in VALUES:
        own = itertools.product((0, None), STATES, STATES)
        beside = itertools.product((0,), (0, 1), (0, 1, 2))
        for left, right in itertools.product(own, beside):
            found[f"{property_}{len(found)}"] = Case(property_, left, right)
    return found


CASES = all_cases()


@pytest.fixture
def played(graph: og.Graph) -> og.Graph:
    """A graph on which every case has happened between `main` (the target) and `side` (the source)."""
    put(graph, "main", *(case.record(name, 0) for name, case in CASES.items()))
    graph.branch_create("side")
    put(graph, "side", *(case.record(name, 1) for name, case in CASES.items()))
    put(graph, "main", *(case.record(name, 2) for name, case in CASES.items()))
    return graph


def found_values(graph: og.Graph) -> dict[str, dict[str, Any]]:
    """Every case's two properties as the numbers that they were made of."""
    found = rows(graph, CITY)
    result = {}
    for name, case in CASES.items():
        row = found[name]
        own, beside = row[case.about], row["founded"]
        number = {
            "tags": lambda value: int(value[0][1:]),
            "map": lambda value: int(value.decode().split()[1]),
            "shape": lambda value: int(value[0]),
            "seen": lambda value: value.day - 1,
        }[case.about]
        result[name] = {
            case.about: None if own is None else number(own),
            "founded": None if beside is None else beside.year - 2000,
        }
    return result


def spread(function: Callable[[Any], Any], items: Any, doing: str) -> list[Any]:
    """What a placement on other processes does, without the processes."""
    import pickle

    return [pickle.loads(pickle.dumps(function(pickle.loads(pickle.dumps(item))))) for item in items]


def test_every_combination_collides_where_the_rule_says_and_names_its_properties(played: og.Graph) -> None:
    before = content(played)
    with pytest.raises(MergeConflicts) as caught:
        played.merge("side", granularity="property")
    assert content(played) == before
    found = {conflict.row_id: set(conflict.properties) for conflict in caught.value.conflicts}
    assert found == {name: case.clashing for name, case in CASES.items() if case.clashing}
    assert all(
        f"`{name}`" in conflict.message for conflict in caught.value.conflicts for name in found[conflict.row_id or ""]
    )
    assert all(set(conflict.to_json()["properties"]) == set(conflict.properties) for conflict in caught.value.conflicts)
    by_row = {conflict.row_id: conflict for conflict in played.merge("side", dry_run=True).conflicts}
    assert by_row.keys() == {name for name, case in CASES.items() if case.both_changed}
    for name, conflict in by_row.items():
        assert set(conflict.properties) == CASES[name or ""].clashing
        assert ("granularity property would take both" in conflict.message) == (not conflict.properties)


@pytest.mark.parametrize("strategy", ["ours", "theirs"])
@pytest.mark.parametrize("spreads", [False, True])
def test_a_strategy_is_about_the_properties_that_collide(played: og.Graph, strategy: str, spreads: bool) -> None:
    placement = Placement("spark", spread, least_rows=1) if spreads else Placement()
    options: dict[str, Any] = {"strategy": strategy, "granularity": "property", "placement": placement}
    expected = {name: case.result(strategy) for name, case in CASES.items()}
    before = found_values(played)
    planned = merge(store_of(played), "side", dry_run=True, **options)
    changes = {change.id: change for change in planned.changes}
    assert changes.keys() == {name for name in CASES if expected[name] != before[name]}
    result = merge(store_of(played), "side", **options)
    assert found_values(played) == expected
    assert result.tables == planned.tables
    assert result.tables[0].updates == len(changes)
    assert result.tables[0].total == len(changes)
    after = rows(played, CITY)
    for name, change in changes.items():
        assert change.after is not None
        assert change.after["founded"] == after[name]["founded"]


def test_a_given_row_lies_over_what_was_put_together(played: og.Graph) -> None:
    answers: dict[tuple[str, str], Any] = {}
    expected = {name: case.result() for name, case in CASES.items()}
    choices = itertools.cycle(["ours", "theirs", "row"])
    for name, case in CASES.items():
        if not case.both_changed or (not case.clashing and len(answers) % 7):
            continue
        answer = next(choices)
        if answer == "row":
            answers[CITY, name] = {"founded": "2009-01-01"}
            own = case.result("ours")[case.about]
            expected[name] = {case.about: own, "founded": 9}
        else:
            answers[CITY, name] = answer
            side = 1 if answer == "theirs" else 2
            expected[name] = {case.about: case.own[side], "founded": case.beside[side]}
    before = found_values(played)
    result = played.merge("side", granularity="property", resolutions=answers)
    assert found_values(played) == expected
    # A row that was given is written even when it is what was there.
    changed = {name for name in CASES if expected[name] != before[name]}
    given = {name for (_, name), answer in answers.items() if isinstance(answer, dict)}
    assert result.tables[0].updates == len(changed | given)


def test_rows_that_only_one_side_deleted_or_both_added_are_no_matter_of_properties(graph: og.Graph) -> None:
    put(graph, "main", person("gone", age=1), person("left", age=1))
    graph.branch_create("side")
    put(graph, "side", person("gone", age=2), person("new", age=1, weight=1.0))
    drop(graph, "side", "Person", "left")
    drop(graph, "main", "Person", "gone")
    put(graph, "main", person("left", age=2), person("new", age=2, weight=1.0))
    found = {c.row_id: c for c in graph.merge("side", granularity="property", dry_run=True).conflicts}
    kinds = {row_id: (conflict.kind.value, conflict.properties) for row_id, conflict in found.items()}
    assert kinds == {
        "gone": ("DeleteVsUpdate", ()),
        "left": ("DeleteVsUpdate", ()),
        "new": ("DivergentInsert", ("age",)),
    }


def test_the_ends_of_an_edge_are_one_thing(graph: og.Graph) -> None:
    put(graph, "main", *(person(name) for name in "abcd"), knows("e", "a", "b", since=0), knows("f", "a", "b"))
    graph.branch_create("side")
    put(graph, "side", knows("e", "c", "b", since=0), knows("f", "c", "b"))
    put(graph, "main", knows("e", "a", "d", since=0), knows("f", "a", "b", since=7))
    (conflict,) = graph.merge("side", granularity="property", dry_run=True).conflicts
    assert (conflict.row_id, set(conflict.properties)) == ("e", {"src", "dst"})
    graph.merge("side", granularity="property", strategy="theirs")
    found = {id: (row["src"], row["dst"], row["since"]) for id, row in rows(graph, KNOWS).items()}
    assert found == {"e": ("c", "b", 0), "f": ("c", "b", 7)}


def test_a_row_put_together_of_two_valid_ones_is_validated(tmp_path: Any) -> None:
    schema = "node P { slug: String @key\n first: String\n last: String\n @unique(first, last) }"
    graph = og.init(tmp_path / "graph", schema=schema)

    def p(slug: str, first: str, last: str) -> Row:
        return {"type": "P", "data": {"slug": slug, "first": first, "last": last}}

    graph.load([p("one", "ada", "byron"), p("two", "grace", "hopper")], mode="append")
    graph.branch_create("side")
    put(graph, "side", p("two", "ada", "hopper"))
    put(graph, "main", p("two", "grace", "byron"))
    with pytest.raises(MergeConflicts) as caught:
        graph.merge("side", granularity="property")
    (conflict,) = caught.value.conflicts
    assert (conflict.kind.value, conflict.row_id) == ("UniqueViolation", "two")
    assert graph.entity("P", "two") == {"@id": "two", "slug": "two", "first": "grace", "last": "byron"}


def test_a_criss_cross_by_properties(graph: og.Graph) -> None:
    put(graph, "main", person("x", age=0, weight=0.0, mail="m"))
    graph.branch_create("left")
    graph.branch_create("right")
    put(graph, "left", person("x", age=1))
    put(graph, "right", person("x", weight=1.0))
    graph.branch_create("old-left", graph.head("left").graph_commit_id)
    graph.branch_create("old-right", graph.head("right").graph_commit_id)
    graph.merge("old-right", into="left", granularity="property")
    graph.merge("old-left", into="right", granularity="property")
    put(graph, "left", person("x", age=2))
    put(graph, "right", person("x", mail="n"))
    (conflict,) = graph.merge("right", into="left", dry_run=True).conflicts
    assert conflict.kind.value == "DivergentUpdate"
    found = graph.merge("right", into="left", granularity="property", strategy="ours")
    assert found.commit is not None
    assert rows(graph, PERSON, "left")["x"]["age"] == 2


def test_the_setting_decides_where_a_call_does_not_and_nonsense_is_refused(graph: og.Graph) -> None:
    from omnigraph.config import override

    put(graph, "main", person("x", age=0, weight=0.0))
    graph.branch_create("side")
    put(graph, "side", person("x", age=1))
    put(graph, "main", person("x", weight=1.0))
    with pytest.raises(BadRequest, match="`cell` is no granularity: use row or property"):
        graph.merge("side", granularity="cell")  # type: ignore[arg-type]
    with pytest.raises(BadRequest, match="`cell` is no granularity"):
        graph.set_granularity("cell")  # type: ignore[arg-type]
    with override(merge_granularity="property"):
        assert graph.granularity == "property"
        graph.set_granularity("row")
        assert graph.merge("side", dry_run=True).conflicts
    graph.set_granularity("property")
    assert og.open(graph.uri, read_only=True).granularity == "property"
    assert graph.merge("side", granularity="row", dry_run=True).conflicts
    assert not graph.merge("side", dry_run=True).conflicts
    graph.set_granularity(None)
    assert graph.granularity == "row"
    with override(merge_granularity="property"):
        graph.merge("side")
    found = rows(graph, PERSON)["x"]
    assert (found["age"], found["weight"]) == (1, 1.0)
