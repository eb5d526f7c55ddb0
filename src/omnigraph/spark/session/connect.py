"""Spark Connect: how its sessions and frames are told from classic ones, and what is said to who asks more of them.

A session of Connect is a client of a server that has the `SparkContext`. What goes by Spark's data sources works over
it: reading, writing, streams. Jobs of ours need the context itself and are refused before they have done anything.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from typing import TYPE_CHECKING, Any

from omnigraph.errors import BadRequest, OmniGraphError, SparkUnavailable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MODE_VARIABLE = "SPARK_CONNECT_MODE_ENABLED"
"""What PySpark sets with the first session of Connect. From then on it makes no classic one in that process, nor in the
processes that inherit it."""

REMOTE_VARIABLE = "SPARK_REMOTE"
"""By which users tell PySpark that its sessions are at a server. A JVM of one's own does not start beside it."""

_NEEDED = {
    "grpc": "grpcio",
    "grpc_status": "grpcio-status",
    "google.rpc": "googleapis-common-protos",
    "zstandard": "zstandard",
}
"""What Spark Connect needs beside PySpark, by the name of its module."""


def speaks_connect(thing: Any) -> bool:
    """Whether a session or a frame is one of Spark Connect. Imports nothing."""
    return type(thing).__module__.startswith("pyspark.sql.connect.")


def connect_session() -> SparkSession | None:
    """The session of Connect of this thread, else of this process. Imports nothing."""
    module = sys.modules.get("pyspark.sql.connect.session")
    if module is None:
        return None
    found: SparkSession | None = module.SparkSession.getActiveSession() or module.SparkSession._get_default_session()
    return found


def told_by_environment() -> str | None:
    """What of the environment keeps PySpark from making a classic session, if anything does."""
    if MODE_VARIABLE in os.environ:
        return f"this process has had a session that speaks Spark Connect, or inherits {MODE_VARIABLE} from one; it"
    if REMOTE_VARIABLE in os.environ:
        return f"{REMOTE_VARIABLE}={os.environ[REMOTE_VARIABLE]}"
    return None


def connect_refused(what: str) -> SparkUnavailable:
    """A job was asked for where there is only Connect."""
    missing = [package for module, package in _NEEDED.items() if not _is_there(module)]
    lacking = f" (This Python could not speak it anyway: it lacks {', '.join(missing)}.)" if missing else ""
    return SparkUnavailable(
        f"{what} speaks Spark Connect, which has no SparkContext: jobs need its job groups to cancel, its accumulators "
        "to count and its status tracker to report progress. Use engine='local', which does the same in this process, "
        "or a classic session (`local[*]`, `spark://…`, `yarn`, `k8s://…`) in a process without Connect. The data "
        'source works over Connect: spark.read, df.write, spark.readStream and df.writeStream with .format("omnigraph")'
        f", and so do graph.to_spark and graph.load_stream.{lacking}"
    )


def refuse_connect(session: Any) -> None:
    """For a job that is handed its session."""
    if speaks_connect(session):
        raise connect_refused("the session given")


def frame_refused(frame: Any) -> OmniGraphError:
    """A frame of Connect was to be loaded as one of a classic session is."""
    if frame.isStreaming:
        return BadRequest("load takes a DataFrame that is at rest; graph.load_stream takes a streaming one")
    return SparkUnavailable(
        "graph.load takes no DataFrame of Spark Connect: its rows are on the server, and a load needs the SparkContext "
        'there, which Connect does not give. Use df.write.format("omnigraph").option("type", …).mode("append") or '
        '.mode("overwrite"), then .save(graph.uri): all checks, one commit. To merge, graph.load(df.toArrow(), …) '
        "brings the rows to this process and loads them here."
    )


def _is_there(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False
