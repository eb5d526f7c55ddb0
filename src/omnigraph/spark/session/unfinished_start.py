"""No JVM outlives a start that did not come to its end.

PySpark waits for its JVM in a directory that it removes when the wait is interrupted. The JVM, some tenths of a second
later, cannot write to it, and then neither serves anybody nor ends. PySpark does not hand the process out before the
wait is over, so that it is noted where PySpark starts it.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def ended_unless_it_starts() -> Iterator[None]:
    """End the JVM that PySpark starts in the block, if the block is left by an error or by Ctrl-C."""
    from pyspark import java_gateway

    started: list[subprocess.Popen[Any]] = []
    popen = java_gateway.Popen

    def noted(*arguments: Any, **keywords: Any) -> subprocess.Popen[Any]:
        process: subprocess.Popen[Any] = popen(*arguments, **keywords)
        started.append(process)
        return process

    java_gateway.Popen = noted
    try:
        yield
    except BaseException:
        for process in started:
            process.kill()
            process.wait()
        raise
    finally:
        java_gateway.Popen = popen
