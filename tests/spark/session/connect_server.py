"""A server of Spark Connect on loopback, as `start-connect-server.sh` of Spark starts one, and a process that is its
client: what PySpark notes of Connect in a process would be in the way of the classic sessions of other tests."""

from __future__ import annotations

import multiprocessing
import os
import re
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

PATIENCE = 120
"""Seconds that the server has to start, and every step of the client to end."""

_STARTED = re.compile(r"Spark Connect server started at: (127\.0\.0\.1:\d+)")
SETTINGS = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.connect.grpc.binding.address": "127.0.0.1",
    "spark.connect.grpc.binding.port": "0",
    "spark.ui.enabled": "false",
    "spark.driver.memory": "700m",
    "spark.sql.shuffle.partitions": "1",
    "spark.python.daemon.module": "omnigraph.spark.session.worker_daemon",
}


@contextmanager
def connect_server(place: Path) -> Iterator[str]:
    """The address of a server that runs in `place`, where everything is that it leaves."""
    import pyspark

    home = os.path.dirname(pyspark.__file__)
    settings = {
        **SETTINGS,
        "spark.local.dir": str(place),
        "spark.sql.warehouse.dir": str(place / "warehouse"),
        "spark.driver.extraJavaOptions": f"-Djava.io.tmpdir={place}",
    }
    command = [f"{home}/bin/spark-submit", "--master", "local[2]"]
    command += [part for setting in settings.items() for part in ("--conf", "=".join(setting))]
    command += ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "spark-internal"]
    environment = {**os.environ, "SPARK_HOME": home, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    log = place / "server.log"
    with log.open("wb") as printed:
        server = subprocess.Popen(
            command, env=environment, cwd=place, stdin=subprocess.DEVNULL, stdout=printed, stderr=printed
        )
    try:
        yield f"sc://{_address(server, log)}"
    finally:
        server.terminate()
        try:
            server.wait(timeout=30)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()


def _address(server: subprocess.Popen[bytes], log: Path) -> str:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline and server.poll() is None:
        found = _STARTED.search(log.read_text(errors="replace"))
        if found:
            return found[1]
        time.sleep(0.1)
    raise RuntimeError(f"the server of Spark Connect did not start:\n{log.read_text(errors='replace')[-3000:]}")


@contextmanager
def connect_client(server: str) -> Iterator[Callable[..., Any]]:
    """Calls functions of modules in a process whose active session is one of the server."""
    with multiprocessing.get_context("spawn").Pool(1) as process:

        def call(step: Callable[..., Any], *given: Any) -> Any:
            return process.apply_async(step, given).get(timeout=PATIENCE)

        call(_connect, server)
        yield call


def _connect(server: str) -> None:
    warnings.simplefilter("ignore")
    from pyspark.sql import SparkSession

    SparkSession.builder.remote(server).getOrCreate()
