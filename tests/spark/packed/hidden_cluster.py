"""A standalone cluster whose machines share nothing with the driver but the place of the data.

Each daemon runs in a file system of its own, in which the driver's Python, its packages and the source tree are empty
directories. What is left of them is Spark, under another path. The first Python on the path is that of the system.
Needs the right to mount: that of root, or of the root of a namespace where the system lets everybody have one.
"""

from __future__ import annotations

import os
import shlex
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

PATIENCE = 60.0
_ALONE = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--user", "--map-root-user", "--mount"]
_SYSTEM = "/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True)
class HiddenCluster:
    """The address of the master and the processes of the workers."""

    master: str
    workers: list[subprocess.Popen[bytes]] = field(default_factory=list)


def can_hide() -> bool:
    """Whether the system lets us have file systems of our own."""
    try:
        return subprocess.run([*_ALONE, "true"], capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False


def private_places() -> list[Path]:
    """What of the driver's machine the others do not have: source tree, environment, and the Python below it."""
    places = {Path(__file__).parents[3], Path(sys.prefix), Path(sys.base_prefix)}
    return sorted(place for place in places if not places.intersection(place.parents))


@contextmanager
def hidden_cluster(place: Path, workers: int = 2) -> Iterator[HiddenCluster]:
    """A master and its workers, each with an address of its own on loopback; all ended at the end."""
    import pyspark

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    cluster = HiddenCluster(f"spark://127.0.0.1:{port}")
    spark = Path(pyspark.__file__).parent
    started = []
    try:
        master = ["master.Master", "--host", "127.0.0.1", "--port", str(port), "--webui-port", "0"]
        started.append(_start(place, "master", spark, master))
        _wait_for(port)
        for number in range(1, workers + 1):
            host = f"127.0.0.{number}"
            size = ["--cores", "1", "--memory", "1g", "--webui-port", "0", "--work-dir", str(place / host)]
            worker = _start(place, host, spark, ["worker.Worker", "--host", host, *size, cluster.master])
            started.append(worker)
            cluster.workers.append(worker)
        yield cluster
    finally:
        for process in reversed(started):
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGTERM)
        for process in started:
            process.wait(timeout=30)


def _start(place: Path, name: str, spark: Path, command: Sequence[str]) -> subprocess.Popen[bytes]:
    """Start one daemon. What starts it becomes it, so that the process that is given back is the daemon."""
    home = place / "spark"
    home.mkdir(exist_ok=True)
    mounts = [["mount", "--bind", str(spark), str(home)]]
    mounts += [["mount", "-t", "tmpfs", "none", str(hidden)] for hidden in private_places()]
    daemon = [f"{home}/bin/spark-class", f"org.apache.spark.deploy.{command[0]}", *command[1:]]
    script = " && ".join([*map(shlex.join, mounts), "exec " + shlex.join(daemon)])
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("PYSPARK_", "PYTHON", "VIRTUAL_"))}
    environment = {**kept, "PATH": _SYSTEM, "SPARK_HOME": str(home), "SPARK_DAEMON_MEMORY": "256m"}
    with (place / f"{name}.log").open("wb") as log:
        return subprocess.Popen(
            [*_ALONE, "sh", "-c", script],
            cwd=place,
            env=environment,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )


def _wait_for(port: int) -> None:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise RuntimeError(f"the master did not start within {PATIENCE:.0f} s")
