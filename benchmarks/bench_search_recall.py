"""Recall of `nearest` at its default settings, against exact search, with the time of both.

On two made distributions (clustered, uniform) at 64, 256 and 768 numbers. `OMNIGRAPH_BENCH_RECALL_VECTORS` sets the
size of each, `OMNIGRAPH_BENCH_GRAPHS` keeps the graphs.
"""

from __future__ import annotations

import time

import omnigraph as og

from .harness import Row
from .searched_graphs import RECALL_DIMS, RECALL_KINDS, RECALL_VECTORS, vector_graph, vectors

ASKED = 30


def run() -> list[Row]:
    """One row for each distribution and dimension."""
    return [recall_of(RECALL_VECTORS, dim, kind) for dim in RECALL_DIMS for kind in RECALL_KINDS]


def recall_of(count: int, dim: int, kind: str) -> Row:
    """How many of the ten nearest the default way finds, and how long both ways take on the average."""
    text = (
        f"query q($v: Vector({dim})) {{ match {{ $i: Item }} return {{ $i.name }} "
        "order { nearest($i.spot, $v) } limit 10 }"
    )
    exact = text.replace("$v)", "$v, exact: true)")
    hits = 0
    spent = {"ours": 0.0, "exact": 0.0}
    with vector_graph(count, dim, kind) as path:
        graph = og.open(path, read_only=True)
        for vector in vectors(ASKED, dim, kind, seed=11):
            params = {"v": [float(value) for value in vector]}
            found = {}
            for side, query in (("ours", text), ("exact", exact)):
                started = time.perf_counter()
                found[side] = {row["i.name"] for row in graph.query(query, params=params).rows()}
                spent[side] += time.perf_counter() - started
            hits += len(found["ours"] & found["exact"])
    name = f"recall@10 {hits / (10 * ASKED):.3f}: {count:,} {kind} vectors of {dim}, against exact search"
    ours, theirs = spent["ours"] / ASKED, spent["exact"] / ASKED
    return Row(name, ours, theirs, ours / theirs, "recall 0.99 or more")
