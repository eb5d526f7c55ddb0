"""Separate executor processes, a graph on an object store, and an executor that is killed in the middle of a load."""

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

uri, data = sys.argv[1:]
load_splits.SMALLEST_SPLIT = 20_000
session = spark_session("local-cluster[2,1,1024]", {
    "spark.driver.memory": "600m",
    "spark.executor.memory": "600m",
    "spark.executorEnv.OMNIGRAPH_FAILPOINTS": "spark.load.written=sleep:1.5",
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


store = create_store(uri, "node Person { slug: String @key  age: I32? }\\nedge Knows: Person -> Person")
killer = threading.Thread(target=kill_one, daemon=True)
killer.start()
result = load(session, store, data, mode="append")
killer.join(timeout=10)
people = store.tables.scan_table(table_of(store.snapshot().pin("node:Person")), columns=["id"])
edges = store.tables.scan_table(table_of(store.snapshot().pin("edge:Knows")), columns=["id"])
read = session.read.format("omnigraph")
from omnigraph.spark.datasource import to_spark
print(json.dumps({
    "engine": result.engine,
    "killed": len(killed),
    "people": [people.num_rows, len(set(people["id"].to_pylist()))],
    "edges": [edges.num_rows, len(set(edges["id"].to_pylist()))],
    "read": to_spark(session, store, "Person", columns=["id"]).count(),
}))
session.stop()
"""


@pytest.mark.spark
@pytest.mark.s3
@pytest.mark.slow
def test_a_killed_executor_does_not_harm_a_load_onto_an_object_store(s3_uri: Callable[[], str], tmp_path: Path) -> None:
    data = tmp_path / "people.jsonl"
    records = [{"type": "Person", "data": {"slug": f"p{n}", "age": n % 90}} for n in range(2000)]
    records += [{"edge": "Knows", "from": f"p{n}", "to": f"p{(7 * n) % 2000}"} for n in range(1500)]
    data.write_text("".join(json.dumps(record) + "\n" for record in records))
    ran = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(SCRIPT), s3_uri(), str(data)],
        capture_output=True,
        text=True,
        timeout=400,
        env=dict(os.environ),
        check=False,
    )
    assert ran.returncode == 0, ran.stderr[-3000:]
    told = json.loads(ran.stdout.splitlines()[-1])
    assert told == {"engine": "spark", "killed": 1, "people": [2000, 2000], "edges": [1500, 1500], "read": 2000}
