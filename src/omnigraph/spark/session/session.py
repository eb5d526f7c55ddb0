"""The Spark session of this process: the caller's own if there is one, otherwise one built on first need.

PySpark is imported here inside functions only: a process that runs no Spark job never pays for it.
"""

from __future__ import annotations

import os
import socket
import sys
import tempfile
import threading
import warnings
from collections.abc import Mapping
from contextlib import nullcontext
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omnigraph.errors import BadRequest, SparkUnavailable
from omnigraph.spark.session.connect import (
    MODE_VARIABLE,
    connect_refused,
    connect_session,
    speaks_connect,
    told_by_environment,
)
from omnigraph.spark.session.machine import machine_memory, usable_cores
from omnigraph.spark.session.query_context_log import silence_query_contexts
from omnigraph.spark.session.starting.java import collector_options, require_java
from omnigraph.spark.session.starting.not_started import why_not_started
from omnigraph.spark.session.starting.unfinished_start import undone_if_interrupted
from omnigraph.spark.session.worker_python import settle_worker_python, this_python_for_workers

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MASTER_VARIABLE = "OMNIGRAPH_SPARK_MASTER"
CONF_VARIABLE = "OMNIGRAPH_SPARK_CONF"
_GIGABYTE = 1 << 30

_building = threading.Lock()


def active_session() -> SparkSession | None:
    """The session that lives in this process already; asking imports nothing."""
    if "pyspark" not in sys.modules:
        return None
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    # The server that PySpark starts for a remote `local[*]` has its context in this process, and it is not for jobs.
    if SparkContext._active_spark_context is None or MODE_VARIABLE in os.environ:
        return connect_session()
    # The active session of the JVM is bound to a thread; the builder finds the process-wide one from any thread.
    return SparkSession.getActiveSession() or SparkSession.builder.getOrCreate()


def spark_session(master: str | None = None, conf: Mapping[str, str] | None = None) -> SparkSession:
    """The session that jobs run on.

    An active one is used as it is. Otherwise one is built with `master`, else `OMNIGRAPH_SPARK_MASTER`, else
    `local[*]`; `conf` takes any `spark.*` setting and wins over everything we would choose, and so do the settings
    in `OMNIGRAPH_SPARK_CONF` (`spark.a=1,spark.b=2`).
    """
    wanted = _checked(conf or {})
    with _building:
        active = active_session()
        refusal = refusal_of_jobs()
        if refusal is not None:
            raise refusal
        if active is not None:
            _refuse_other_settings(active, master, wanted)
            return _with_worker_python(active)
        chosen = master or os.environ.get(MASTER_VARIABLE) or "local[*]"
        if chosen.startswith("sc://"):
            raise connect_refused(chosen)
        require_java()
        return _with_worker_python(_build(chosen, {**_from_environment(), **wanted}))


def frame_session() -> SparkSession:
    """The session that frames for the caller are made on: one of Spark Connect, too, if that is what is active."""
    active = active_session()
    return active if active is not None and speaks_connect(active) else spark_session()


def refusal_of_jobs() -> SparkUnavailable | None:
    """Why no job can run in this process, where it speaks Spark Connect and nothing else. Asking imports nothing."""
    active = active_session()
    if active is not None:
        return connect_refused("the active session") if speaks_connect(active) else None
    told = told_by_environment()
    return connect_refused(told) if told else None


def _with_worker_python(session: SparkSession) -> SparkSession:
    if settle_worker_python(session.sparkContext):
        from omnigraph.spark.source.datasource import register

        # Spark would look for the format with the other Python.
        register(session, push_down=False)
    return session


def local_settings(master: str, memory_bytes: int, cores: int) -> dict[str, str]:
    """What suits one machine: loopback only, no UI, a heap that leaves most memory to the Python workers."""
    heap = min(max(memory_bytes // 4, _GIGABYTE), 16 * _GIGABYTE)
    return {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": f"{heap >> 20}m",
        "spark.sql.shuffle.partitions": str(max(4 * cores_of(master, cores), 4)),
        "spark.local.dir": tempfile.gettempdir(),
        "spark.hadoop.fs.defaultFS": "file:///",
        # Over TCP each task waits some 40 ms for a delayed acknowledgement before its worker begins. Not on clusters:
        # the temporary directory of a container can have a longer name than such a socket may.
        "spark.python.unix.domain.socket.enabled": str(hasattr(socket, "AF_UNIX")).lower(),
        # Rows from Python take a twentieth less of the processor than with 64 kB, as Spark has it.
        "spark.buffer.size": str(256 << 10),
    }


def common_settings() -> dict[str, str]:
    """What every session that we build gets, wherever its master is."""
    return {
        "spark.app.name": "omnigraph",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.adaptive.enabled": "true",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.python.filterPushdown.enabled": "true",
        "spark.sql.session.timeZone": "UTC",
        "spark.python.task.killTimeout": "500ms",
        # Else PySpark asks the JVM some ten questions for each column that a program names, in order to say in an error
        # which line named it.
        "spark.python.sql.dataFrameDebugging.enabled": "false",
        "spark.python.daemon.module": "omnigraph.spark.session.worker_daemon",
        # Tasks of queries are told so by Spark. Tasks of other jobs, too, or they would get workers of their own.
        "spark.executorEnv.SPARK_SIMPLIFIED_TRACEBACK": "1",
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={_log_settings().as_uri()}",
    }


def cores_of(master: str, cores: int) -> int:
    """How many tasks run at once on `master`, as far as its text tells (`cores` is what this machine has)."""
    if master == "local":
        return 1
    if master.startswith("local["):
        threads = master[len("local[") :].split("]")[0].split(",")[0].strip()
        return cores if threads == "*" else int(threads)
    return cores


def _build(master: str, conf: Mapping[str, str]) -> SparkSession:
    silence_query_contexts()
    settings = common_settings()
    if master.startswith("local"):
        settings |= local_settings(master, machine_memory(), usable_cores())
        java = [settings["spark.driver.extraJavaOptions"], *collector_options(os.environ)]
        settings["spark.driver.extraJavaOptions"] = " ".join(java)
    settings |= conf
    # Nothing here hands pandas frames to Spark's own conversion, and the warning would come with every first job.
    warnings.filterwarnings("ignore", message="PySpark does not yet fully support pandas", category=FutureWarning)
    with this_python_for_workers() if master.startswith("local") else nullcontext():
        return _launch(master, settings)


def _launch(master: str, settings: Mapping[str, str]) -> SparkSession:
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway
    from pyspark.sql import SparkSession

    spark_conf = SparkConf(loadDefaults=False).setMaster(master)
    for key, value in settings.items():
        spark_conf.set(key, value)
    # The JVM prints before its loggers are set up. It gets a file of its own to print to, shown only if it fails.
    printed = tempfile.TemporaryFile(prefix="omnigraph-spark-")  # noqa: SIM115 - lives as long as the JVM
    try:
        with undone_if_interrupted(), warnings.catch_warnings():
            # The process that is forked here does nothing but become the JVM.
            warnings.filterwarnings("ignore", message="lance is not fork-safe")
            gateway = SparkContext._gateway or launch_gateway(spark_conf, popen_kwargs={"stderr": printed})
            return SparkSession(SparkContext(conf=spark_conf, gateway=gateway))
    except Exception as problem:
        printed.seek(0)
        why = why_not_started(master, problem, printed.read().decode(errors="replace"))
        raise SparkUnavailable(
            f"Spark did not start on {master}: {why}\n"
            "Check the master's address and the `spark.*` settings, or use engine='local'."
        ) from problem


def _checked(conf: Mapping[str, str]) -> dict[str, str]:
    for key in conf:
        if not key.startswith("spark."):
            raise BadRequest(f"`{key}` is not a Spark setting: their names start with `spark.`.")
    return {key: str(value) for key, value in conf.items()}


def _from_environment() -> dict[str, str]:
    text = os.environ.get(CONF_VARIABLE, "")
    pairs: dict[str, str] = {}
    for item in filter(None, (part.strip() for part in text.split(","))):
        key, separator, value = item.partition("=")
        if not separator:
            raise BadRequest(
                f"{CONF_VARIABLE} holds `{item}`; write settings as `spark.name=value`, with commas between."
            )
        pairs[key.strip()] = value.strip()
    return _checked(pairs)


def _refuse_other_settings(active: Any, master: str | None, conf: Mapping[str, str]) -> None:
    running = active.sparkContext
    different = [f"{key}={value}" for key, value in conf.items() if active.conf.get(key, None) != value]
    if master is not None and running.master != master:
        different.insert(0, f"master={master}")
    if different:
        raise BadRequest(
            f"A Spark session on {running.master} is active in this process and is used as it is, so "
            f"{', '.join(different)} cannot be applied. Leave them out, or stop the session first (`spark.stop()`)."
        )


def _log_settings() -> Path:
    return Path(str(resources.files("omnigraph.spark") / "log4j2-quiet.properties"))
