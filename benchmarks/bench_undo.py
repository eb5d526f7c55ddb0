"""What undo costs: a restore follows the number of tables, a revert follows what it takes back.

Sizes are those of a quick run; `OMNIGRAPH_BENCH_FULL=1` takes 1 M and 10 M rows.
"""

from __future__ import annotations

import os
import statistics
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa

import omnigraph as og
from benchmarks.harness import Row, seconds

SCHEMA = """
node Person {
    number: I64 @key
    age: I32?
}
"""
CHANGED = 1000
REPEATS = 5
FULL = bool(os.environ.get("OMNIGRAPH_BENCH_FULL"))


def run(small: int | None = None) -> list[Row]:
    """Restore and revert in two sizes of graph, and a revert of a whole load against the load."""
    few = small or (1_000_000 if FULL else 100_000)
    with tempfile.TemporaryDirectory() as directory:
        graphs = [_graph(Path(directory) / name, rows) for name, rows in (("little", few), ("large", 10 * few))]
        sizes = f"{10 * few:,} rows against {few:,}".replace(",", " ")
        rows = [
            _compared(f"revert of {CHANGED} changed rows, {sizes}", graphs, _revert, "within 1.5 times"),
            _compared(f"restore after every row was changed, {sizes}", graphs, _restore, "within 1.5 times"),
            _load(graphs[0], few),
        ]
        for graph in graphs:
            graph.close()
        return rows


def _graph(place: Path, count: int) -> og.Graph:
    graph = og.init(place, schema=SCHEMA)
    graph.load(_people(0, count), type="Person", mode="append", engine="local")
    graph.optimize(engine="local")
    return graph


def _people(start: int, stop: int, age: int = 1) -> pa.Table:
    numbers = np.arange(start, stop, dtype=np.int64)
    return pa.table({"number": numbers, "age": np.full(len(numbers), age, np.int32)})


def _compared(name: str, graphs: list[og.Graph], work: Callable[[og.Graph, int], float], goal: str) -> Row:
    times: list[list[float]] = [[], []]
    for turn in range(REPEATS + 1):
        for graph, own in zip(graphs, times):
            own.append(work(graph, turn))
    little, large = (statistics.median(own[1:]) for own in times)
    return Row(name, large, little, large / little, goal)


def _revert(graph: og.Graph, turn: int) -> float:
    """Take back a load of changes that another commit came after."""
    graph.load(_people(0, CHANGED, 2 + turn), type="Person", mode="merge", engine="local")
    mistake = graph.head().graph_commit_id
    graph.load(_people(CHANGED, CHANGED + 1, 50 + turn), type="Person", mode="merge", engine="local")
    return seconds(lambda: graph.revert(mistake, engine="local"))


def _restore(graph: og.Graph, turn: int) -> float:
    """Go back to the state before every row was replaced."""
    good, count = graph.head().graph_commit_id, graph.snapshot().pin("node:Person").row_count
    if turn % 3 == 0:
        graph.load(_people(0, count, 60 + turn), type="Person", mode="overwrite", engine="local")
    else:
        graph.load(_people(0, CHANGED, 60 + turn), type="Person", mode="merge", engine="local")
    return seconds(lambda: graph.restore(good, engine="local"))


def _load(graph: og.Graph, count: int) -> Row:
    """A whole load is taken back, with the newest commit another one."""
    loads, reverts = [], []
    start = graph.snapshot().pin("node:Person").row_count
    for turn in range(3):
        rows = _people(start, start + count)
        loads.append(seconds(lambda rows=rows: graph.load(rows, type="Person", mode="append", engine="local")))
        mistake = graph.head().graph_commit_id
        graph.load(_people(0, 1, 70 + turn), type="Person", mode="merge", engine="local")
        reverts.append(seconds(lambda mistake=mistake: graph.revert(mistake, engine="local")))
    name = f"revert of a load of {count:,} rows, against the load".replace(",", " ")
    back, load = statistics.median(reverts), statistics.median(loads)
    return Row(name, back, load, back / load, "no more than the load")
