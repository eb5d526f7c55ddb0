"""Compaction and index builds over executors: planned and committed on the driver, the work done by tasks.

Storage has the plans, the tasks and the commits as plain functions; this only says where the tasks run.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from omnigraph.maintain.optimize.workers import Workers
from omnigraph.spark.session.progress import run_job
from omnigraph.spark.session.session import spark_session
from omnigraph.spark.spread import spread
from omnigraph.storage.layout.compaction import CompactionWork, run_compaction_task
from omnigraph.storage.layout.indexes import IndexWork, run_index_task

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def run_compaction_tasks(session: SparkSession, work: Sequence[CompactionWork], source: str | None = None) -> list[str]:
    """Run planned tasks on the executors; the results, for `staged_compaction`. `source`: what is compacted."""
    with run_job(session, "compact", source=source) as job:
        job.step("rewriting fragments")
        return spread(session, run_compaction_task, work)


def run_index_tasks(session: SparkSession, work: Sequence[IndexWork], source: str | None = None) -> list[bytes]:
    """Build planned segments on the executors; the results, for `stage_index_segments`. `source`: what they are of."""
    with run_job(session, "index", source=source) as job:
        job.step("building index segments")
        return spread(session, run_index_task, work)


def spark_workers(session: SparkSession | None = None, *, source: str | None = None) -> Workers:
    """Maintenance on executors: compaction tasks and index segments spread over the cores of the session."""
    chosen = session or spark_session()
    return Workers(
        "spark",
        lambda work: run_compaction_tasks(chosen, work, source),
        lambda work: run_index_tasks(chosen, work, source),
        parts=chosen.sparkContext.defaultParallelism,
    )
