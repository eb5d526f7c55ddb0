"""Every pair of schema changes on two branches that have rows: what `schema.merging` decides, the rows follow.

The pairs that collide are pinned, in words, where schemas are merged without rows (`tests/schema/merging/test_pairs`).
Here each branch has a row of its own and has changed one that the other left alone, and both directions of a merge
must say the same.
"""

from __future__ import annotations

import itertools
import os
from typing import Any

import pytest

import omnigraph as og
from tests.merge.graphs import content
from tests.schema.merging.test_pairs import BASE, CHANGES, OUTCOMES

pytestmark = pytest.mark.slow

KINDS = ("add", "rename", "drop", "widen", "require", "constraint", "enum", "index")
PAIRS = list(CHANGES) if os.environ.get("OMNIGRAPH_ALL_PAIRS") else KINDS


def branch_of(change: str) -> str:
    return change.replace(" ", "-")


def changed(change: str) -> str:
    text = BASE
    for old, new in CHANGES[change]:
        text = text.replace(old, new)
    return text


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> og.Graph:
    """One branch for each change, with the change, a new row and an update of a row that is its own."""
    graph = og.init(tmp_path_factory.mktemp("pairs") / "graph", schema=BASE)
    numbers = {change: 10 + number for number, change in enumerate(PAIRS)}
    graph.load(
        [
            *({"type": "A", "data": {"k": branch_of(c), "a": n, "e": "x", "f": 0.1}} for c, n in numbers.items()),
            {"type": "B", "id": "b", "data": {"b": "b"}},
            {"edge": "E", "id": "e", "from": branch_of(PAIRS[0]), "to": "b"},
        ],
        mode="append",
    )
    for change, number in numbers.items():
        branch = branch_of(change)
        graph.branch_create(branch)
        graph.apply_schema(changed(change), branch=branch)
        type_ = next(node for node in graph.catalog(branch).nodes if node.by_name.get("k"))
        own = {"k": f"new {branch}", "e": "y"}
        # Within every range, and no value of another row that the branch with the unique property can meet.
        new = 50 if change == "constraint" else 36 + number % 14
        own |= {p.name: new for p in type_.properties if p.name in ("a", "y", "z")}
        rows = [own, {"k": branch, "e": "y"}]
        graph.load([{"type": type_.name, "data": row} for row in rows], mode="merge", branch=branch)
    return graph


def rows_by_id(graph: og.Graph, branch: str) -> dict[str, dict[str, Any]]:
    """The rows of every type by stable ids: names may differ."""
    found = content(graph, branch)
    result: dict[str, dict[str, Any]] = {}
    for type_ in graph.catalog(branch).types():
        names = {p.name: p.id for p in type_.properties}
        result[type_.id] = {
            key: {names.get(name, name): value for name, value in row.items()}
            for key, row in found[type_.table_key].items()
        }
    return result


@pytest.mark.parametrize(("one", "other"), list(itertools.combinations(PAIRS, 2)))
def test_rows_follow_the_schemas(graph: og.Graph, one: str, other: str) -> None:
    before = {side: rows_by_id(graph, branch_of(side)) for side in (one, other)}
    collide = bool(OUTCOMES.get((one, other)) or OUTCOMES.get((other, one)))
    lost = "drop" in (one, other) and not collide
    found = []
    for source, target in ((one, other), (other, one)):
        into = f"{branch_of(target)}-with-{branch_of(source)}"
        graph.branch_create(into, from_=branch_of(target))
        if collide or lost:
            dry = graph.merge(branch_of(source), into, dry_run=True)
            assert {conflict.kind.value for conflict in dry.conflicts} == {"SchemaConflict"}
            # The new row of the other side has a value in what is dropped.
            assert not lost or "1 row of the " in dry.conflicts[0].message
            continue
        graph.merge(branch_of(source), into)
        found.append(rows_by_id(graph, into))
        # Every row that a side made or changed is there with all values of that side that the result still has.
        for side in (one, other):
            for key in (branch_of(side), f"new {branch_of(side)}"):
                mine, merged = before[side]["n1"][key], found[-1]["n1"][key]
                assert {name: merged[name] for name in mine.keys() & merged.keys()} == {
                    name: mine[name] for name in mine.keys() & merged.keys()
                }
        untouched = [branch_of(change) for change in PAIRS if change not in (one, other)]
        for key in untouched:
            mine, merged = before[one]["n1"][key], found[-1]["n1"][key]
            assert all(merged[name] == mine[name] for name in mine.keys() & merged.keys())
    if found:
        assert found[0] == found[1]


def test_nothing_is_broken_by_all_these_merges(graph: og.Graph) -> None:
    assert graph.verify().findings == ()
