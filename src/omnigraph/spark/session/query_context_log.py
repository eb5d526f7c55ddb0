"""PySpark's own log of errors in queries: a line of JSON on stderr with all of Java's trace, beside the error itself.

It comes with every error that Spark can place in a frame or a statement, a division by zero in a frame that is loaded
for example. Whoever called gets the error and says what is to be seen of it.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager

LOGGERS = ("DataFrameQueryContextLogger", "SQLQueryContextLogger")


def silence_query_contexts() -> None:
    """For as long as this process lives: its session was built here, and is quiet."""
    for logger in _loggers():
        logger.setLevel(logging.CRITICAL + 1)


@contextmanager
def silent_query_contexts() -> Iterator[None]:
    """For the block, in this thread: the session may be the caller's own, who is to hear of other work of theirs."""
    here = threading.get_ident()

    def from_elsewhere(record: logging.LogRecord) -> bool:
        return record.thread != here

    loggers = _loggers()
    for logger in loggers:
        logger.addFilter(from_elsewhere)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeFilter(from_elsewhere)


def _loggers() -> list[logging.Logger]:
    from pyspark.logger import PySparkLogger

    # By PySpark's own way: a plain logger of that name would not take the arguments that PySpark gives it.
    return [PySparkLogger.getLogger(name) for name in LOGGERS]
