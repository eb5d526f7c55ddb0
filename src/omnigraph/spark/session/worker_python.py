"""Which Python the workers of a Spark session run, and what to do when it is one without OmniGraph.

PySpark runs `PYSPARK_PYTHON`, or whatever `python3` is on the PATH of the worker. On one machine that ought to be the
Python of the driver, so it is. On a cluster nobody but its owner knows: the workers are asked once, before the first
job, since otherwise the job dies of "No module named 'omnigraph'" and nothing says where.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from omnigraph.errors import SparkUnavailable

NEEDED = ("omnigraph", "pyarrow", "lance", "duckdb", "numpy", "orjson")
"""What tasks import, and PySpark does not bring along."""

SETTING = "spark.pyspark.python"
VARIABLE = "PYSPARK_PYTHON"
_LACKS_IT = re.compile(r"No module named '?omnigraph")
_NOT_THERE = re.compile(r'Cannot run program "(?P<program>[^"]+)"')
_TOLD_BY = re.compile(r"^\s*(?P<program>\S*python\S*): Error while finding module specification", re.MULTILINE)
_NO_PYTHON = re.compile(r"port number from pyspark\.daemon")
_asked: set[str] = set()
"""The applications whose workers have been asked."""


@contextmanager
def this_python_for_workers() -> Iterator[None]:
    """Start a session within this, and its workers and Java run this Python, unless the environment names another one.

    PySpark reads that from the environment only. It is taken back, so that a session on a cluster and processes that
    are started later are not told to run a Python that is only here.
    """
    ours = {name: sys.executable for name in (VARIABLE, "PYSPARK_DRIVER_PYTHON") if name not in os.environ}
    os.environ.update(ours)
    try:
        yield
    finally:
        for name in ours:
            os.environ.pop(name, None)


def settle_worker_python(context: Any) -> bool:
    """Make the workers of a local master run the driver's Python; elsewhere refuse a Python without OmniGraph.

    Says whether they would have run another one.
    """
    if context.master.startswith("local"):
        is_other = shutil.which(str(context.pythonExec)) != sys.executable
        if is_other:
            context.pythonExec = sys.executable
        return is_other
    if context.applicationId in _asked:
        return False
    _follow_the_setting(context)
    executable, version, missing = _ask_a_worker(context)
    if missing:
        raise _without(context, f"{executable} (Python {version})", missing)
    _asked.add(context.applicationId)
    return False


def require_python_for_planning(context: Any) -> None:
    """Refuse a Python of the workers that the driver has not: Spark plans reads of Python sources with it there.

    A path within an archive is relative. It is found in the directory of an executor, which has unpacked the archive,
    and looked for in the directory that the driver's JVM was started in.
    """
    program = str(context.pythonExec)
    if os.sep not in program or os.path.isabs(program):
        return
    directory = context._jvm.java.lang.System.getProperty("user.dir")
    if not os.path.exists(os.path.join(directory, program)):
        raise SparkUnavailable(
            f"the Spark workers of {context.master} run `{program}`, and reads of a graph are planned with it on the "
            f"driver too, which has none below {directory}. Unpack the archive of the environment there, in a "
            f"directory named as in spark.archives, and start the driver in {directory}."
        )


def _follow_the_setting(context: Any) -> None:
    """PySpark heeds the setting only under `spark-submit`; a program that was started by itself means the same."""
    wanted = context.getConf().get(SETTING)
    if wanted and VARIABLE not in os.environ:
        context.pythonExec = wanted


def _ask_a_worker(context: Any) -> tuple[str, str, list[str]]:
    wanted = NEEDED

    def describe(_: int) -> tuple[str, str, list[str]]:
        # Travels by value, since the worker may not have this module, and so imports what it needs itself.
        import importlib.util
        import sys

        missing = [name for name in wanted if importlib.util.find_spec(name) is None]
        return sys.executable, sys.version.split()[0], missing

    try:
        ((executable, version, missing),) = context.parallelize([0], 1).map(describe).collect()
    except Exception as error:
        known = _told(context, str(error))
        if known is None:
            raise
        raise known from error
    return executable, version, missing


def _told(context: Any, text: str) -> SparkUnavailable | None:
    """What a failure to start a worker says about its Python, when that is what it is about."""
    if _LACKS_IT.search(text):
        named = _TOLD_BY.search(text)
        return _without(context, named["program"] if named else f"`{context.pythonExec}`", ["omnigraph"])
    missing = _NOT_THERE.search(text)
    if missing and "Permission denied" in text:
        return SparkUnavailable(
            f"the Spark workers of {context.master} are told to run `{missing['program']}`, and may not: it is no "
            f"program there. An environment that travels as an archive must be a .tar.gz, since Spark unpacks a .tar "
            f"without permissions. {_advice()}"
        )
    if missing:
        return SparkUnavailable(
            f"the Spark workers of {context.master} are told to run `{missing['program']}`, and have no such program. "
            f"{_advice()}"
        )
    if _NO_PYTHON.search(text):
        return SparkUnavailable(
            f"the Spark workers of {context.master} are told to run `{context.pythonExec}`, and that ends at once. "
            f"{_advice()}"
        )
    mismatch = [line.strip() for line in text.splitlines() if "PYTHON_VERSION_MISMATCH" in line]
    if mismatch:
        return SparkUnavailable(
            f"the Spark workers of {context.master} run `{context.pythonExec}`, and that is another Python than this "
            f"process runs: {mismatch[0].rstrip('.')}. {_advice()}"
        )
    return None


def _without(context: Any, interpreter: str, missing: Sequence[str]) -> SparkUnavailable:
    return SparkUnavailable(
        f"the Spark workers of {context.master} run {interpreter}, which has no module named {', '.join(missing)}. "
        f"Install omnigraph there, or ship an environment that has it. {_advice()}"
    )


def _advice() -> str:
    return (
        f"Name the Python of the workers by the variable {VARIABLE}, or the setting {SETTING}, before the session "
        f"starts; it must be of the same version as this process, which runs {sys.executable} "
        f"(Python {sys.version.split()[0]})."
    )
