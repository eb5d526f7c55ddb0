"""Two million texts and a million vectors of 384 numbers: load, index, query cold and warm, append 1 %, query again.

`OMNIGRAPH_BENCH_SHARE` takes a part of that (0.1 for a tenth). Each row that asks is a process of its own, so its peak
memory is that of the querying process. Takes minutes and gigabytes of disk: it runs only when it is named.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import omnigraph as og

from .bench_search import items, texts, vectors
from .harness import Row

SHARE = float(os.environ.get("OMNIGRAPH_BENCH_SHARE", 1))
TEXTS, VECTORS, DIM = int(2_000_000 * SHARE), int(1_000_000 * SHARE), 384
SCHEMA = f"""
node Doc {{ name: String @key  kind: I32 @index  text: String @index }}
node Item {{ name: String @key  kind: I32 @index  spot: Vector({DIM}) }}
"""
BM25 = "query q($w: String) { match { $d: Doc } return { $d.name } order { bm25($d.text, $w) } limit 10 }"
NEAREST = (
    f"query q($v: Vector({DIM})) {{ match {{ $i: Item }} return {{ $i.name }} "
    "order { nearest($i.spot, $v) } limit 10 }"
)
BLOCK = 50_000


def run() -> list[Row]:
    """Each step in turn, the queries in processes of their own."""
    engine = os.environ.get("OMNIGRAPH_ENGINE", "local")
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as directory:
        path = str(Path(directory, "graph"))
        for step in ("load", "index", "ask", "append", "ask"):
            command = [sys.executable, "-m", "benchmarks.bench_search_scale", path, step]
            told = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
            rows += [Row(f"{step} ({engine}): {name}", value, None, None, "", unit=unit) for name, value, unit in told]
    return rows


def step(path: str, name: str) -> list[tuple[str, float, str]]:
    """One step in this process: what took how long, and the memory it needed."""
    told: list[tuple[str, float, str]] = []
    started = time.perf_counter()
    if name == "load":
        graph = og.init(path, schema=SCHEMA)
        for table in texts(TEXTS):
            graph.load(table, mode="append", type="Doc")
        for start in range(0, VECTORS, BLOCK):
            block = vectors(min(BLOCK, VECTORS - start), DIM, "clustered", seed=start)
            graph.load(items(block, start), mode="append", type="Item")
    elif name == "index":
        og.open(path).optimize()
    elif name == "append":
        graph = og.open(path)
        graph.load(next(iter(texts(max(1, TEXTS // 100)))).slice(0, max(1, TEXTS // 100)), mode="merge", type="Doc")
        graph.load(items(vectors(max(1, VECTORS // 100), DIM, "clustered", 5), VECTORS), mode="append", type="Item")
    else:
        graph = og.open(path, read_only=True)
        asked = {"v": [float(value) for value in vectors(1, DIM, "clustered", 9)[0]]}
        for query, params in ((BM25, {"w": "w40 w700"}), (NEAREST, asked)):
            kind = "bm25" if query is BM25 else "nearest"
            for turn in ("cold", *["warm"] * 5):
                began = time.perf_counter()
                graph.query(query, params=params).to_arrow()
                if turn == "cold":
                    told.append((f"{kind} top 10, first of the process", time.perf_counter() - began, "s"))
            told.append((f"{kind} top 10, warm", time.perf_counter() - began, "s"))
    told.append((f"{TEXTS:,} texts, {VECTORS:,} vectors", time.perf_counter() - started, "s"))
    told.append(("peak memory", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, "MB"))
    return told


if __name__ == "__main__":
    print(json.dumps(step(*sys.argv[1:3])))
