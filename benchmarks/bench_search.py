"""Searches side by side with bare Lance on the very tables of the graph: cold in fresh processes, warm, after a write.

`OMNIGRAPH_BENCH_TEXTS` and `OMNIGRAPH_BENCH_VECTORS` set the sizes; the recall table takes a tenth of the vectors for
each of two made distributions (clustered, uniform) at 64, 256 and 768 dimensions.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
from lance.query import MatchQuery

import omnigraph as og

from .harness import Row, measure

TEXTS = int(os.environ.get("OMNIGRAPH_BENCH_TEXTS", 100_000))
VECTORS = int(os.environ.get("OMNIGRAPH_BENCH_VECTORS", 100_000))
DIM = 256
VOCABULARY = 50_000
WORDS = 40
BATCH = 50_000

SCHEMA = """
node Doc { name: String @key  kind: I32 @index  text: String @index }
node Item { name: String @key  kind: I32 @index  spot: Vector(256) }
edge Cites: Doc -> Doc
"""
QUERY = "w40 w700"
RARE = "w40000"
BM25 = "query q($w: String) { match { $d: Doc } return { $d.name } order { bm25($d.text, $w) } limit 10 }"
HOP = "query q($w: String) { match { $d: Doc  search($d.text, $w)  $d cites $e } return { $d.name, $e.name } }"
NEAREST = (
    "query q($v: Vector(256)) { match { $i: Item  $i.kind = 3 } return { $i.name } "
    "order { nearest($i.spot, $v) } limit 10 }"
)


def texts(count: int) -> Iterator[pa.Table]:
    """Texts of forty words whose frequencies fall off as those of a language do."""
    random = np.random.default_rng(1)
    words = np.array([f"w{number}" for number in range(VOCABULARY)])
    weights = 1 / np.arange(1, VOCABULARY + 1)
    for start in range(0, count, BATCH):
        size = min(BATCH, count - start)
        picks = random.choice(VOCABULARY, size=(size, WORDS), p=weights / weights.sum())
        yield pa.table(
            {
                "name": [f"d{number:08d}" for number in range(start, start + size)],
                "kind": pa.array(random.integers(0, 25, size), pa.int32()),
                "text": [" ".join(row) for row in words[picks]],
            }
        )


def vectors(count: int, dim: int, kind: str, seed: int = 3) -> np.ndarray:
    """Vectors around five hundred centres, or anywhere in a cube."""
    random = np.random.default_rng(seed)
    if kind == "uniform":
        return random.uniform(-1, 1, (count, dim)).astype(np.float32)
    centres = np.random.default_rng(dim).normal(size=(500, dim))
    return (centres[random.integers(0, 500, count)] + 0.35 * random.normal(size=(count, dim))).astype(np.float32)


def items(made: np.ndarray, start: int = 0) -> pa.Table:
    count, dim = made.shape
    return pa.table(
        {
            "name": [f"i{number:08d}" for number in range(start, start + count)],
            "kind": pa.array(np.arange(start, start + count) % 25, pa.int32()),
            "spot": pa.FixedSizeListArray.from_arrays(pa.array(made.reshape(-1)), dim),
        }
    )


def table_of(graph: Any, key: str) -> lance.LanceDataset:
    """The bare table behind a type."""
    pin = graph.snapshot().tables[key]
    return lance.dataset(f"{graph.uri}/{pin.location}", version=pin.version)


def bare_text(data: lance.LanceDataset, words: str) -> pa.Table:
    return data.scanner(
        columns=["name", "_score"],
        full_text_query=MatchQuery(words, "text"),
        limit=10,
        disable_scoring_autoprojection=True,
    ).to_table()


def bare_nearest(data: lance.LanceDataset, vector: np.ndarray) -> pa.Table:
    nearest = {"column": "spot", "q": vector, "k": 10, "metric": "cosine", "nprobes": 20, "refine_factor": 5}
    return data.scanner(
        columns=["name", "_distance"],
        nearest=nearest,
        filter="kind = 3",
        prefilter=True,
        disable_scoring_autoprojection=True,
    ).to_table()


def run() -> list[Row]:
    """The table of page 10 that is about search, and the recall table."""
    with tempfile.TemporaryDirectory() as directory:
        return [*_texts(Path(directory, "texts")), *_vectors(Path(directory, "vectors")), *_recall(Path(directory))]


def _texts(path: Path) -> list[Row]:
    graph = og.init(path, schema=SCHEMA)
    for table in texts(TEXTS):
        graph.load(table, mode="append", type="Doc")
    random = np.random.default_rng(5)
    ends = [[f"d{number:08d}" for number in random.integers(0, TEXTS, TEXTS)] for _ in range(2)]
    graph.load(pa.table({"src": ends[0], "dst": ends[1]}), mode="append", type="Cites", src="src", dst="dst")
    graph.optimize()
    data = table_of(graph, "node:Doc")
    named = f"{TEXTS:,} texts of {WORDS} words"
    cold = [_in_a_process(path, side) for side in ("ours", "lance")]
    rows = [
        _compared(f"first bm25 top 10 of a process, {named}", cold, "seconds", "within 3 times of bare Lance", "s"),
        _compared("memory of that process", cold, "peak", "no more than 300 MB above bare Lance", "MB"),
        measure(
            f"bm25 top 10, warm, {named}",
            lambda: graph.query(BM25, params={"w": QUERY}).to_arrow(),
            lambda: bare_text(data, QUERY),
            "within 2 times of bare Lance",
        ),
    ]
    found = graph.query(HOP, params={"w": RARE}).to_arrow()

    def bare_hop() -> None:
        matched = data.scanner(
            columns=["name"],
            full_text_query=MatchQuery(RARE, "text"),
            disable_scoring_autoprojection=True,
        ).to_table()
        cites = table_of(graph, "edge:Cites")
        names = ", ".join(f"'{name}'" for name in matched["name"].to_pylist())
        cites.to_table(columns=["src", "dst"], filter=f"src in ({names})")

    rows.append(
        measure(
            f"search for a rare word and a hop ({found.num_rows} rows), {named}",
            lambda: graph.query(HOP, params={"w": RARE}).to_arrow(),
            bare_hop,
            "within 3 times of the bare index query and the hop",
        )
    )
    return rows


def _in_a_process(path: Path, side: str) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.bench_search", str(path), side]
    told = [json.loads(subprocess.run(command, capture_output=True, check=True).stdout) for _ in range(3)]
    return sorted(told, key=lambda each: each["seconds"])[1]


def first_query(path: str, side: str) -> dict[str, float]:
    """One query in a process that has asked nothing yet: seconds from the opened graph to rows, and peak memory."""
    graph = og.open(path, read_only=True)
    data = table_of(graph, "node:Doc") if side == "lance" else None
    started = time.perf_counter()
    if data is not None:
        bare_text(data, QUERY)
    else:
        graph.query(BM25, params={"w": QUERY}).to_arrow()
    spent = time.perf_counter() - started
    return {"seconds": spent, "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}


def _compared(name: str, told: list[dict[str, float]], what: str, goal: str, unit: str) -> Row:
    ours, other = told[0][what], told[1][what]
    return Row(name, ours, other, ours / other, goal, unit=unit)


def _vectors(path: Path) -> list[Row]:
    graph = og.init(path, schema=SCHEMA)
    made = vectors(VECTORS, DIM, "clustered")
    graph.load(items(made), mode="append", type="Item")
    graph.optimize()
    data = table_of(graph, "node:Item")
    asked = vectors(1, DIM, "clustered", seed=9)[0]
    params = {"v": [float(value) for value in asked]}

    def ours() -> Any:
        return graph.query(NEAREST, params=params).to_arrow()

    named = f"nearest top 10 with a filter that keeps 4 %, {VECTORS:,} vectors of {DIM}"
    before = measure(named, ours, lambda: bare_nearest(data, asked), "within 2 times of bare Lance")
    graph.mutate('query m() { update Item set { kind: 4 } where name = "i00000007" }')
    after = measure("the same after one row was updated", ours, None, "within 1.5 times of before")
    ratio = after.ours_seconds / before.ours_seconds
    return [before, Row(after.name, after.ours_seconds, before.ours_seconds, ratio, after.goal, after.spread)]


def _recall(directory: Path) -> list[Row]:
    return [
        _recall_of(directory / f"{kind}{dim}", dim, kind) for dim in (64, 256, 768) for kind in ("clustered", "uniform")
    ]


def _recall_of(path: Path, dim: int, kind: str, count: int = VECTORS // 10, asked: int = 30) -> Row:
    graph = og.init(path, schema=f"node Item {{ name: String @key  kind: I32  spot: Vector({dim}) }}")
    graph.load(items(vectors(count, dim, kind)), mode="append", type="Item")
    graph.optimize()
    text = (
        f"query q($v: Vector({dim})) {{ match {{ $i: Item }} return {{ $i.name }} "
        "order { nearest($i.spot, $v) } limit 10 }"
    )
    exact = text.replace("$v)", "$v, exact: true)")
    hits = 0
    spent: dict[str, float] = {"ours": 0.0, "exact": 0.0}
    for vector in vectors(asked, dim, kind, seed=11):
        params = {"v": [float(value) for value in vector]}
        found = {}
        for side, query in (("ours", text), ("exact", exact)):
            started = time.perf_counter()
            found[side] = {row["i.name"] for row in graph.query(query, params=params).rows()}
            spent[side] += time.perf_counter() - started
        hits += len(found["ours"] & found["exact"])
    recall = hits / (10 * asked)
    name = f"recall@10 {recall:.3f}: {count:,} {kind} vectors of {dim}, against exact search"
    ours, theirs = spent["ours"] / asked, spent["exact"] / asked
    return Row(name, ours, theirs, ours / theirs, "recall 0.99 or more")


if __name__ == "__main__":
    print(json.dumps(first_query(*sys.argv[1:3])))
