"""Which Python the workers of a Spark session run, and what to do when it is one without OmniGraph.

PySpark runs `PYSPARK_PYTHON`, or whatever `python3` is on the PATH of the worker. On one machine that ought to be the
Python of the driver, so it is. On a cluster nobody but its owner knows: the workers are asked once, before the first
job, since otherwise the job dies of "No module named 'omnigraph'" and nothing says where.
"""

from __future__ import annotations

import shutil
import sys
from typing import Any

from omnigraph.errors import SparkUnavailable

_asked: set[str] = set()
"""The applications whose workers have been asked."""


def settle_worker_python(context: Any) -> None:
    """Make the workers of a local master run the driver's Python; elsewhere refuse a Python without OmniGraph."""
    if context.master.startswith("local"):
        if shutil.which(context.pythonExec) != sys.executable:
            context.pythonExec = sys.executable
        return
    if context.applicationId in _asked:
        return
    executable, version, found = _ask_a_worker(context)
    if not found:
        raise SparkUnavailable(
            f"the Spark workers of {context.master} run {executable} (Python {version}), which has no module named "
            f"omnigraph. Install omnigraph there, or name another Python for the workers: the setting "
            f"spark.pyspark.python, or the variable PYSPARK_PYTHON, before the session starts. "
            f"This process runs {sys.executable} (Python {sys.version.split()[0]})."
        )
    _asked.add(context.applicationId)


def _ask_a_worker(context: Any) -> tuple[str, str, bool]:
    def describe(_: int) -> tuple[str, str, bool]:
        # Travels by value, since the worker may not have this module, and so imports what it needs itself.
        import importlib.util
        import sys

        return sys.executable, sys.version.split()[0], importlib.util.find_spec("omnigraph") is not None

    try:
        ((executable, version, found),) = context.parallelize([0], 1).map(describe).collect()
    except Exception as error:
        lines = [line.strip() for line in str(error).splitlines() if "PYTHON_VERSION_MISMATCH" in line]
        if not lines:
            raise
        raise SparkUnavailable(
            f"the Spark workers of {context.master} run `{context.pythonExec}`, and that is another Python than this "
            f"process runs, which is {sys.executable} (Python {sys.version.split()[0]}): {lines[0]}. Name the same "
            "version for the workers: the setting spark.pyspark.python, or the variable PYSPARK_PYTHON, before the "
            "session starts."
        ) from error
    return executable, version, found
