"""Ctrl-C while a Spark job runs: one `KeyboardInterrupt`, and no tracebacks of the libraries in between.

PySpark's own handler talks to the JVM from inside whatever call to it was interrupted, which fails, and cancels the
jobs of everybody; Py4J logs what happened to it with the trace. The job group is cancelled by `run_job` instead.
"""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn


@contextmanager
def plain_interrupts() -> Iterator[None]:
    """Replace PySpark's handler for the duration of the block; a handler of the caller's own stays."""
    in_main_thread = threading.current_thread() is threading.main_thread()
    before = signal.getsignal(signal.SIGINT) if in_main_thread else None
    if not getattr(before, "__module__", "").startswith("pyspark."):
        yield
        return
    root = logging.getLogger()
    silent = logging.NullHandler()

    def interrupt(_: int, frame: FrameType | None) -> NoReturn:
        root.addFilter(_not_from_py4j)
        # Without any handler Python would set one up for the whole process as soon as Py4J logs.
        if not root.handlers:
            root.addHandler(silent)
        raise KeyboardInterrupt

    signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        root.removeFilter(_not_from_py4j)
        root.removeHandler(silent)


def _not_from_py4j(record: logging.LogRecord) -> bool:
    return "py4j" not in record.pathname
