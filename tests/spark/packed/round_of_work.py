"""The driver of a round on a cluster: load, query, export, merge, optimize and a stream; then a load in whose middle a
worker is killed. Says as JSON what came of each step."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import omnigraph as og
from omnigraph.ledger.store import open_store
from omnigraph.spark.load import load_splits
from omnigraph.spark.session.session import spark_session
from tests.spark.failures.graph_files import counted, left_over

SCHEMA = "node Person { slug: String @key  age: I32? }\nedge Knows: Person -> Person"
COUNT = """
query q() { match { $a: Person  $a $k:knows $b  $a.age >= 50 } return { $a.age, count($k) as edges } order { $a.age } }
"""
PEOPLE, MORE, STREAMED = 4000, 3000, 200


def people(first: int, count: int) -> list[dict[str, Any]]:
    """Records of people, each of whom knows the first."""
    numbers = range(first, first + count)
    found: list[dict[str, Any]] = [{"type": "Person", "data": {"slug": f"p{n}", "age": n % 90}} for n in numbers]
    return found + [{"edge": "Knows", "from": f"p{n}", "to": f"p{first}"} for n in numbers]


def written(path: Path, records: list[dict[str, Any]]) -> Path:
    """The records as JSON lines."""
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


class Round:
    """The steps on one cluster, with what each took and gave."""

    def __init__(self, session: Any, place: Path) -> None:
        self.session = session
        self.place = place
        self.uri = str(place / "graph.omni")
        self.graph = og.init(self.uri, schema=SCHEMA)
        self.told: dict[str, Any] = {}

    def step(self, name: str, work: Callable[[], Any]) -> None:
        """Run one step and note what it gave."""
        started = time.monotonic()
        self.told[name] = work()
        print(f"{time.monotonic() - started:6.1f} s  {name}: {self.told[name]}", flush=True)

    def workers(self) -> list[str]:
        """The Python of the tasks, and where it has this package from."""

        def describe(_: int) -> str:
            import sys

            import omnigraph

            return f"{sys.executable} with {omnigraph.__file__}"

        return sorted(set(self.session.sparkContext.parallelize(range(8), 8).map(describe).collect()))

    def load(self, first: int, count: int) -> int:
        """Append people and their edges."""
        source = written(self.place / f"{first}.jsonl", people(first, count))
        return self.graph.load(source, mode="append", engine="spark").rows_loaded

    def query(self) -> bool:
        """Whether Spark and this process answer alike."""
        here, there = (self.graph.query(COUNT, engine=engine).to_arrow().to_pylist() for engine in ("local", "spark"))
        return bool(here) and here == there

    def export(self) -> int:
        """Rows that go out."""
        return self.graph.export(str(self.place / "out"), engine="spark").rows

    def merge(self) -> int:
        """Change rows on a branch and merge them."""
        self.graph.branch_create("side")
        changed = self.session.sql("SELECT concat('p', id) AS slug, -1 AS age FROM range(1000)")
        self.graph.load(changed, mode="merge", type="Person", branch="side", engine="spark")
        self.graph.merge("side", engine="spark")
        return self.graph.to_spark("Person").where("age = -1").count()

    def optimize(self) -> bool:
        """Compact and index, and find the same rows."""
        self.graph.optimize(engine="spark")
        return self.query()

    def stream(self, number: int) -> int:
        """Records of one file as one batch."""
        written(self.place / "stream" / f"{number}.jsonl", people(100_000 + number * STREAMED, STREAMED))
        incoming = self.session.readStream.text(str(self.place / "stream"))
        now = {"availableNow": True}
        self.graph.load_stream(incoming, checkpoint=self.place / "checkpoint", trigger=now).wait()
        return self.graph.to_spark("Person").where("slug >= 'p100000' and length(slug) = 7").count()

    def load_while_killing(self, worker: int) -> int:
        """A load in whose middle a worker dies, with its executor."""
        killer = threading.Thread(target=self._kill, args=(worker,), daemon=True)
        killer.start()
        rows = self.load(PEOPLE, MORE)
        killer.join(timeout=10)
        assert not killer.is_alive(), "the load ended before the worker was killed"
        return rows

    def _kill(self, worker: int) -> None:
        tracker = self.session.sparkContext.statusTracker()
        while not any(
            (info := tracker.getStageInfo(stage)) and info.numCompletedTasks >= 1
            for stage in tracker.getActiveStageIds()
        ):
            time.sleep(0.05)
        os.killpg(worker, signal.SIGKILL)

    def rows(self) -> list[int]:
        """Rows of every table, none twice."""
        with open_store(self.uri, read_only=True) as store:
            return counted(store)

    def left_over(self) -> set[str]:
        """Files that nothing of today's state refers to: those of earlier states, and what a lost task has left."""
        with open_store(self.uri, read_only=True) as store:
            return set(left_over(store))


def main(master: str, archive: str, place: str, worker: str) -> None:
    """All steps, and the one with a worker killed."""
    load_splits.SMALLEST_SPLIT = 20_000
    session = spark_session(
        master,
        {
            "spark.archives": f"{archive}#environment",
            "spark.pyspark.python": "./environment/bin/python",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.memory": "600m",
            "spark.executor.memory": "600m",
            "spark.executor.cores": "1",
            "spark.executorEnv.OMNIGRAPH_FAILPOINTS": "spark.load.written=sleep:0.5",
        },
    )
    work = Round(session, Path(place))
    work.step("workers", work.workers)
    work.step("load", lambda: work.load(0, PEOPLE))
    work.step("query as in process", work.query)
    work.step("export", work.export)
    work.step("merge", work.merge)
    work.step("optimize, query as in process", work.optimize)
    work.step("stream", lambda: work.stream(0))
    before = work.left_over()
    work.step("load while a worker is killed", lambda: work.load_while_killing(int(worker)))
    work.step("left by that", lambda: sorted(work.left_over() - before))
    work.step("stream on what is left", lambda: work.stream(1))
    work.step("rows at the end", work.rows)
    session.stop()
    print(json.dumps(work.told))


if __name__ == "__main__":
    main(*sys.argv[1:])
