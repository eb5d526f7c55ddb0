"""Separate executor processes and a graph on an object store: an executor that is killed in the middle of a load, and
tasks that run twice because their first attempt is slow, or fails after it has written; and workers whose Python lacks
the package."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import venv
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.spark, pytest.mark.slow]

COMMON = """
import json, os, signal, sys, threading, time
from pathlib import Path

from omnigraph.ledger.snapshots import table_of
from omnigraph.ledger.store import create_store
from omnigraph.spark.load import load_splits
from omnigraph.spark.source.datasource import to_spark
from omnigraph.spark.load.load import load
from omnigraph.spark.session.session import spark_session

uri, data = sys.argv[1:]
load_splits.SMALLEST_SPLIT = 20_000
MEMORY = {"spark.driver.memory": "600m", "spark.executor.memory": "600m", "spark.executor.cores": "1"}
store = create_store(uri, "node Person { slug: String @key  age: I32? }\\nedge Knows: Person -> Person")


def counted(table_key):
    ids = store.tables.scan_table(table_of(store.snapshot().pin(table_key)), columns=["id"])["id"].to_pylist()
    return [len(ids), len(set(ids))]


def left_over():
    written = {entry.path.rsplit("/", 1)[1] for kind in ("nodes", "edges") for entry in store.objects.list(kind)
               if "/data/" in entry.path}
    tables = [store.tables.handles.at(table_of(pin)) for pin in store.snapshot().tables.values()]
    needed = {file.path for table in tables for fragment in table.get_fragments() for file in fragment.metadata.files}
    return sorted(written - needed)
"""

KILLED = """
session = spark_session("local-cluster[2,1,1024]", {
    **MEMORY, "spark.executorEnv.OMNIGRAPH_FAILPOINTS": "spark.load.written=sleep:1.5",
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


killer = threading.Thread(target=kill_one, daemon=True)
killer.start()
result = load(session, store, data, mode="append")
killer.join(timeout=10)
print(json.dumps({
    "engine": result.engine,
    "killed": len(killed),
    "people": counted("node:Person"),
    "edges": counted("edge:Knows"),
    "read": to_spark(session, store, "Person", columns=["id"]).count(),
    "left over": left_over(),
}))
session.stop()
"""

COPIED = """
# The first task stays in its first attempt for five minutes after it has written; of the other tasks every worker fails
# its second one. That the load ends earlier shows that a copy of the first task has won.
session = spark_session(None, {
    **MEMORY,
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.executorEnv.OMNIGRAPH_FAILPOINTS":
        "spark.load.written.first_task=sleep:300;spark.load.written.first=raise:2",
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.multiplier": "1.1",
    "spark.speculation.quantile": "0.3",
    "spark.speculation.minTaskRuntime": "1s",
})
started = time.monotonic()
load(session, store, data, mode="append")
print(json.dumps({
    "master": session.sparkContext.master.split(":")[0],
    "a copy won": time.monotonic() - started < 280,
    "people": counted("node:Person"),
    "edges": counted("edge:Knows"),
    "left over": left_over(),
}))
session.stop()
"""


def run(script: str, uri: str, data: Path, **environment: str) -> dict[str, Any]:
    """Run a script beside its input: the path is relative, and executors work in directories of their own."""
    ran = subprocess.run(
        [sys.executable, "-c", COMMON + script, uri, data.name],
        cwd=data.parent,
        capture_output=True,
        text=True,
        timeout=400,
        env={**os.environ, **environment},
        check=False,
    )
    assert ran.returncode == 0, ran.stderr[-3000:]
    told: dict[str, Any] = json.loads(ran.stdout.splitlines()[-1])
    return told


@pytest.fixture
def records(tmp_path: Path) -> Path:
    found = [{"type": "Person", "data": {"slug": f"p{n}", "age": n % 90}} for n in range(2000)]
    edges = [{"edge": "Knows", "from": f"p{n}", "to": f"p{(7 * n) % 2000}"} for n in range(1500)]
    path = tmp_path / "people.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in [*found, *edges]))
    return path


@pytest.mark.s3
def test_a_killed_executor_does_not_harm_a_load_onto_an_object_store(s3_uri: Callable[[], str], records: Path) -> None:
    assert run(KILLED, s3_uri(), records) == {
        "engine": "spark",
        "killed": 1,
        "people": [2000, 2000],
        "edges": [1500, 1500],
        "read": 2000,
        "left over": [],
    }


@pytest.fixture(scope="module")
def standalone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A standalone cluster of two workers. They have two addresses: Spark copies no task to the host that runs it."""
    import pyspark

    home, work = os.path.dirname(pyspark.__file__), tmp_path_factory.mktemp("workers")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    master = f"spark://127.0.0.1:{port}"
    commands = [["master.Master", "--host", "127.0.0.1", "--port", str(port), "--webui-port", "0"]]
    for host in ("127.0.0.1", "127.0.0.2"):
        size = ["--cores", "1", "--memory", "1g", "--webui-port", "0", "--work-dir", str(work / host)]
        commands.append(["worker.Worker", "--host", host, *size, master])
    environment = {**os.environ, "SPARK_HOME": home, "SPARK_DAEMON_MEMORY": "256m"}
    started = []
    try:
        for name, *options in commands:
            program = [f"{home}/bin/spark-class", f"org.apache.spark.deploy.{name}", *options]
            quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
            started.append(subprocess.Popen(program, env=environment, start_new_session=True, **quiet))
            _wait_for(port)
        yield master
    finally:
        for process in reversed(started):
            process.terminate()
        for process in started:
            process.wait(timeout=60)


def _wait_for(port: int) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise RuntimeError("the master did not start within 60 s")


@pytest.mark.s3
def test_copies_of_slow_tasks_and_tasks_that_fail_after_writing_double_no_row_and_leave_no_file(
    s3_uri: Callable[[], str], records: Path, standalone: str
) -> None:
    told = run(COPIED, s3_uri(), records, OMNIGRAPH_SPARK_MASTER=standalone, PYSPARK_PYTHON=sys.executable)
    assert told == {
        "master": "spark",
        "a copy won": True,
        "people": [2000, 2000],
        "edges": [1500, 1500],
        "left over": [],
    }


ON_A_CLUSTER = """
import json, os, sys
from pyspark.sql import SparkSession
import omnigraph as og

place, master, *pythons = sys.argv[1:]
g = og.init(place, schema="node P { k: String @key }")
told = []
for number, python in enumerate(pythons):
    os.environ["PYSPARK_PYTHON"] = python
    session = (SparkSession.builder.master(master).config("spark.ui.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1").config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.memory", "600m").config("spark.executor.memory", "600m")
        .config("spark.cores.max", "1").getOrCreate())
    try:
        g.load([{"type": "P", "data": {"k": str(number)}}], mode="append", engine="spark")
        told.append("loaded")
    except og.errors.SparkUnavailable as refused:
        told.append(str(refused))
    session.stop()
print(json.dumps([*told, len(g.query("query q() { match { $p: P } return { $p.k } }"))]))
"""


def test_workers_of_a_real_cluster_with_a_bare_python_are_named_and_another_one_works(
    tmp_path: Path, standalone: str
) -> None:
    venv.create(tmp_path / "bare", with_pip=False, symlinks=True)
    bare = str(tmp_path / "bare" / "bin" / "python")
    done = subprocess.run(
        [sys.executable, "-c", ON_A_CLUSTER, str(tmp_path / "graph.omni"), standalone, bare, sys.executable],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    refused, loaded, rows = json.loads(done.stdout.splitlines()[-1])
    for part in (f"workers of {standalone} run {bare}", "no module named omnigraph", "PYSPARK_PYTHON", sys.executable):
        assert part in refused
    assert (loaded, rows) == ("loaded", 1)
