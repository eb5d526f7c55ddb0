"""Ctrl-C while a Spark job runs: one `KeyboardInterrupt`, and no tracebacks of the libraries in between.

PySpark's own handler talks to the JVM from inside whatever call to it was interrupted, which fails, and cancels the
jobs of everybody; Py4J logs what happened to it with the trace. Here it is told what to cancel. That happens before the
interrupt is raised: on its way up it may pass a place where PySpark waits for the end of the job.

Py4J keeps one connection for each thread. Interrupted in the middle of a call, it would send the next call behind the
unfinished one and take the answer to that for its own: the connection is given up, and the next call makes a new one.
"""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from pyspark import SparkContext


@dataclass
class Interrupts:
    """Whether there was one. What fails after it fails because of it."""

    seen: bool = False


@contextmanager
def plain_interrupts(context: SparkContext, cancel: Callable[[], None] = lambda: None) -> Iterator[Interrupts]:
    """Replace PySpark's or Python's handler for the duration of the block; one of the caller's own stays.

    `cancel` ends the jobs of the block; it raises nothing.
    """
    interrupts = Interrupts()
    in_main_thread = threading.current_thread() is threading.main_thread()
    before = signal.getsignal(signal.SIGINT) if in_main_thread else None
    from_pyspark = getattr(before, "__module__", "").startswith("pyspark.")
    if not from_pyspark and before is not signal.default_int_handler:
        yield interrupts
        return
    with ExitStack() as silence:

        def interrupt(_: int, frame: FrameType | None) -> NoReturn:
            interrupts.seen = True
            silence.enter_context(py4j_keeps_silent(logging.getLogger()))
            give_up_connection(context)
            cancel()
            raise KeyboardInterrupt

        signal.signal(signal.SIGINT, interrupt)
        try:
            yield interrupts
        finally:
            signal.signal(signal.SIGINT, before)


@contextmanager
def py4j_keeps_silent(root: logging.Logger) -> Iterator[None]:
    """Py4J logs a call that was interrupted with its trace; whoever interrupted it knows."""
    silent = logging.NullHandler()
    root.addFilter(_not_from_py4j)
    # Without any handler Python would set one up for the whole process as soon as Py4J logs.
    if not root.handlers:
        root.addHandler(silent)
    try:
        yield
    finally:
        root.removeFilter(_not_from_py4j)
        root.removeHandler(silent)


def give_up_connection(context: SparkContext) -> None:
    """Close this thread's connection to the JVM, whatever it was in the middle of."""
    client = context._gateway._gateway_client
    connection = client.get_thread_connection()
    if connection is not None:
        connection.close()


def _not_from_py4j(record: logging.LogRecord) -> bool:
    return "py4j" not in record.pathname
