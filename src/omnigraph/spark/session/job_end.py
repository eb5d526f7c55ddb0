"""The end of a job before its time: nothing of it may write any more when what it wrote is removed."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from omnigraph.spark.session.progress import Job

CANCEL_SECONDS = 20.0
"""How long to wait for the tasks of a cancelled job to end."""

KILL_MARGIN = 1.0
"""How long a worker of a killed task may take to be gone after Spark kills it, in seconds."""

_logger = logging.getLogger("omnigraph.spark")


def end_job(job: Job, *, were_running: bool) -> None:
    """Cancel the job and wait, for a bounded time, until nothing is written any more. A JVM that is gone has ended it
    already."""
    job.cancel()
    try:
        if not job.session.sparkContext.statusTracker().getJobIdsForGroup(job.group):
            return  # refused before anything ran
        _wait_for_tasks(job)
        if were_running:
            _wait_for_workers(job)
    except Exception as error:
        _logger.debug("the end of the tasks was not seen: %s", error)


def _wait_for_tasks(job: Job) -> None:
    tracker = job.session.sparkContext.statusTracker()
    deadline = time.monotonic() + CANCEL_SECONDS
    while time.monotonic() < deadline:
        if not set(tracker.getJobIdsForGroup(job.group)) & set(tracker.getActiveJobsIds()):
            return
        time.sleep(0.05)


def _wait_for_workers(job: Job) -> None:
    """Until the Python workers of killed tasks, which nobody can see, have been killed too."""
    context = job.session.sparkContext
    wait = context.getConf().get("spark.python.task.killTimeout", "2s")
    parsed = context._jvm.org.apache.spark.network.util.JavaUtils.timeStringAsMs(wait)
    time.sleep(parsed / 1000 + KILL_MARGIN)
