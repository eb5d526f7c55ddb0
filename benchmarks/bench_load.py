"""A bulk load in process against a plain PySpark job that only parses the same file, and its memory as input grows."""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.harness import Row, measure
from omnigraph.ledger.store import create_store
from omnigraph.write.load.load import load

SCHEMA = """
node Person {
    slug: String @key
    name: String
    age: I32?
    score: F64?
}

edge Knows: Person -> Person {
    since: Date?
}
"""


def write_input(path: Path, nodes: int) -> Path:
    """JSON lines of people, and three times as many edges between them."""
    chosen = random.Random(1)
    with path.open("w") as file:
        for n in range(nodes):
            file.write(
                f'{{"type": "Person", "data": {{"slug": "person-{n}", "name": "Person Number {n}", '
                f'"age": {n % 90}, "score": {chosen.random():.3f}}}}}\n'
            )
        for n in range(3 * nodes):
            file.write(
                f'{{"edge": "Knows", "from": "person-{n % nodes}", "to": "person-{chosen.randrange(nodes)}", '
                f'"data": {{"since": "20{n % 30:02d}-01-0{1 + n % 9}"}}}}\n'
            )
    return path


def run(nodes: int = 1_000_000, repeats: int = 3) -> list[Row]:
    """The load of page 06's table with all checks on, and the peak memory of a larger one against a tenth of it."""
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        source = write_input(place / "input.jsonl", nodes)
        spark, stop = _plain_pyspark(source, place / "parquet")
        try:
            goal = "4 times as fast (ratio 0.25)"
            name = f"load of {nodes:,} nodes and {3 * nodes:,} edges"
            rows = [measure(name, lambda: _load(source, place / "graph"), spark, goal, repeats=repeats, warm_up=1)]
        finally:
            stop()
        # An input of a few tens of megabytes does not fill the buffers that writers have whatever the input is.
        small = _peak_megabytes(write_input(place / "small.jsonl", max(1, 3 * nodes // 10)), place / "memory")
        large = _peak_megabytes(write_input(place / "large.jsonl", 3 * nodes), place / "memory")
    name = f"peak memory of a load of {3 * nodes:,} nodes and {9 * nodes:,} edges, against a tenth of it"
    rows.append(Row(name, large, small, large / small, "flat", unit="MB"))
    return rows


def _load(source: Path, graph: Path) -> None:
    shutil.rmtree(graph, ignore_errors=True)
    with create_store(graph, SCHEMA) as store:
        load(store, source, mode="append")


def _plain_pyspark(source: Path, target: Path) -> tuple[Callable[[], Any], Callable[[], None]]:
    """What people write by hand: `from_json` for each type, Parquet as the result. The session is started before."""
    from pyspark.sql import SparkSession, functions

    spark = (
        SparkSession.builder.master("local[*]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.memory", "4g")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    schemas = {
        "type": "type string, data struct<slug: string, name: string, age: int, score: double>",
        "edge": "edge string, from string, to string, data struct<since: date>",
    }

    def job() -> None:
        for key, schema in schemas.items():
            parsed = spark.read.text(str(source)).select(functions.from_json("value", schema).alias("r")).select("r.*")
            parsed.where(functions.col(key).isNotNull()).write.mode("overwrite").parquet(f"{target}/{key}")

    return job, spark.stop


def _peak_megabytes(source: Path, graph: Path) -> float:
    """The most memory that a process of its own holds while it does nothing but the load.

    Files that are mapped do not count: keys that wait on disk are read that way, and the system takes those pages back.
    """
    code = (
        "import sys; from pathlib import Path; from benchmarks.bench_load import _load; "
        "_load(Path(sys.argv[1]), Path(sys.argv[2]))"
    )
    root = Path(__file__).resolve().parents[1]
    peak = 0
    with subprocess.Popen([sys.executable, "-c", code, str(source), str(graph)], cwd=root) as process:
        while process.poll() is None:
            status = Path(f"/proc/{process.pid}/status").read_text()
            if "RssAnon:" in status:
                peak = max(peak, int(status.split("RssAnon:")[1].split()[0]))
            time.sleep(0.005)
    if process.returncode:
        raise RuntimeError(f"the load of {source} failed in its process")
    return peak / 1024


if __name__ == "__main__":
    from benchmarks.harness import markdown

    print(markdown(run()))
