"""Upkeep on executors, whose jobs are run by threads: Ctrl-C in the main thread ends them, and no others."""

from __future__ import annotations

import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from omnigraph.spark.jobs.compact import spark_workers

pytestmark = pytest.mark.spark


class SlowToUnpack:
    """Work that keeps its task busy for a minute."""

    def __reduce__(self) -> tuple[Any, ...]:
        return time.sleep, (60,)


def test_an_interrupt_ends_the_jobs_of_upkeep_and_no_others(spark: Any) -> None:
    tracker, answers = spark.sparkContext.statusTracker(), []

    def seconds_of_work(number: int) -> int:
        time.sleep(5)
        return number

    def somebody_elses() -> None:
        answers.append(spark.sparkContext.parallelize([7], 1).map(seconds_of_work).collect())

    def press() -> None:
        while len(tracker.getActiveJobsIds()) < 2:
            time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGINT)

    workers = spark_workers(spark)
    threads = [threading.Thread(target=work) for work in (somebody_elses, press)]
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    started = time.monotonic()
    try:
        with pytest.raises(KeyboardInterrupt), workers.guarded(), ThreadPoolExecutor(1) as pool:  # noqa: PT012
            for thread in threads:
                thread.start()
            pool.submit(workers.compact, [SlowToUnpack()]).result()  # type: ignore[list-item]
    finally:
        signal.signal(signal.SIGINT, before)
    for thread in threads:
        thread.join()
    assert time.monotonic() - started < 40, "it waited for the end of the job"
    assert answers == [[7]]
