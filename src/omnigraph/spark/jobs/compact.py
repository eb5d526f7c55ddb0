"""Compaction and index builds over executors: planned and committed on the driver, the work done by tasks.

Storage has the plans, the tasks and the commits as plain functions; this only says where the tasks run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING

from omnigraph.errors import SparkJobFailed
from omnigraph.maintain.optimize.workers import Workers
from omnigraph.spark.session.interrupts import plain_interrupts
from omnigraph.spark.session.progress import Job, run_job
from omnigraph.spark.session.session import spark_session
from omnigraph.spark.spread import spread
from omnigraph.storage.layout.compaction import CompactionWork, run_compaction_task
from omnigraph.storage.layout.indexes import IndexWork, run_index_task

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class _Running:
    """The jobs of one run, which threads of its own wait for while the main thread waits for them."""

    def __init__(self, session: SparkSession) -> None:
        self._context = session.sparkContext
        self._jobs: set[Job] = set()
        self._is_over = False

    @contextmanager
    def guarded(self) -> Iterator[None]:
        """An interrupt ends the jobs of this run, and no others of the session."""
        with plain_interrupts(self._context, self._cancel) as interrupts:
            try:
                yield
            except Exception as error:
                if interrupts.seen:
                    raise KeyboardInterrupt from error
                raise

    @contextmanager
    def known(self, job: Job) -> Iterator[None]:
        """Have a job ended along with the others."""
        self._jobs.add(job)
        try:
            if self._is_over:
                raise SparkJobFailed("interrupted")
            yield
        finally:
            self._jobs.discard(job)

    def _cancel(self) -> None:
        self._is_over = True
        for job in list(self._jobs):
            job.cancel()


def run_compaction_tasks(
    session: SparkSession, work: Sequence[CompactionWork], source: str | None = None, running: _Running | None = None
) -> list[str]:
    """Run planned tasks on the executors; the results, for `staged_compaction`. `source`: what is compacted."""
    with run_job(session, "compact", source=source) as job, running.known(job) if running else nullcontext():
        job.step("rewriting fragments")
        return spread(session, run_compaction_task, work)


def run_index_tasks(
    session: SparkSession, work: Sequence[IndexWork], source: str | None = None, running: _Running | None = None
) -> list[bytes]:
    """Build planned segments on the executors; the results, for `stage_index_segments`. `source`: what they are of."""
    with run_job(session, "index", source=source) as job, running.known(job) if running else nullcontext():
        job.step("building index segments")
        return spread(session, run_index_task, work)


def spark_workers(session: SparkSession | None = None, *, source: str | None = None) -> Workers:
    """Maintenance on executors: compaction tasks and index segments spread over the cores of the session."""
    chosen = session or spark_session()
    running = _Running(chosen)
    return Workers(
        "spark",
        lambda work: run_compaction_tasks(chosen, work, source, running),
        lambda work: run_index_tasks(chosen, work, source, running),
        parts=chosen.sparkContext.defaultParallelism,
        guarded=running.guarded,
    )
