"""Ctrl-C while Spark starts: nothing lives on, and no tracebacks of the libraries in between.

PySpark waits for its JVM in a directory that it removes when the wait is interrupted. The JVM, some tenths of a second
later, cannot write to it, and then neither serves anybody nor ends. PySpark does not hand the process out before the
wait is over, so that it is noted where PySpark starts it.
"""

from __future__ import annotations

import logging
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from omnigraph.spark.session.interrupts import py4j_keeps_silent

PATIENCE = 10.0
"""Seconds that a JVM has to remove its directories and end."""


@contextmanager
def undone_if_interrupted() -> Iterator[None]:
    """Start Spark in the block. Left by Ctrl-C, it ends the JVM that it started, and the next start makes another."""
    from pyspark import java_gateway

    started: list[subprocess.Popen[Any]] = []
    popen = java_gateway.Popen

    def noted(*arguments: Any, **keywords: Any) -> subprocess.Popen[Any]:
        process: subprocess.Popen[Any] = popen(*arguments, **keywords)
        started.append(process)
        return process

    java_gateway.Popen = noted
    try:
        with py4j_keeps_silent(logging.getLogger()):
            try:
                yield
            except Exception:
                raise
            except BaseException:
                for process in started:
                    _end(process)
                if started:
                    _forget()
                raise
    finally:
        java_gateway.Popen = popen


def _end(process: subprocess.Popen[Any]) -> None:
    process.terminate()
    with suppress(subprocess.TimeoutExpired):
        process.wait(PATIENCE)
    process.kill()
    process.wait()


def _forget() -> None:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    SparkContext._gateway = SparkContext._jvm = SparkContext._active_spark_context = None
    SparkSession._instantiatedSession = None
