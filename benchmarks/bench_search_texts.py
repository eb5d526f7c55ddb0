"""Text searches side by side with bare Lance on the very tables of the graph: cold in fresh processes, and warm.

`OMNIGRAPH_BENCH_TEXTS` sets the size (page 10 asks for a million), `OMNIGRAPH_BENCH_GRAPHS` keeps the graph.
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
from lance.query import MatchQuery

import omnigraph as og

from .harness import Row, measure
from .searched_graphs import TEXTS, WORDS, bare_table, text_graph

QUERY = "w40 w700"
RARE = "w40000"
BM25 = "query q($w: String) { match { $d: Doc } return { $d.name } order { bm25($d.text, $w) } limit 10 }"
HOP = "query q($w: String) { match { $d: Doc  search($d.text, $w)  $d cites $e } return { $d.name, $e.name } }"
OTHER = "query q() { match { $n: Note } return { $n.name } }"
COLD_RUNS = 7


def bare_text(data: lance.LanceDataset, words: str) -> pa.Table:
    """The same question put to Lance alone."""
    return data.scanner(
        columns=["name", "_score"],
        full_text_query=MatchQuery(words, "text"),
        limit=10,
        disable_scoring_autoprojection=True,
    ).to_table()


def run() -> list[Row]:
    """The rows of page 10 about texts."""
    with text_graph() as path:
        return [*_cold(path), *_warm(path)]


def _cold(path: Path) -> list[Row]:
    """Both sides in turns, each time in a process of its own."""
    graph = og.open(path, read_only=True)
    pin = graph.snapshot().tables["node:Doc"]
    table, version = f"{graph.uri}/{pin.location}", str(pin.version)
    sides = {"ours": [str(path)], "read before": [str(path)], "lance": [table, version]}
    told: dict[str, list[dict[str, float]]] = {side: [] for side in sides}
    for _ in range(COLD_RUNS + 1):
        for side, arguments in sides.items():
            told[side].append(_in_a_process(side, arguments))
    # The first round fills the caches of the disk and of compiled modules.
    median = {
        side: {what: statistics.median(each[what] for each in runs[1:]) for what in runs[0]}
        for side, runs in told.items()
    }
    named = f"first bm25 top 10 of a fresh process, {TEXTS:,} texts of {WORDS} words"
    within = "within 3 times of bare Lance"

    def row(name: str, side: str, what: str, goal: str, unit: str = "s") -> Row:
        ours, other = median[side][what], median["lance"][what]
        return Row(name, ours, other, ours / other, goal, unit=unit)

    return [
        row(f"{named}: the whole process, from its start to its end", "ours", "process", within),
        row(f"{named}: from the opened graph to rows, modules and grammar loaded on the way", "ours", "query", within),
        row(f"{named}: the same after a question to another table", "read before", "query", within),
        row(f"{named}: peak memory", "ours", "peak", "no more than 300 MB above bare Lance", "MB"),
    ]


def _in_a_process(side: str, arguments: list[str]) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.bench_search_texts", side, *arguments]
    surroundings = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    started = time.perf_counter()
    ran = subprocess.run(command, stdout=subprocess.PIPE, check=True, env=surroundings)
    spent = time.perf_counter() - started
    return {**json.loads(ran.stdout), "process": spent}


def first_query(side: str, place: str, version: str = "") -> dict[str, float]:
    """One query in a process that has searched nothing yet: seconds from the opened graph to rows, and peak memory."""
    if side == "lance":
        data = lance.dataset(place, version=int(version))
        started = time.perf_counter()
        bare_text(data, QUERY)
    else:
        graph = og.open(place, read_only=True)
        if side == "read before":
            graph.query(OTHER).to_arrow()
        started = time.perf_counter()
        graph.query(BM25, params={"w": QUERY}).to_arrow()
    spent = time.perf_counter() - started
    return {"query": spent, "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}


def _warm(path: Path) -> list[Row]:
    graph = og.open(path, read_only=True)
    data = bare_table(graph, "node:Doc")
    cites = bare_table(graph, "edge:Cites")
    named = f"{TEXTS:,} texts of {WORDS} words"

    def ours(text: str, words: str) -> Any:
        return graph.query(text, params={"w": words}).to_arrow()

    def bare_hop() -> None:
        matched = data.scanner(
            columns=["name"],
            full_text_query=MatchQuery(RARE, "text"),
            disable_scoring_autoprojection=True,
        ).to_table()
        names = ", ".join(f"'{name}'" for name in matched["name"].to_pylist())
        cites.to_table(columns=["src", "dst"], filter=f"src in ({names})")

    found = ours(HOP, RARE)
    return [
        measure(
            f"bm25 top 10, warm, {named}",
            lambda: ours(BM25, QUERY),
            lambda: bare_text(data, QUERY),
            "within 2 times of bare Lance",
            repeats=49,
        ),
        measure(
            f"search for a rare word and a hop ({found.num_rows} rows), {named}",
            lambda: ours(HOP, RARE),
            bare_hop,
            "within 3 times of the bare index query and the hop",
            repeats=49,
        ),
    ]


if __name__ == "__main__":
    print(json.dumps(first_query(*sys.argv[1:])))
