"""Optimize and index builds on both engines: the same rows before and after, the same report, one commit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.config import override
from omnigraph.graph import Graph
from omnigraph.ledger.snapshots import table_of
from omnigraph.maintain.optimize.optimize import MaintenanceResult, ensure_indices, optimize
from omnigraph.maintain.optimize.workers import Workers, local_workers
from omnigraph.spark.jobs.compact import spark_workers

pytestmark = pytest.mark.spark

SCHEMA = "node Person { slug: String @key  bio: String? @index  age: I32? }\nedge Knows: Person -> Person"
FIND = 'query q() { match { $p: Person  search($p.bio, "graphs") } return { $p.slug, $p.age } }'


def history(path: Path) -> Graph:
    """A table of several small fragments, some rows deleted."""
    g = og.init(path, schema=SCHEMA)
    for turn in range(6):
        rows = [
            {
                "type": "Person",
                "data": {"slug": f"p{turn}-{n}", "bio": f"likes {'graphs' if n % 3 else 'bread'}", "age": n},
            }
            for n in range(20)
        ]
        g.load(rows, mode="append")
    g.mutate("query d() { delete Person where age = 7 }")
    return g


def reported(result: MaintenanceResult) -> list[Any]:
    return [(t.table_key, t.fragments_removed, t.indexes_built, t.pending_indexes, t.skipped) for t in result.tables]


@pytest.fixture
def engines(spark: Any) -> tuple[Workers, Workers]:
    return local_workers(), spark_workers(spark)


def test_optimize_gives_the_same_on_both_engines(engines: tuple[Workers, Workers], tmp_path: Path) -> None:
    reports, rows = [], []
    for workers in engines:
        with override(auto_compact_fragments=0), history(tmp_path / workers.engine) as g:
            before = g.query(FIND).rows()
            result = optimize(g._store, workers=workers)
            assert result.engine == workers.engine
            assert result.commit is not None
            assert not result.commit.changes_data
            assert result.commit.parent_commit_id == g.log()[1].graph_commit_id
            assert g.query(FIND).rows() == before
            assert len(g._store.tables.fragments(table_of(g.snapshot().pin("node:Person")))) == 1
            reports.append(reported(result))
            rows.append(before)
            assert optimize(g._store, workers=workers).commit is None
            assert g.verify().ok
    assert reports[0] == reports[1]
    assert rows[0] == rows[1]


def test_index_builds_give_the_same_on_both_engines(engines: tuple[Workers, Workers], tmp_path: Path) -> None:
    built = []
    for workers in engines:
        with override(auto_compact_fragments=0), history(tmp_path / workers.engine) as g:
            before = g.query(FIND).rows()
            result = ensure_indices(g._store, workers=workers)
            assert result.commit is not None
            table = table_of(g.snapshot().pin("node:Person"))
            indexes = g._store.tables.list_indexes(table)
            assert all(not index.uncovered_fragments for index in indexes)
            built.append([(index.name, index.kind) for index in indexes])
            assert g.query(FIND).rows() == before
            assert ensure_indices(g._store, workers=workers).commit is None
    assert built[0] == built[1]
