"""Loads of columns on Spark, from Parquet files and from DataFrames, against a plain job that copies the same Parquet.

Both in time and in CPU of all processes together: what a cluster is paid by.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.bench_load import SCHEMA
from benchmarks.harness import Row
from omnigraph.ledger.store import create_store
from omnigraph.spark.session.session import spark_session
from omnigraph.write.load.load import load as load_in_process

EDGES_PER_NODE = 4
_GROUP = 250_000


def run(nodes: int = 500_000, repeats: int = 3) -> list[Row]:
    """Nodes and four times as many edges, each as one commit with all checks on."""
    session = spark_session()
    try:
        with tempfile.TemporaryDirectory() as directory:
            place = Path(directory)
            write_parquet(place, nodes)
            ways: dict[str, Callable[[], None]] = {
                "copy": lambda: _copy(session, place),
                "Parquet on Spark": lambda: _load(session, place, from_frames=False),
                "DataFrames on Spark": lambda: _load(session, place, from_frames=True),
                "Parquet in process": lambda: _load(None, place, from_frames=False),
            }
            best = {name: _best(action, repeats) for name, action in ways.items()}
    finally:
        session.stop()
    what = f"load of {nodes:,} nodes and {EDGES_PER_NODE * nodes:,} edges from"
    return [
        Row(f"{what} {name}, {measured}, against copying the Parquet", ours, theirs, ours / theirs, "within 1.3 times")
        for name in list(ways)[1:]
        for measured, ours, theirs in zip(("time", "CPU"), best[name], best["copy"], strict=True)
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


def _copy(session: Any, place: Path) -> None:
    for name in ("people", "knows"):
        frame = session.read.parquet(str(place / f"{name}.parquet"))
        frame.write.mode("overwrite").parquet(str(place / f"copy-{name}"))


def _load(session: Any, place: Path, *, from_frames: bool) -> None:
    from omnigraph.spark.load.load import load

    shutil.rmtree(place / "graph", ignore_errors=True)
    with create_store(str(place / "graph"), SCHEMA) as store:
        for name, type_ in (("people", "Person"), ("knows", "Knows")):
            source = str(place / f"{name}.parquet")
            if session is None:
                load_in_process(store, source, mode="append", type=type_)
            else:
                load(session, store, session.read.parquet(source) if from_frames else source, mode="append", type=type_)


def _best(action: Callable[[], None], repeats: int) -> tuple[float, float]:
    """The least time and the least CPU of some runs after one that warms up."""
    action()
    found = []
    for _ in range(repeats):
        started, used = time.perf_counter(), cpu_of_tree()
        action()
        found.append((time.perf_counter() - started, cpu_of_tree() - used))
    return min(seconds for seconds, _ in found), min(seconds for _, seconds in found)


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

    print(markdown(run(*(int(argument) for argument in sys.argv[1:]))))
