"""What merge, diff and a change of the schema cost: they follow the change, not the size of the graph.

The same change is made to a graph and to one ten times as large, and the times are compared; a fast-forward of a whole
load is compared with the load. The sizes are those of a quick run; `OMNIGRAPH_BENCH_FULL=1` takes 1 M and 10 M rows.
"""

from __future__ import annotations

import os
import statistics
import tempfile
from collections.abc import Callable
from functools import partial
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
REPEATS = 7
LOADS = 4
FULL = bool(os.environ.get("OMNIGRAPH_BENCH_FULL"))


def run(small: int | None = None) -> list[Row]:
    """Merge, diff and schema apply in two sizes of graph, and a fast-forward of a load."""
    few = small or (1_000_000 if FULL else 100_000)
    with tempfile.TemporaryDirectory() as directory:
        graphs = [_graph(Path(directory) / name, rows) for name, rows in (("little", few), ("large", 10 * few))]
        sizes = f"{10 * few:,} rows against {few:,}".replace(",", " ")
        rows = [
            *_merges(graphs, sizes, "that lie together", together=True),
            *_merges(graphs, sizes, "all over the table", together=False),
            *_schema_changes(graphs, sizes),
            _fast_forward(Path(directory), few),
        ]
        for graph in graphs:
            graph.close()
        return rows


def _graph(place: Path, count: int) -> og.Graph:
    graph = og.init(place, schema=SCHEMA)
    graph.load(_people(0, count), type="Person", mode="append", engine="local")
    graph.optimize(engine="local")
    return graph


def _people(start: int, stop: int, age: int | None = None) -> pa.Table:
    numbers = np.arange(start, stop, dtype=np.int64)
    ages = np.full(len(numbers), age, np.int32) if age is not None else (numbers % 90).astype(np.int32)
    return pa.table({"number": numbers, "age": ages})


def _merges(graphs: list[og.Graph], sizes: str, where: str, *, together: bool) -> list[Row]:
    """Merge and diff of 1 000 changed rows. Rows all over a table lie in all of its fragments."""
    merges: list[list[float]] = [[], []]
    diffs: list[list[float]] = [[], []]
    for turn in range(REPEATS + 1):
        for graph, merge_times, diff_times in zip(graphs, merges, diffs):
            _change(graph, turn, together)
            diff_times.append(seconds(lambda graph=graph: _count(graph)))
            merge_times.append(seconds(lambda graph=graph: graph.merge("side", delete_source=True)))
    return [
        _row(f"merge of {CHANGED} changed rows {where}, {sizes}", *reversed(merges), "within 1.5 times"),
        _row(f"diff of {CHANGED} changed rows {where}, {sizes}", *reversed(diffs), "within 1.5 times"),
    ]


def _change(graph: og.Graph, turn: int, together: bool) -> None:
    """A branch with 1 000 changed rows, others each time, and a row changed on main, so that it is no fast-forward."""
    count = graph.snapshot().pin("node:Person").row_count
    each = np.arange(CHANGED, dtype=np.int64)
    numbers = count // 2 + turn * CHANGED + each if together else each * (count // CHANGED) + turn
    graph.branch_create("side")
    age = 91 + turn + (100 if together else 0)
    changed = pa.table({"number": numbers, "age": np.full(CHANGED, age, np.int32)})
    graph.load(changed, type="Person", mode="merge", branch="side", engine="local")
    graph.load(_people(count - 1, count, age), type="Person", mode="merge", engine="local")


def _count(graph: og.Graph) -> None:
    found = sum(1 for _ in graph.diff("main", "side"))
    assert found == CHANGED + 1, found


def _schema_changes(graphs: list[og.Graph], sizes: str) -> list[Row]:
    """A nullable property and an index more: no data file is written, whatever the table holds."""
    plain = SCHEMA.rstrip().removesuffix("}")
    changes: list[tuple[str, Callable[[int], str]]] = [
        (
            "a nullable property",
            lambda turn: plain + "".join(f"    extra{n}: String?\n" for n in range(turn + 1)) + "}",
        ),
        (
            "an index",
            lambda turn: plain.replace("age: I32?", "age: I32? @index" if turn % 2 == 0 else "age: I32?") + "}",
        ),
    ]
    rows = []
    for name, source in changes:
        times: list[list[float]] = [[], []]
        for turn in range(4):
            for graph, own in zip(graphs, times):
                before = _files(graph)
                own.append(seconds(partial(graph.apply_schema, source(turn))))
                written = _files(graph) - before
                assert not written, f"a schema apply wrote {sorted(written)}"
        for graph in graphs:
            graph.apply_schema(SCHEMA)
        rows.append(_row(f"schema apply that adds {name}, {sizes}", *reversed(times), "no data written"))
    return rows


def _files(graph: og.Graph) -> set[str]:
    """Data files and indexes of people."""
    place = Path(graph.uri, graph.snapshot().pin("node:Person").location)
    return {str(path) for below in ("data", "_indices") for path in (place / below).rglob("*")}


def _fast_forward(directory: Path, count: int) -> Row:
    """A fast-forward of a whole load, against the load itself."""
    graph = og.init(directory / "forward", schema=SCHEMA)
    loads, merges = [], []
    for turn in range(LOADS):
        graph.branch_create("side")
        rows = _people(turn * count, (turn + 1) * count)
        loads.append(
            seconds(lambda rows=rows: graph.load(rows, type="Person", mode="append", branch="side", engine="local"))
        )
        merges.append(seconds(lambda: graph.merge("side", delete_source=True)))
    graph.close()
    shown = f"{count:,}".replace(",", " ")
    return _row(f"fast-forward of a load of {shown} rows against the load", merges, loads, "less than the load")


def _row(name: str, ours: list[float], other: list[float], goal: str) -> Row:
    """Compare medians; the first of each is left out, since it fills caches."""
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
