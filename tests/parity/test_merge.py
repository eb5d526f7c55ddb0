"""Merge and difference on both engines: the same rows, the same counts, the same conflicts, the same commits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.errors import MergeConflicts
from omnigraph.graph import Graph
from omnigraph.merge.diff import DiffFilter, diff, summary
from omnigraph.merge.merge import merge
from omnigraph.merge.placement import IN_PROCESS, Placement
from omnigraph.merge.undo.restore import restore
from omnigraph.merge.undo.revert import cherry_pick, revert
from omnigraph.spark.jobs.merge import spark_placement

pytestmark = pytest.mark.spark

SCHEMA = """
node Person {
    slug: String @key
    age: I32?
    taste: Vector(2)?
    photo: Blob?
}
edge Knows: Person -> Person { since: Date? @key(src, dst) }
"""

OLDER = "query older($s: String, $a: I32) { update Person set { age: $a } where slug = $s }"


def people(first: int, last: int) -> list[dict[str, Any]]:
    nodes = [
        {"type": "Person", "data": {"slug": f"p{i}", "age": i, "taste": [i, 1], "photo": "aGVsbG8="}}
        for i in range(first, last)
    ]
    return [*nodes, *({"edge": "Knows", "from": f"p{i}", "to": f"p{first}"} for i in range(first, last))]


def history(path: Path) -> Graph:
    """A branch that inserts, updates and deletes, and a target that moved on elsewhere."""
    g = og.init(path, schema=SCHEMA)
    g.load(people(0, 60), mode="append")
    g.branch_create("work")
    g.load(people(100, 140), mode="append", branch="work")
    for number in range(5, 25):
        g.mutate(OLDER, s=f"p{number}", a=900 + number, branch="work")
    g.mutate('query d() { delete Person where slug = "p50" }', branch="work")
    g.mutate(OLDER, s="p40", a=1)
    return g


def state(g: Graph, tmp_path: Path) -> bytes:
    g.export(tmp_path / "state.jsonl", engine="local", overwrite=True)
    return (tmp_path / "state.jsonl").read_bytes()


@pytest.fixture
def placements(spark: Any) -> tuple[Placement, Placement]:
    return IN_PROCESS, spark_placement(spark, least_rows=1)


def test_a_merge_gives_the_same_rows_and_counts(placements: tuple[Placement, Placement], tmp_path: Path) -> None:
    results, states = [], []
    for placement in placements:
        with history(tmp_path / placement.engine) as g:
            results.append(merge(g._store, "work", placement=placement))
            states.append(state(g, tmp_path))
            assert results[-1].engine == placement.engine
            assert results[-1].commit is not None
            assert results[-1].commit.merged_parent_commit_id == g.head("work").graph_commit_id
            photo = g.query('query q() { match { $p: Person { slug: "p101" } } return { $p.age } }').rows()
            assert photo == [{"p.age": 101}]
    assert states[0] == states[1]
    here, there = results
    assert (here.outcome, here.tables) == (there.outcome, there.tables)


def test_updated_rows_keep_their_row_ids_on_spark(placements: tuple[Placement, Placement], tmp_path: Path) -> None:
    with history(tmp_path / "g") as g:

        def row_ids() -> dict[str, int]:
            from omnigraph.ledger.snapshots import table_of

            table = g._store.tables.scan_table(
                table_of(g.snapshot().pin("node:Person")), columns=["id"], with_row_id=True
            )
            return dict(zip(table["id"].to_pylist(), table["_rowid"].to_pylist(), strict=True))

        before = row_ids()
        merge(g._store, "work", placement=placements[1])
        after = row_ids()
        assert {k: v for k, v in after.items() if k in before} == {k: v for k, v in before.items() if k != "p50"}


def test_conflicts_are_the_same(placements: tuple[Placement, Placement], tmp_path: Path) -> None:
    with history(tmp_path / "g") as g:
        g.mutate(OLDER, s="p7", a=1)
        g.mutate('query d() { delete Person where slug = "p9" }')
        found = []
        for placement in placements:
            with pytest.raises(MergeConflicts) as refused:
                merge(g._store, "work", placement=placement)
            found.append([c.to_json() for c in refused.value.conflicts])
        assert found[0] == found[1]
        assert {c["row_id"] for c in found[0]} >= {"p7", "p9"}


def test_a_difference_is_the_same_in_the_same_order(placements: tuple[Placement, Placement], tmp_path: Path) -> None:
    with history(tmp_path / "g") as g:
        left, right = g.snapshot("main"), g.snapshot("work")
        here, there = (list(diff(g._store, left, right, DiffFilter(), p)) for p in placements)
        assert here == there
        assert len(here) > 60
        assert summary(g._store, left, right, None, placements[0]) == summary(
            g._store, left, right, None, placements[1]
        )


def test_properties_are_merged_alike(placements: tuple[Placement, Placement], tmp_path: Path) -> None:
    states, conflicts = [], []
    for placement in placements:
        with history(tmp_path / placement.engine) as g:
            changes = [{"slug": f"p{n}", "taste": [n, 2], "photo": "dHdv"} for n in range(5, 15)]
            g.load(changes, type="Person", mode="merge")
            g.mutate(OLDER, s="p6", a=7)
            found = merge(g._store, "work", granularity="property", dry_run=True, placement=placement).conflicts
            conflicts.append([(c.row_id, c.properties, c.message) for c in found])
            merge(g._store, "work", granularity="property", strategy="theirs", placement=placement)
            states.append(state(g, tmp_path))
    assert conflicts[0] == conflicts[1]
    assert [(row, properties) for row, properties, _ in conflicts[0]] == [("p6", ("age",))]
    assert states[0] == states[1]


def test_undo_gives_the_same_rows_and_counts(placements: tuple[Placement, Placement], tmp_path: Path) -> None:
    seen = []
    for placement in placements:
        with history(tmp_path / placement.engine) as g:
            own = [merge(g._store, "work", placement=placement).tables, state(g, tmp_path)]
            merged = g.head().graph_commit_id
            g.mutate(OLDER, s="p41", a=2)
            undone = revert(g._store, merged, placement=placement)
            own += [undone.tables, undone.engine == placement.engine, state(g, tmp_path)]
            picked = cherry_pick(g._store, merged, placement=placement)
            own += [picked.tables, state(g, tmp_path)]
            restore(g._store, "work", placement=placement)
            own.append(state(g, tmp_path))
            seen.append(own)
    assert seen[0] == seen[1]


NEXT_SCHEMA = SCHEMA.replace(
    "age: I32?", 'years: I64? @rename_from("age")\n    mood: String? @default("calm")'
).replace("edge Knows", "node Cat { name: String @key }\nedge Knows")


def test_branches_with_different_schemas_merge_alike(placements: tuple[Placement, Placement], tmp_path: Path) -> None:
    """Columns and rows of one table, a type with rows, rows put together, conflicts, and all of it taken back."""
    seen = []
    for placement in placements:
        with history(tmp_path / placement.engine) as g:
            g.apply_schema(NEXT_SCHEMA, branch="work")
            g.load([{"type": "Cat", "data": {"name": f"c{n}"}} for n in range(30)], mode="append", branch="work")
            moods = [{"slug": f"p{n}", "mood": "glad", "photo": "dHdv"} for n in range(5, 15)]
            g.load(moods, type="Person", mode="merge", branch="work")
            g.apply_schema(SCHEMA.replace("photo: Blob?", "photo: Blob?\n    tag: String?"))
            g.load([{"slug": f"p{n}", "tag": "x"} for n in range(10, 30)], type="Person", mode="merge")
            g.mutate(OLDER, s="p12", a=3)
            dry = merge(g._store, "work", granularity="property", dry_run=True, placement=placement)
            own: list[Any] = [[(c.row_id, c.properties, c.message) for c in dry.conflicts], list(dry.changes)]
            result = merge(g._store, "work", granularity="property", strategy="theirs", placement=placement)
            assert result.commit is not None
            own += [result.tables, state(g, tmp_path), g.schema_source()]
            g.load([{"edge": "Knows", "from": "p1", "to": "p2"}], mode="append")
            undone = revert(g._store, result.commit.graph_commit_id, placement=placement)
            own += [undone.tables, state(g, tmp_path)]
            restore(g._store, "work", placement=placement)
            own.append(state(g, tmp_path))
            assert own[0]
            seen.append(own)
    assert seen[0] == seen[1]
