"""A graph that is written for long stays small: fragments, versions and files are bounded by upkeep."""

from __future__ import annotations

from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.config import override
from omnigraph.ledger.manifest.manifest_rows import MANIFEST
from omnigraph.ledger.snapshots import table_of
from tests.maintain.graphs import PERSON, SCHEMA, files

UPSERT = "query put($who: String, $age: I32) { insert Person { name: $who, age: $age } }"
ROUNDS, WRITES = 6, 50


@pytest.mark.slow
def test_fragments_versions_and_files_stay_bounded_over_300_commits_on_two_branches(tmp_path: Path) -> None:
    counted: list[tuple[int, int, int]] = []
    with override(cleanup_grace=0.0, auto_compact_fragments=16), og.init(tmp_path / "graph", schema=SCHEMA) as graph:
        graph.branch_create("review")
        store = graph._store
        for turn in range(ROUNDS):
            for number in range(WRITES):
                branch = "review" if number % 2 else "main"
                graph.mutate(UPSERT, who=f"p{turn}-{number}", age=number, branch=branch)
            graph.optimize()
            graph.optimize("review")
            assert not graph.cleanup(keep_versions=5, confirm=True).failed
            most_fragments = most_versions = 0
            for branch in ("main", "review"):
                pin = graph.snapshot(branch=branch).pin(PERSON)
                most_fragments = max(most_fragments, len(store.tables.fragments(table_of(pin))))
                lines = ((pin.location, pin.lance_branch), (MANIFEST, store.branch(branch).manifest_branch))
                most_versions = max(most_versions, *(len(store.tables.versions(*line)) for line in lines))
            counted.append((most_fragments, most_versions, len(files(store))))
        assert graph.snapshot().pin(PERSON).row_count == ROUNDS * WRITES // 2
        assert graph.verify().ok
    assert max(fragments for fragments, _, _ in counted) <= 24, counted
    assert max(versions for _, versions, _ in counted) <= 40, counted
    assert counted[-1][2] <= counted[1][2] * 1.5, counted
