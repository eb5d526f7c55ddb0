"""Undo across states with different schemas: what comes back, what is checked, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.errors import HistoryGap, MergeConflicts
from tests.merge.graphs import content, store_of

BASE = """
node A {
    k: String @key
    a: I32?
    b: String
    e: enum(x, y)?
    f: F32?
    @range(a, 0..100)
}
node B { b: String? }
edge E: A -> B
node Other { k: String @key }
"""

SCHEMA_CHANGES: dict[str, tuple[tuple[str, str], ...]] = {
    "add": (("f: F32?", "f: F32?\n    new: String?"),),
    "add with a default": (("f: F32?", "f: F32?\n    other: I32 @default(3)"),),
    "rename": (("a: I32?", 'z: I32? @rename_from("a")'), ("@range(a,", "@range(z,")),
    "drop": (("a: I32?", ""), ("@range(a, 0..100)", "")),
    "drop what is required": (("b: String\n", ""),),
    "widen": (("a: I32?", "a: I64?"), ("f: F32?", "f: F64?")),
    "require": (("a: I32?", "a: I32"),),
    "constraint": (("@range(a, 0..100)", "@range(a, 0..50)\n    @unique(a)"),),
    "enum": (("enum(x, y)", "enum(x, y, p)"),),
    "index and default": (("a: I32?", "a: I32? @index @default(1)"),),
    "add types": (("node B {", "node C { c: I32? }\nedge F: A -> C\nnode B {"),),
    "rename a type": (("node A {", 'node Z @rename_from("A") {'), ("edge E: A", "edge E: Z")),
    "drop types": (("node B { b: String? }", ""), ("edge E: A -> B", "")),
    "cardinality": (("edge E: A -> B", "edge E: A -> B @card(0..1)"),),
}

ROWS = [
    {"type": "A", "data": {"k": "1", "a": 20, "b": "b1", "e": "x", "f": 0.1}},
    {"type": "A", "data": {"k": "2", "a": 21, "b": "b2", "e": "y"}},
    {"type": "B", "id": "b", "data": {"b": "b"}},
    {"edge": "E", "id": "e", "from": "1", "to": "b"},
]
TOUCHED_REFUSALS = {
    "widen": "cannot become `I32`",
    "drop what is required": "a required property without a default cannot be added where there are rows",
    "add with a default": "1 row of the target got values in it since",
}
"""Schema changes that cannot be taken back once rows of the type were written, with words of the conflict."""


def changed(name: str, text: str = BASE) -> str:
    for old, new in SCHEMA_CHANGES[name]:
        assert old in text
        text = text.replace(old, new)
    return text


def commit_of(result: Any) -> str:
    assert result.commit is not None
    return str(result.commit.graph_commit_id)


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    graph = og.init(tmp_path / "graph", schema=BASE)
    graph.load(ROWS, mode="append")
    return graph


def test_every_schema_change_is_taken_back_below_what_came_after(graph: og.Graph) -> None:
    before = content(graph)
    for number, name in enumerate(SCHEMA_CHANGES):
        applied = commit_of(graph.apply_schema(changed(name)))
        graph.load([{"type": "Other", "data": {"k": f"o{number}"}}], mode="append")
        graph.revert(applied)
        assert graph.schema_source() == BASE, name
        found = content(graph)
        assert {key: found[key] for key in before if key != "node:Other"} == {
            key: before[key] for key in before if key != "node:Other"
        }, name
        assert len(found["node:Other"]) == number + 1
    assert graph.verify(deep=True).findings == ()


def test_every_schema_change_is_taken_back_from_rows_that_were_written_since(graph: og.Graph) -> None:
    state = commit_of(graph.load([{"type": "Other", "data": {"k": "o"}}], mode="append"))
    before = content(graph)["node:A"]
    for name in SCHEMA_CHANGES:
        applied = commit_of(graph.apply_schema(changed(name)))
        row = {"k": "3", "b": "b3", "a": 30, "e": "y", "z": 30}
        type_ = next(t for t in graph.catalog().nodes if t.name in "AZ")
        data = {key: value for key, value in row.items() if key in type_.by_name}
        graph.load([{"type": type_.name, "data": data}], mode="append")
        if name in TOUCHED_REFUSALS:
            for strategy in (None, "ours", "theirs"):
                with pytest.raises(MergeConflicts, match=TOUCHED_REFUSALS[name]) as refused:
                    graph.revert(applied, strategy=strategy)
                assert {c.kind for c in refused.value.conflicts} == {"SchemaConflict"}
                assert "Strategies and answers settle rows, not schemas: apply to `main`" in str(refused.value)
        else:
            graph.revert(applied)
            assert graph.schema_source() == BASE, name
            found = content(graph)["node:A"]
            assert {key: found[key] for key in before} == before, name
            assert found["3"]["a"] == (None if name == "drop" else 30)
        graph.restore(state)
        assert content(graph)["node:A"] == before
    assert graph.verify(deep=True).findings == ()


def test_values_that_an_enum_no_longer_has_are_the_conflicts_of_their_rows(graph: og.Graph) -> None:
    applied = commit_of(graph.apply_schema(changed("enum")))
    graph.load([{"type": "A", "data": {"k": "2", "e": "p"}}], mode="merge")
    with pytest.raises(MergeConflicts) as refused:
        graph.revert(applied)
    assert [(c.kind.value, c.row_id) for c in refused.value.conflicts] == [("ValueConstraintViolation", "2")]
    graph.load([{"type": "A", "data": {"k": "2", "e": "x"}}], mode="merge")
    graph.revert(applied)
    assert graph.schema_source() == BASE


def test_a_schema_change_is_picked_by_a_branch_that_has_changed_its_own(graph: og.Graph) -> None:
    graph.branch_create("side")
    graph.apply_schema(changed("rename a type"), branch="side")
    graph.load([{"type": "Z", "data": {"k": "1", "b": "side"}}], mode="merge", branch="side")
    applied = commit_of(graph.apply_schema(changed("add types", changed("widen"))))
    graph.load([{"type": "A", "data": {"k": "big", "b": "b", "a": 99, "f": 0.5}}], mode="append")
    written = graph.head().graph_commit_id
    graph.cherry_pick(applied, into="side")
    assert {t.name for t in graph.catalog("side").types()} == {"Z", "B", "C", "E", "F", "Other"}
    graph.cherry_pick(written, into="side")
    rows = content(graph, "side")["node:Z"]
    assert {key: (row["a"], row["b"], row["f"]) for key, row in rows.items()} == {
        "1": (20, "side", 0.1),
        "2": (21, "b2", None),
        "big": (99, "b", 0.5),
    }
    assert graph.verify(deep=True).findings == ()


def test_main_goes_back_to_the_state_of_a_branch_that_has_another_schema(graph: og.Graph) -> None:
    graph.branch_create("side")
    graph.load(
        [
            {"type": "A", "data": {"k": "3", "a": 3, "b": "side"}},
            {"type": "B", "id": "b", "data": {"b": "side"}},
            {"edge": "E", "id": "e2", "from": "3", "to": "b"},
            {"type": "Other", "data": {"k": "of side"}},
        ],
        mode="merge",
        branch="side",
    )
    wanted = content(graph, "side")
    # On main the type with the rows is wider, another one is gone, one has another name.
    text = changed("widen", changed("drop types")).replace("node Other", 'node Some @rename_from("Other")')
    graph.apply_schema(text)
    graph.load(
        [{"type": "A", "data": {"k": "m", "a": 50, "b": "main"}}, {"type": "Some", "data": {"k": "of main"}}],
        mode="append",
    )
    of_main, before = content(graph), graph.head().graph_commit_id
    planned = graph.restore("side", dry_run=True)
    assert (planned.outcome, planned.commit) == ("done", None)
    graph.restore("side")
    assert graph.schema_source() == BASE
    assert content(graph) == wanted
    assert list(graph.diff("main", "side")) == []
    # What main has is its own.
    graph.branch_delete("side")
    graph.cleanup(keep_versions=3, confirm=True, force=True)
    assert content(graph) == wanted
    graph.load([{"type": "A", "data": {"k": "new", "b": "b"}}], mode="append")
    graph.restore(before)
    assert content(graph) == of_main
    assert graph.verify(deep=True).findings == ()


def test_what_cleanup_took_of_a_drop_is_said(graph: og.Graph) -> None:
    applied = commit_of(graph.apply_schema(changed("drop")))
    for number in range(4):
        graph.load([{"type": "A", "data": {"k": f"n{number}", "b": "b"}}], mode="append")
    graph.cleanup(keep_versions=1, confirm=True, force=True)
    before = store_of(graph).snapshot()
    with pytest.raises(HistoryGap, match="cleanup"):
        graph.revert(applied)
    assert store_of(graph).snapshot() == before
