"""Loads of columns on Spark, from Parquet files and from DataFrames, against a plain job that copies the same Parquet.

Both in time and in CPU of all processes together: what a cluster is paid by. Nodes and edges each by themselves, and
what both take together. A DataFrame that computes a column is set against a copy that computes it too. Making the empty
graph, and the nodes that edges are loaded to, is left out.

python -m benchmarks.bench_columnar [NODES] [REPEATS] [WAY,WAY…]
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.bench_load import SCHEMA
from benchmarks.harness import Row
from omnigraph.ledger.store import GraphStore, create_store, open_store
from omnigraph.spark.session.session import spark_session
from omnigraph.write.load.load import load as load_in_process

EDGES_PER_NODE = 4
TYPES = {"people": "Person", "knows": "Knows"}
GOAL = "within 1.3 times"
_GROUP = 250_000


WAYS = {
    "Parquet on Spark": "copy",
    "DataFrames on Spark": "copy",
    "DataFrames that compute": "copy that computes",
    "Parquet in process": "copy",
}
"""Each with what it is set against."""

Cost = tuple[float, float]
"""Seconds of time, and seconds of CPU."""


def run(nodes: int = 500_000, repeats: int = 3, chosen: str = ",".join(WAYS)) -> list[Row]:
    """Nodes and four times as many edges, each as one commit with all checks on."""
    session = spark_session()
    ways = chosen.split(",")
    every = list(dict.fromkeys([*(WAYS[way] for way in ways), *ways]))
    try:
        with tempfile.TemporaryDirectory() as directory:
            place = Path(directory)
            write_parquet(place, nodes)
            _make_bases(place)
            best = {part: _best(session, place, part, every, repeats) for part in TYPES}
    finally:
        session.stop()
    together = {way: tuple(map(sum, zip(*(best[part][way] for part in TYPES), strict=True))) for way in every}
    named = {
        f"{nodes:,} nodes and {EDGES_PER_NODE * nodes:,} edges": together,
        f"the {nodes:,} nodes alone": best["people"],
        f"the {EDGES_PER_NODE * nodes:,} edges alone": best["knows"],
    }
    return [
        Row(f"load of {what}, {way}, {unit}, against {WAYS[way]} of the Parquet", ours, theirs, ours / theirs, GOAL)
        for what, costs in named.items()
        for way in ways
        for unit, ours, theirs in zip(("time", "CPU"), costs[way], costs[WAYS[way]], strict=True)
    ]


def write_parquet(place: Path, nodes: int) -> None:
    """Columns of people and of edges between them."""
    chosen = np.random.default_rng(1)
    edges = EDGES_PER_NODE * nodes
    numbers = pc.cast(pa.array(np.arange(nodes)), pa.string())
    slugs = pc.binary_join_element_wise(pa.scalar("person"), numbers, pa.scalar("-"))
    people = {
        "slug": slugs,
        "name": pc.binary_join_element_wise(pa.scalar("Person Number"), numbers, pa.scalar(" ")),
        "age": pa.array(np.arange(nodes) % 90, pa.int32()),
        "score": chosen.random(nodes),
    }
    knows = {
        "src": slugs.take(pa.array(np.arange(edges) % nodes)),
        "dst": slugs.take(pa.array(chosen.integers(0, nodes, edges))),
        "since": pa.array(np.arange(edges) % 9000, pa.int32()).cast(pa.date32()),
    }
    for name, columns in (("people", people), ("knows", knows)):
        pq.write_table(pa.table(columns), place / f"{name}.parquet", row_group_size=_GROUP)


def _make_bases(place: Path) -> None:
    """An empty graph, and one that has the nodes."""
    create_store(str(place / "base-people"), SCHEMA).close()
    with create_store(str(place / "base-knows"), SCHEMA) as store:
        load_in_process(store, str(place / "people.parquet"), mode="append", type="Person")


def _best(session: Any, place: Path, part: str, ways: Sequence[str], repeats: int) -> dict[str, Cost]:
    """The least time and the least CPU of each way, which are run in turns after two runs that warm up."""
    found: dict[str, list[Cost]] = {way: [] for way in ways}
    for number in range(repeats + 2):
        for way in ways:
            shutil.rmtree(place / "graph", ignore_errors=True)
            shutil.copytree(place / f"base-{part}", place / "graph")
            with open_store(str(place / "graph")) as store:
                started, used = time.perf_counter(), cpu_of_tree()
                _run(session, store, place, part, way)
                if number > 1:
                    found[way].append((time.perf_counter() - started, cpu_of_tree() - used))
    return {way: (min(one for one, _ in costs), min(one for _, one in costs)) for way, costs in found.items()}


def _run(session: Any, store: GraphStore, place: Path, part: str, way: str) -> None:
    from omnigraph.spark.load.load import load

    source = str(place / f"{part}.parquet")
    if way == "Parquet in process":
        load_in_process(store, source, mode="append", type=TYPES[part])
        return
    frame = session.read.parquet(source)
    if way.endswith(("compute", "computes")):
        frame = with_computed_column(frame, part)
    if way.startswith("copy"):
        frame.write.mode("overwrite").parquet(str(place / f"copy-{part}"))
    else:
        load(session, store, source if way == "Parquet on Spark" else frame, mode="append", type=TYPES[part])


def with_computed_column(frame: Any, part: str) -> Any:
    """The same rows, with a column that Java has to compute."""
    column = {"people": "name", "knows": "src"}[part]
    return frame.selectExpr("*", f"lower({column}) AS computed").drop(column).withColumnRenamed("computed", column)


def cpu_of_tree() -> float:
    """Seconds of CPU of this process and all below it, those that have ended included."""
    below: dict[int, list[int]] = {}
    used: dict[int, float] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
            except OSError:
                continue
            below.setdefault(int(fields[1]), []).append(int(entry.name))
            used[int(entry.name)] = sum(int(field) for field in fields[11:15]) / os.sysconf("SC_CLK_TCK")
    waiting, total = [os.getpid()], 0.0
    while waiting:
        process = waiting.pop()
        total += used.get(process, 0.0)
        waiting += below.get(process, [])
    return total


if __name__ == "__main__":
    from benchmarks.harness import markdown

    print(markdown(run(*(int(argument) for argument in sys.argv[1:3]), *sys.argv[3:4])))
