"""The first 2-hop query of a process over many edges, against building the adjacency first, each in fresh processes.

`OMNIGRAPH_BENCH_EDGES` sets the size (page 10 asks for twenty million), `OMNIGRAPH_BENCH_GRAPHS` keeps the graph.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

import omnigraph as og

from .harness import Row
from .searched_graphs import EDGES, edge_graph

HOPS = """
query q($names: [String]) {
  match { $p: Person  $p.name in $names  $p knows $q  $q knows $r }
  return { count(distinct $r) as n }
}"""
STARTS = (1, 100, 1000)


def run() -> list[Row]:
    """For so many nodes to start from, the first query as it chooses its way, and with the adjacency built for it."""
    with edge_graph() as path:
        return [_compared(path, count) for count in STARTS]


def _compared(path: Path, count: int) -> Row:
    ours = statistics.median(_in_a_process(path, count, "") for _ in range(3))
    built = _in_a_process(path, count, "csr")
    name = f"first 2-hop query of a fresh process from {count:,} of {EDGES // 10:,} nodes, {EDGES:,} edges"
    return Row(name, ours, built, ours / built, "3 times faster than building the adjacency (0.33)")


def _in_a_process(path: Path, count: int, mode: str) -> float:
    command = [sys.executable, "-m", "benchmarks.bench_adjacency", str(path), str(count)]
    surroundings = {**os.environ, "OMNIGRAPH_TRAVERSAL_MODE": mode} if mode else dict(os.environ)
    return float(json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True, env=surroundings).stdout))


def first_query(path: str, count: int) -> float:
    """Seconds from the opened graph to rows."""
    graph = og.open(path, read_only=True)
    step = max(1, EDGES // 10 // count)
    names = [f"person-{number}" for number in range(0, step * count, step)]
    started = time.perf_counter()
    graph.query(HOPS, params={"names": names}).to_arrow()
    return time.perf_counter() - started


if __name__ == "__main__":
    print(json.dumps(first_query(sys.argv[1], int(sys.argv[2]))))
