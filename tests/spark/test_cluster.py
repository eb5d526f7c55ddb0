"""Separate executor processes and a graph on an object store: an executor that is killed in the middle of a load, and
tasks that are run twice because their first attempt is slow, or fails after it has written."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

SCRIPT = """
import json, os, signal, sys, threading, time
from pathlib import Path

from omnigraph.ledger.snapshots import table_of
from omnigraph.ledger.store import create_store
from omnigraph.spark import load_splits
from omnigraph.spark.load import load
from omnigraph.spark.session import spark_session

uri, data, more = sys.argv[1:]
load_splits.SMALLEST_SPLIT = 20_000
session = spark_session("local-cluster[2,1,1024]", {
    "spark.driver.memory": "600m",
    "spark.executor.memory": "600m",
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.multiplier": "1.1",
    "spark.speculation.quantile": "0.3",
    "spark.speculation.minTaskRuntime": "2s",
})


def executors():
    mine = {os.getpid()}
    found = []
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parents[int(entry.name)] = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
            except OSError:
                pass
    while True:
        more = {child for child, parent in parents.items() if parent in mine} - mine
        if not more:
            break
        mine |= more
    for process in mine:
        try:
            command = Path(f"/proc/{process}/cmdline").read_bytes()
        except OSError:
            continue
        program = command.split(b"\\0")[0]
        if b"CoarseGrainedExecutorBackend" in command and program.endswith(b"java"):
            found.append(process)
    return sorted(found)


killed = []


def kill_one():
    tracker = session.sparkContext.statusTracker()
    while not any((info := tracker.getStageInfo(stage)) and info.numCompletedTasks >= 1
                  for stage in tracker.getActiveStageIds()):
        time.sleep(0.05)
    time.sleep(0.5)
    victim = executors()[0]
    os.kill(victim, signal.SIGKILL)
    killed.append(victim)


def files():
    written = {entry.path.rsplit("/", 1)[1] for kind in ("nodes", "edges") for entry in store.objects.list(kind)
               if "/data/" in entry.path}
    tables = [store.tables.handles.at(table_of(pin)) for pin in store.snapshot().tables.values()]
    needed = {file.path for table in tables for fragment in table.get_fragments() for file in fragment.metadata.files}
    return sorted(written - needed)


def counted(table_key):
    ids = store.tables.scan_table(table_of(store.snapshot().pin(table_key)), columns=["id"])["id"].to_pylist()
    return [len(ids), len(set(ids))]


store = create_store(uri, "node Person { slug: String @key  age: I32? }\\nedge Knows: Person -> Person")
told = {}

killer = threading.Thread(target=kill_one, daemon=True)
killer.start()
session.sparkContext.environment["OMNIGRAPH_FAILPOINTS"] = "spark.load.written=sleep:1.5"
result = load(session, store, data, mode="append")
killer.join(timeout=10)
told["killed"] = [result.engine, len(killed), counted("node:Person"), counted("edge:Knows"), files()]

# The first task stays in its first attempt for a minute after it has written; of the others every worker fails its
# second one. The copy of the first task is what lets the load end earlier.
session.sparkContext.environment["OMNIGRAPH_FAILPOINTS"] = (
    "spark.load.written.first_task=sleep:60;spark.load.written.first=raise:2"
)
started = time.monotonic()
load(session, store, more, mode="append")
told["copied"] = [time.monotonic() - started < 55, counted("node:Person"), counted("edge:Knows"), files()]

from omnigraph.spark.datasource import to_spark
told["read"] = to_spark(session, store, "Person", columns=["id"]).count()
print(json.dumps(told))
session.stop()
"""


@pytest.mark.spark
@pytest.mark.s3
@pytest.mark.slow
def test_a_killed_executor_and_copies_of_slow_tasks_do_not_harm_loads_onto_an_object_store(
    s3_uri: Callable[[], str], tmp_path: Path
) -> None:
    inputs = [write_records(tmp_path / f"{start}.jsonl", start) for start in (0, 2000)]
    ran = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(SCRIPT), s3_uri(), *inputs],
        capture_output=True,
        text=True,
        timeout=400,
        env=dict(os.environ),
        check=False,
    )
    assert ran.returncode == 0, ran.stderr[-3000:]
    assert json.loads(ran.stdout.splitlines()[-1]) == {
        "killed": ["spark", 1, [2000, 2000], [1500, 1500], []],
        "copied": [True, [4000, 4000], [3000, 3000], []],
        "read": 4000,
    }


def write_records(path: Path, start: int) -> str:
    records = [{"type": "Person", "data": {"slug": f"p{n}", "age": n % 90}} for n in range(start, start + 2000)]
    records += [
        {"edge": "Knows", "from": f"p{n}", "to": f"p{start + (7 * n) % 2000}"} for n in range(start, start + 1500)
    ]
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return str(path)
