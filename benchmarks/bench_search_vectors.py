"""Vector searches with a filter side by side with bare Lance, before and after a write, with the recall of both.

`OMNIGRAPH_BENCH_VECTORS` sets the size (page 10 asks for a million), `OMNIGRAPH_BENCH_GRAPHS` keeps the graph.
"""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Callable
from typing import Any

import lance
import numpy as np
import pyarrow as pa

import omnigraph as og

from .harness import Row, measure
from .searched_graphs import DIM, VECTORS, bare_table, kept_graphs, vector_graph, vectors

NEAREST = (
    f"query q($v: Vector({DIM})) {{ match {{ $i: Item  $i.kind = 3 }} return {{ $i.name }} "
    "order { nearest($i.spot, $v) } limit 10 }"
)
EXACT = NEAREST.replace("$v)", "$v, exact: true)")
ASKED = 20


def bare_nearest(data: lance.LanceDataset, vector: np.ndarray) -> pa.Table:
    """The same question put to Lance alone, with the settings that page 10 measured."""
    nearest = {"column": "spot", "q": vector, "k": 10, "metric": "cosine", "nprobes": 20, "refine_factor": 5}
    return data.scanner(
        columns=["name", "_distance"],
        nearest=nearest,
        filter="kind = 3",
        prefilter=True,
        disable_scoring_autoprojection=True,
    ).to_table()


def run() -> list[Row]:
    """The rows of page 10 about vectors."""
    with vector_graph(VECTORS, DIM, "clustered") as path, kept_graphs() as directory:
        before, asked = _before(og.open(path, read_only=True))
        changed = directory / "vectors-changed"
        shutil.rmtree(changed, ignore_errors=True)
        shutil.copytree(path, changed)
        graph = og.open(changed)
        graph.mutate('query m() { update Item set { kind: 4 } where name = "i00000007" }')
        after = measure("the same after one row was updated", _ours(graph, asked), None, "within 1.5 times of before")
        shutil.rmtree(changed)
    ratio = after.ours_seconds / before.ours_seconds
    return [before, Row(after.name, after.ours_seconds, before.ours_seconds, ratio, after.goal, after.spread)]


def _before(graph: Any) -> tuple[Row, np.ndarray]:
    data = bare_table(graph, "node:Item")
    asked = vectors(ASKED, DIM, "clustered", seed=9)
    found = {"ours": 0, "lance": 0}
    for vector in asked:
        params = {"v": [float(value) for value in vector]}
        exact = {row["i.name"] for row in graph.query(EXACT, params=params).rows()}
        found["ours"] += len(exact & {row["i.name"] for row in graph.query(NEAREST, params=params).rows()})
        found["lance"] += len(exact & set(bare_nearest(data, vector)["name"].to_pylist()))
    turns = itertools.cycle(asked)
    name = (
        f"nearest top 10 with a filter that keeps 4 %, {VECTORS:,} vectors of {DIM} "
        f"(recall {found['ours'] / (10 * ASKED):.3f}, bare {found['lance'] / (10 * ASKED):.3f})"
    )
    row = measure(
        name, _ours(graph, asked), lambda: bare_nearest(data, next(turns)), "within 2 times of bare Lance", repeats=25
    )
    return row, asked


def _ours(graph: Any, asked: np.ndarray) -> Callable[[], Any]:
    turns = itertools.cycle([[float(value) for value in vector] for vector in asked])
    return lambda: graph.query(NEAREST, params={"v": next(turns)}).to_arrow()
