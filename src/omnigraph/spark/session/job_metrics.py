"""What a job took, for its result: records, bytes, seconds per step, tasks, and what they shuffled.

Spark keeps the figures of stages for its UI, whether that is shown or not.
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Any

from omnigraph.spark.session.progress import tasks_of
from omnigraph.write.results import LoadMetrics

if TYPE_CHECKING:
    from omnigraph.spark.session.progress import Job

_SETTLE_MILLISECONDS = 2000
_logger = logging.getLogger(__name__)


def metrics_of(job: Job) -> LoadMetrics:
    """The figures of a job that is done."""
    now = time.monotonic()
    ends = [*(began for _, began in job.steps[1:]), now]
    steps: dict[str, float] = {}
    # A load that was there already takes no step at all.
    for (name, began), end in zip(job.steps, ends, strict=False):
        steps[name] = steps.get(name, 0.0) + end - began
    done, _ = tasks_of(job.session.sparkContext.statusTracker(), job.group)
    return LoadMetrics(
        records=job.records.value,
        bytes=job.bytes.value,
        seconds=now - job.started,
        steps=tuple(steps.items()),
        tasks=done,
        shuffle_bytes=_shuffled(job),
    )


def _shuffled(job: Job) -> int | None:
    """Bytes that tasks of this job wrote for others. None when Spark does not tell, which fails no load."""
    context: Any = job.session.sparkContext
    try:
        jvm = context._jsc.sc()
        # Figures come by way of a queue.
        jvm.listenerBus().waitUntilEmpty(_SETTLE_MILLISECONDS)
        tracker, store = context.statusTracker(), jvm.statusStore()
        stages = {stage for one in tracker.getJobIdsForGroup(job.group) for stage in tracker.getJobInfo(one).stageIds}
        return sum(int(store.lastStageAttempt(stage).shuffleWriteBytes()) for stage in stages)
    except Exception as error:
        _logger.debug("Spark did not tell what was shuffled: %s", error)
        return None
