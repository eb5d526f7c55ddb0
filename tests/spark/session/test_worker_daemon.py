"""The process that workers are forked from: it has done the slow imports, and none that a fork would break."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

PRELOADED = """
import json, os, sys
from omnigraph.spark.session.worker_daemon import preload

def threads():
    return [open(f"/proc/self/task/{name}/comm").read().strip() for name in os.listdir("/proc/self/task")]

preload()
before, running = set(sys.modules), threads()
pid = os.fork()
if pid == 0:
    import omnigraph.spark.load.load_tasks, omnigraph.spark.load.load_checks
    left = sorted(name for name in set(sys.modules) - before if name.startswith("omnigraph."))
    print(json.dumps({"left": left, "all": len([name for name in sys.modules if name.startswith("omnigraph.")])}))
    sys.stdout.flush()
    os._exit(0)
os.waitpid(pid, 0)
print(json.dumps({"threads": running, "modules": [name for name in before if name.split(".")[0] == "lance"]}))
"""


@pytest.fixture(scope="module")
def told() -> dict[str, Any]:
    ran = subprocess.run([sys.executable, "-c", PRELOADED], capture_output=True, text=True, timeout=120, check=False)
    assert ran.returncode == 0, ran.stderr
    found: dict[str, Any] = {}
    for line in ran.stdout.splitlines():
        found |= json.loads(line)
    return found


def test_lance_is_left_to_the_workers(told: dict[str, Any]) -> None:
    assert told["modules"] == []


def test_no_thread_runs_that_a_fork_would_lose(told: dict[str, Any]) -> None:
    assert not [name for name in told["threads"] if "lance" in name or "tokio" in name], told["threads"]


def test_a_worker_has_much_of_a_load_when_it_starts(told: dict[str, Any]) -> None:
    assert len(told["left"]) < 0.6 * told["all"], told["left"]


SETTLED = """
import gc
from omnigraph.spark.session.worker_daemon import settle_worker
settle_worker()
print(gc.get_freeze_count())
"""


@pytest.mark.parametrize("of_spark", [True, False])
def test_only_processes_of_spark_spare_the_collector_their_modules(of_spark: bool) -> None:
    """Those that plan the reads of a data source are no tasks, and are collected just as often."""
    given = {name: value for name, value in os.environ.items() if name != "SPARK_REUSE_WORKER"}
    ran = subprocess.run(
        [sys.executable, "-c", SETTLED],
        env=given | ({"SPARK_REUSE_WORKER": "1"} if of_spark else {}),
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert (int(ran.stdout) > 0) is of_spark


@pytest.mark.spark
def test_tasks_of_queries_and_of_other_jobs_share_their_workers(spark: Any) -> None:
    def parent(_: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield pa.RecordBatch.from_pydict({"pid": [os.getppid()]})

    of_queries = {row.pid for row in spark.range(0, 1, 1, 1).mapInArrow(parent, "pid bigint").collect()}
    assert set(spark.sparkContext.range(0, 1, 1, 1).map(lambda _: os.getppid()).collect()) == of_queries
