"""Cost follows the change: many types, many branches, a long history, each against the same work on a small graph."""

from __future__ import annotations

import itertools
import tempfile
from pathlib import Path

import omnigraph as og
from benchmarks.bench_open import graph_with
from benchmarks.harness import Row, measure
from omnigraph.graph import Graph


def run(types: int = 500, branches: int = 1_000, commits: int = 10_000) -> list[Row]:
    """Merge of one row by the number of types, verify by the number of commits, cleanup by the number of branches."""
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        return [
            _merge(place, types),
            _verify(place, commits),
            _cleanup(place, branches),
        ]


def _merge(place: Path, types: int) -> Row:
    many, few = _with_types(place / "many", types), _with_types(place / "few", 10)
    numbers = itertools.count()
    name = f"merge of one row with {types} types"
    return measure(
        name, lambda: _merge_one(many, next(numbers)), lambda: _merge_one(few, next(numbers)), "within 3 of 10"
    )


def _with_types(path: Path, types: int) -> Graph:
    source = "\n".join(f"node T{number} {{ name: String @key }}" for number in range(types))
    return og.init(path, schema=source)


def _merge_one(graph: Graph, number: int) -> None:
    graph.branch_create(f"b{number}")
    graph.load([{"type": "T0", "data": {"name": f"n{number}"}}], mode="append", branch=f"b{number}")
    graph.merge(f"b{number}")
    graph.branch_delete(f"b{number}")


def _verify(place: Path, commits: int) -> Row:
    graph_with(place / "long", commits)
    graph_with(place / "short", 10)
    name = f"verify with {commits} commits"
    return measure(name, lambda: _check(place / "long"), lambda: _check(place / "short"), "under 2 s", repeats=3)


def _check(path: Path) -> None:
    with og.open(path, read_only=True) as graph:
        assert graph.verify().ok


def _cleanup(place: Path, branches: int) -> Row:
    for path, count in ((place / "wide", branches), (place / "narrow", 10)):
        with og.init(path, schema="node Person { name: String @key }") as graph:
            for number in range(count):
                graph.branch_create(f"b{number}")
    name = f"cleanup with {branches} branches"
    return measure(name, lambda: _clean(place / "wide"), lambda: _clean(place / "narrow"), "under 5 s", repeats=3)


def _clean(path: Path) -> None:
    with og.open(path) as graph:
        graph.cleanup(keep_versions=10)
