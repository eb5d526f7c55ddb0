"""The Python of the workers: the driver's on one machine, asked for on a cluster."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import venv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from omnigraph.errors import SparkUnavailable
from omnigraph.spark.session.worker_python import settle_worker_python, this_python_for_workers

OWN_SESSION = """
import os, sys
os.environ["PYSPARK_PYTHON"] = "/bin/false"
from pyspark.sql import SparkSession
session = (SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    .config("spark.driver.bindAddress", "127.0.0.1").config("spark.driver.host", "127.0.0.1").getOrCreate())
import omnigraph as og
place = sys.argv[1]
g = og.init(place, schema="node P { k: String @key }")
g.load([{"type": "P", "data": {"k": "a"}}], mode="append", engine="spark")
print("rows", g.to_spark("P").count(), len(g.query("query q() { match { $p: P } return { $p.k } }", engine="spark")))
g.branch_create("r")
g.load([{"type": "P", "data": {"k": "b"}}], mode="append", engine="spark", branch="r")
g.merge("r", engine="spark")
print("exported", g.export(place + " out?%20", engine="spark").rows)
"""

BY_FORMAT = """
import os, sys
os.environ["PYSPARK_PYTHON"] = "/bin/false"
from pyspark.sql import SparkSession
session = (SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    .config("spark.driver.bindAddress", "127.0.0.1").config("spark.driver.host", "127.0.0.1").getOrCreate())
import omnigraph as og
from omnigraph.spark.source.datasource import register
place = sys.argv[1]
og.init(place, schema="node P { k: String @key }")
register(session)
row = session.createDataFrame([("a",)], "k string")
row.write.format("omnigraph").option("type", "P").mode("append").save(place)
print("rows", session.read.format("omnigraph").option("type", "P").load(place).count())
"""


def test_a_session_of_the_users_own_runs_the_drivers_python_on_one_machine(tmp_path: Path) -> None:
    place = tmp_path / "é ?#%20"
    done = subprocess.run(
        [sys.executable, "-c", OWN_SESSION, str(place)], capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert "rows 1 1" in done.stdout
    assert "exported 2" in done.stdout
    assert sorted(path.name for path in tmp_path.iterdir()) == ["é ?#%20", "é ?#%20 out?%20"]


def test_the_format_is_planned_by_the_drivers_python_once_it_is_registered(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", BY_FORMAT, str(tmp_path / "g.omni")],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert "rows 1" in done.stdout


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
        .config("spark.driver.memory", "600m").config("spark.executor.memory", "600m").getOrCreate())
    try:
        g.load([{"type": "P", "data": {"k": str(number)}}], mode="append", engine="spark")
        told.append("loaded")
    except og.errors.SparkUnavailable as refused:
        told.append(str(refused))
    session.stop()
print(json.dumps([*told, len(g.query("query q() { match { $p: P } return { $p.k } }"))]))
"""


@pytest.fixture
def standalone(tmp_path: Path) -> Iterator[str]:
    """A master and a worker of their own, as a cluster has them."""
    import pyspark

    home = os.path.dirname(pyspark.__file__)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    master = f"spark://127.0.0.1:{port}"
    size = ["--cores", "1", "--memory", "1g", "--webui-port", "0", "--work-dir", str(tmp_path / "work")]
    commands = [
        ["master.Master", "--host", "127.0.0.1", "--port", str(port), "--webui-port", "0"],
        ["worker.Worker", "--host", "127.0.0.1", *size, master],
    ]
    environment = {**os.environ, "SPARK_HOME": home, "SPARK_DAEMON_MEMORY": "256m"}
    started = []
    try:
        for name, *options in commands:
            program = [f"{home}/bin/spark-class", f"org.apache.spark.deploy.{name}", *options]
            quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
            started.append(subprocess.Popen(program, env=environment, **quiet))
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:  # the worker asks again until the master is there
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.1)
        yield master
    finally:
        for process in reversed(started):
            process.terminate()
        for process in started:
            process.wait(timeout=60)


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


class Cluster:
    """A context on a cluster, as far as asking its workers goes."""

    master = "spark://somewhere:7077"
    applicationId = "app-1"  # noqa: N815 - named by PySpark
    pythonExec = "python3"  # noqa: N815 - named by PySpark

    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.asked = 0

    def getConf(self) -> dict[str, str]:
        return {"spark.pyspark.python": "/opt/named/python"}

    def parallelize(self, values: list[int], parts: int) -> Cluster:
        return self

    def map(self, work: Any) -> Cluster:
        executable, _, missing = work(0)
        assert executable == sys.executable
        assert not missing, "this process has all that tasks import"
        return self

    def collect(self) -> list[Any]:
        self.asked += 1
        if isinstance(self.answer, Exception):
            raise self.answer
        return [self.answer]


def test_workers_of_a_cluster_without_omnigraph_are_named_with_the_setting() -> None:
    cluster = Cluster(("/usr/bin/python3", "3.9.1", ["omnigraph", "lance"]))
    with pytest.raises(SparkUnavailable) as refused:
        settle_worker_python(cluster)
    lacks = "has no module named omnigraph, lance"
    for part in ("/usr/bin/python3", "3.9.1", lacks, "spark.pyspark.python", "PYSPARK_PYTHON", sys.executable):
        assert part in refused.value.message


@pytest.mark.parametrize(
    ("failure", "told"),
    [
        ("x\n[PYTHON_VERSION_MISMATCH] 3.9 and 3.11.", "3.9 and 3.11"),
        (
            "Error from python worker:\n  /opt/bare/bin/python: Error while finding module specification for "
            "'omnigraph.spark.session.worker_daemon' (ModuleNotFoundError: No module named 'omnigraph')",
            "run /opt/bare/bin/python, which has no module named omnigraph",
        ),
        (
            "EOFException occurred while reading the port number from pyspark.daemon's stdout",
            "python`, and that ends at once",
        ),
        ('java.io.IOException: Cannot run program "pyth0n": error=2', "told to run `pyth0n`, and have no such program"),
        (
            'Cannot run program "./e/bin/python"\nCaused by: java.io.IOException: error=13, Permission denied',
            "told to run `./e/bin/python`, and may not: it is no program there. An environment that travels as an "
            "archive must be a .tar.gz",
        ),
    ],
)
def test_a_worker_that_does_not_start_says_which_python_and_which_setting(
    failure: str, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    with pytest.raises(SparkUnavailable) as refused:
        settle_worker_python(Cluster(RuntimeError(failure)))
    for part in (told, "PYSPARK_PYTHON", "spark.pyspark.python", sys.executable):
        assert part in refused.value.message


def test_the_environment_names_this_python_only_while_a_session_on_this_machine_starts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    monkeypatch.setenv("PYSPARK_DRIVER_PYTHON", "/opt/drivers/python")
    with this_python_for_workers():
        assert (os.environ["PYSPARK_PYTHON"], os.environ["PYSPARK_DRIVER_PYTHON"]) == (
            sys.executable,
            "/opt/drivers/python",
        )
    assert "PYSPARK_PYTHON" not in os.environ
    assert os.environ["PYSPARK_DRIVER_PYTHON"] == "/opt/drivers/python"


def test_another_failure_of_the_cluster_stays_what_it_is() -> None:
    with pytest.raises(RuntimeError, match="something else"):
        settle_worker_python(Cluster(RuntimeError("something else")))


def test_workers_are_asked_once_with_the_python_that_the_setting_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    cluster = Cluster(("/opt/named/python", "3.11.7", []))
    settle_worker_python(cluster)
    settle_worker_python(cluster)
    assert cluster.asked == 1
    assert cluster.pythonExec == "/opt/named/python"
