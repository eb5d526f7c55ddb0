"""The active session of a thread, in which Spark looks for formats, whatever session a frame is of.

A thread that has not started a session has none, and what is registered would not be found there. The JVM's thread of
the main program can lose its own too: when its connection breaks, the next call comes from another one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def make_active(session: SparkSession) -> None:
    """Have an active session in this thread: this one, if there is none."""
    of_java = session._get_j_spark_session_class(session._jvm)
    if of_java.getActiveSession().isEmpty():
        of_java.setActiveSession(session._jsparkSession)
