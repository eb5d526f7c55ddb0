"""What a running job has done so far, for people (a bar, or log lines) and for programs (a callback); and its end.

A job is a Spark job group of its own: Ctrl-C, any failure on the driver and the end of a query's time cancel exactly
that group.
"""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ulid import ULID

from omnigraph.read.state.control import StopSign
from omnigraph.spark.session.connect import refuse_connect
from omnigraph.spark.session.interrupts import plain_interrupts
from omnigraph.spark.session.query_context_log import silent_query_contexts
from omnigraph.write.progress import Progress, ProgressCallback
from omnigraph.write.progress_bar import terminal_bar
from omnigraph.write.progress_lines import LINE_EVERY, lines

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

_logger = logging.getLogger(__name__)
_LOOK_EVERY = 0.25
_STOP_EVERY = 0.1


class Job:
    """A job group in progress. `records` and `bytes` are accumulators that tasks add to; `source` is what it reads,
    `place` where it writes."""

    def __init__(
        self, session: SparkSession, description: str, place: str | None = None, source: str | None = None
    ) -> None:
        self.session = session
        self.description = description
        self.shown = f"omnigraph {description}"
        self.shown += (f" of {source}" if source else "") + (f" into {place}" if place else "")
        self.group = f"omnigraph-{ULID()}"
        self.records = session.sparkContext.accumulator(0)
        self.bytes = session.sparkContext.accumulator(0)
        self.current_step = ""
        self.ui: str | None = session.sparkContext.uiWebUrl
        self.started = time.monotonic()
        self.steps: list[tuple[str, float]] = []
        """When each step began."""
        self.given_up: BaseException | None = None
        """What the caller's callback raised: the job goes no further, as in process."""

    def step(self, name: str) -> None:
        """Name what runs from now on, also where Spark lists its jobs. Called by the thread that runs them."""
        if self.given_up is not None:
            raise self.given_up
        self.current_step = name
        self.steps.append((name, time.monotonic()))
        self.session.sparkContext.setJobDescription(f"{self.shown}: {name}")
        _logger.debug("%s: %s", self.description, name)

    def look(self, *, finished: bool = False) -> Progress:
        """The state of the job now."""
        done, total = tasks_of(self.session.sparkContext.statusTracker(), self.group)
        return Progress(
            job=self.description,
            step=self.current_step,
            records=self.records.value,
            bytes=self.bytes.value,
            tasks_done=done,
            tasks_total=total,
            seconds=time.monotonic() - self.started,
            finished=finished,
            ui=self.ui,
        )

    def count_anew(self) -> None:
        """Forget what was counted: the work begins again."""
        self.records.value = self.bytes.value = 0

    def cancel(self) -> None:
        """Stop every task of this job; other jobs of the session go on."""
        try:
            self.session.sparkContext.cancelJobGroup(self.group)
        except Exception as error:
            # A JVM that is gone has no tasks; what made somebody cancel is the failure to tell.
            _logger.debug("%s was not cancelled: %s", self.group, error)


@contextmanager
def run_job(
    session: SparkSession,
    description: str,
    progress: ProgressCallback | bool | None = None,
    *,
    place: str | None = None,
    source: str | None = None,
) -> Iterator[Job]:
    """Run Spark work of the calling thread as one job group, reporting on it until it ends.

    Spark shows its jobs as what they are for, `source` and `place` included; the caller's own group comes back
    afterwards.
    `progress`: a callback; True for a bar on a terminal and log lines elsewhere; None or False for silence. What a
    callback raises ends the work like any failure of it, unless the work is done: that is logged.
    """
    refuse_connect(session)
    context = session.sparkContext
    before = _properties(context)
    job = Job(session, description, place, source)
    context.setJobGroup(job.group, job.shown, interruptOnCancel=True)
    done = threading.Event()
    watcher: threading.Thread | None = None
    callback, close = _reporter(progress)
    if callback is not None:
        watcher = threading.Thread(target=_watch, args=(job, callback, done), name=f"{job.group}-progress", daemon=True)
        watcher.start()
    try:
        with plain_interrupts(context, job.cancel) as interrupts, silent_query_contexts():
            try:
                yield job
            except BaseException as error:
                job.cancel()
                if interrupts.seen and not isinstance(error, KeyboardInterrupt):
                    raise KeyboardInterrupt from error
                if job.given_up is not None:
                    raise job.given_up from None
                raise
            finally:
                _restore(context, before)
    finally:
        done.set()
        if watcher is not None:
            watcher.join()
        close()
    if job.given_up is not None:
        _logger.warning("%s is done; its progress callback failed: %r", job.description, job.given_up)


@contextmanager
def stopped_by(sign: StopSign, job: Job) -> Iterator[None]:
    """Cancel the job when its query has to stop, and say why, instead of that a job was cancelled."""
    if not sign.can_come:
        yield
        return
    done = threading.Event()
    watcher = threading.Thread(target=_cancel_at, args=(sign, job, done), name=f"{job.group}-stop", daemon=True)
    watcher.start()
    try:
        yield
    except Exception:
        sign.check()
        raise
    finally:
        done.set()
        watcher.join()


def _cancel_at(sign: StopSign, job: Job, done: threading.Event) -> None:
    while not done.wait(_STOP_EVERY):
        if sign.is_up:
            _cancel_until(done, job)


def _cancel_until(done: threading.Event, job: Job) -> None:
    # Work may be several jobs, and cancelling says nothing about those that have not begun: so again and again.
    while not done.is_set():
        job.cancel()
        done.wait(_STOP_EVERY)


def _properties(context: SparkContext) -> Any:
    """The properties that jobs of this thread get, among them the caller's own job group."""
    return context._jsc.sc().getLocalProperties().clone()


def _restore(context: SparkContext, properties: Any) -> None:
    # What this follows may be the end of the JVM, and that is the failure to tell.
    try:
        context._jsc.sc().setLocalProperties(properties)
    except Exception as error:
        _logger.debug("the properties of the thread were not restored: %s", error)


def _watch(job: Job, callback: ProgressCallback, done: threading.Event) -> None:
    finished = False
    while not finished:
        finished = done.wait(_LOOK_EVERY)
        try:
            now = job.look(finished=finished)
        except Exception as error:
            # A JVM that is gone has no progress, and its end is told by whoever waits for the job.
            _logger.debug("%s is not watched any more: %s", job.group, error)
            return
        try:
            callback(now)
        except BaseException as error:
            job.given_up = error
            _cancel_until(done, job)
            return


def tasks_of(tracker: Any, group: str) -> tuple[int, int]:
    """Finished and known tasks. Stages that a finished job skipped (their shuffle was there already) do not count."""
    done = total = 0
    for job_id in tracker.getJobIdsForGroup(group):
        job = tracker.getJobInfo(job_id)
        for stage in filter(None, (tracker.getStageInfo(stage_id) for stage_id in (job.stageIds if job else ()))):
            done += stage.numCompletedTasks
            total += stage.numCompletedTasks if job.status == "SUCCEEDED" else stage.numTasks
    return done, total


def _reporter(progress: ProgressCallback | bool | None) -> tuple[ProgressCallback | None, Callable[[], None]]:
    if callable(progress):
        return progress, lambda: None
    if not progress:
        return None, lambda: None
    if sys.stderr.isatty():
        return terminal_bar()
    return log_lines(), lambda: None


def log_lines(every: float = LINE_EVERY) -> ProgressCallback:
    """A callback that logs a line now and then, and one at the end."""
    return lines(lambda text: _logger.info("%s", text), every)
