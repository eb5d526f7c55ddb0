"""The load of page 06 in the session that is built here and in one that a user makes with nothing of ours in it, each
in a process of its own; and how long the first job of a session takes."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.bench_load import write_input
from benchmarks.bench_spark import load_on_spark, parse_to_parquet
from benchmarks.harness import Row, markdown, measure, seconds, shown
from omnigraph.spark.session.session import spark_session

GOALS = {"default": "3.5 times as fast (ratio 0.29)", "own": "2.5 times as fast (ratio 0.4)"}
KINDS = {"default": "the session that is built here", "own": "a session of the user's own"}


def run(nodes: int = 1_000_000, repeats: int = 3) -> list[Row]:
    """Both kinds of session, one after the other."""
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as directory:
        source = write_input(Path(directory, "input.jsonl"), nodes)
        for kind in KINDS:
            ran = subprocess.run(
                [sys.executable, "-m", __spec__.name, kind, str(source), directory, str(repeats)],
                stdout=subprocess.PIPE,
                text=True,
                check=True,
            )
            rows += [shown(Row(**values)) for values in json.loads(ran.stdout.splitlines()[-1])]
    return rows


def in_one_session(kind: str, source: Path, place: Path, repeats: int) -> list[Row]:
    """Start a session, run a first small job, then the load and the plain job in turns."""
    started = time.perf_counter()
    session = _session(kind)
    start = time.perf_counter() - started
    small = write_input(place / "small.jsonl", 100)
    first = seconds(lambda: load_on_spark(session, small, place / f"{kind}-small"))
    second = seconds(lambda: load_on_spark(session, small, place / f"{kind}-small"))
    where = KINDS[kind]
    rows = [
        Row(f"start of {where}", start, None, None, ""),
        Row(f"first job (a load of 400 records) in {where}, against its second", first, second, first / second, "6 s"),
        measure(
            f"load of {source.stat().st_size >> 20:,} MB of JSON lines in {where}, against parsing to Parquet",
            lambda: load_on_spark(session, source, place / f"{kind}-graph"),
            lambda: parse_to_parquet(session, source, place / f"{kind}-parquet"),
            GOALS[kind],
            repeats=repeats,
            warm_up=1,
        ),
    ]
    session.stop()
    return rows


def _session(kind: str) -> Any:
    if kind == "default":
        return spark_session()
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[*]").config("spark.ui.enabled", "false")
    for name, value in {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "5g",
    }.items():
        builder = builder.config(name, value)
    builder.getOrCreate()
    # What every call on a graph does with an active session: it is used as it is, with the Python of this process.
    return spark_session()


if __name__ == "__main__":
    from dataclasses import asdict

    if len(sys.argv) > 3:
        told = in_one_session(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]), int(sys.argv[4]))
        print(json.dumps([asdict(row) for row in told]))
    else:
        print(markdown(run(*(int(argument) for argument in sys.argv[1:]))))
