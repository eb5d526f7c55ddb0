"""What merge and diff cost: they follow the change, not the size of the graph.

A change of 1 000 rows is merged into a small graph and into one ten times as large, and the times are compared. The
sizes are those of a quick run; `OMNIGRAPH_BENCH_FULL=1` takes 1 M against 10 M rows.
"""

from __future__ import annotations

import os
import shutil
import statistics
import tempfile
from pathlib import Path

import pyarrow as pa

import omnigraph as og
from benchmarks.harness import Row, seconds

SCHEMA = """
node Person {
    slug: String @key
    age: I32?
}
"""
CHANGED = 1000
REPEATS = 5
FULL = bool(os.environ.get("OMNIGRAPH_BENCH_FULL"))


def run(small: int | None = None) -> list[Row]:
    """Merge and diff of 1 000 changed rows in two sizes of graph, and a fast-forward of a load."""
    few = small or (1_000_000 if FULL else 100_000)
    with tempfile.TemporaryDirectory() as directory:
        little = _graph(Path(directory) / "little", few)
        large = _graph(Path(directory) / "large", 10 * few)
        sizes = f"{few:,} and {10 * few:,} rows".replace(",", " ")
        merges: tuple[list[float], list[float]] = ([], [])
        diffs: tuple[list[float], list[float]] = ([], [])
        for turn in range(REPEATS + 1):
            for graph, merge_times, diff_times in ((little, merges[0], diffs[0]), (large, merges[1], diffs[1])):
                _change(graph, turn)
                diff_times.append(seconds(lambda graph=graph: _count(graph)))
                merge_times.append(seconds(lambda graph=graph: graph.merge("side", delete_source=True)))
        rows = [
            _row(f"merge of {CHANGED} changed rows, {sizes}", merges[1], merges[0], "within 1.5 times"),
            _row(f"diff of {CHANGED} changed rows, {sizes}", diffs[1], diffs[0], "within 1.5 times"),
            _fast_forward(Path(directory), few),
        ]
        little.close()
        large.close()
        return rows


def _graph(place: Path, count: int) -> og.Graph:
    graph = og.init(place, schema=SCHEMA)
    step = 1_000_000
    for start in range(0, count, step):
        graph.load(_people(start, min(start + step, count)), type="Person", mode="append", engine="local")
    graph.optimize(engine="local")
    return graph


def _people(start: int, stop: int, age: int | None = None) -> pa.Table:
    ages = [age if age is not None else n % 90 for n in range(start, stop)]
    return pa.table({"slug": [f"p{n}" for n in range(start, stop)], "age": pa.array(ages, pa.int32())})


def _change(graph: og.Graph, turn: int) -> None:
    """A branch with 1 000 changed rows, and one row changed on main meanwhile, so that it is no fast-forward."""
    graph.branch_create("side")
    graph.load(_people(0, CHANGED, 91 + turn), type="Person", mode="merge", branch="side", engine="local")
    graph.load(_people(CHANGED, CHANGED + 1, 91 + turn), type="Person", mode="merge", engine="local")


def _count(graph: og.Graph) -> None:
    found = sum(1 for _ in graph.diff("main", "side"))
    assert found == CHANGED + 1, found


def _fast_forward(directory: Path, count: int) -> Row:
    """A fast-forward of a whole load, against the load itself."""
    graph = og.init(directory / "forward", schema=SCHEMA)
    loads, merges = [], []
    for turn in range(3):
        graph.branch_create("side")
        rows = _people(turn * count, (turn + 1) * count)
        loads.append(
            seconds(lambda rows=rows: graph.load(rows, type="Person", mode="append", branch="side", engine="local"))
        )
        merges.append(seconds(lambda: graph.merge("side", delete_source=True)))
    graph.close()
    shutil.rmtree(directory / "forward")
    return _row(f"fast-forward of a load of {count} rows against the load", merges, loads, "")


def _row(name: str, ours: list[float], other: list[float], goal: str) -> Row:
    ours, other = ours[1:], other[1:]
    median = statistics.median(ours)
    quartiles = statistics.quantiles(ours, n=4) if len(ours) > 1 else [median] * 3
    return Row(
        name,
        median,
        statistics.median(other),
        median / statistics.median(other),
        goal,
        (quartiles[2] - quartiles[0]) / median,
    )


if __name__ == "__main__":
    from benchmarks.harness import markdown

    print(markdown(run()))
