"""How far a job has come, for a bar on a terminal or a caller's own display."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Progress:
    """One look at a job. In process there is one task; on Spark a task that was run twice counts twice.

    `ui` is where Spark shows the job, if it does.
    """

    job: str
    step: str
    records: int
    bytes: int
    tasks_done: int
    tasks_total: int
    seconds: float
    finished: bool = False
    records_total: int | None = None
    """How many records there are in all, where that is known before."""
    ui: str | None = None

    @property
    def records_per_second(self) -> float:
        """Records over the whole time of the job."""
        return self.records / self.seconds if self.seconds > 0 else 0.0

    @property
    def bytes_per_second(self) -> float:
        """Bytes over the whole time of the job."""
        return self.bytes / self.seconds if self.seconds > 0 else 0.0


ProgressCallback = Callable[[Progress], None]


class ProgressReporter:
    """Counts records and tells the callback, if there is one."""

    def __init__(self, job: str, callback: ProgressCallback | None, records_total: int | None = None) -> None:
        self._job = job
        self._callback = callback
        self._started = time.monotonic()
        self._records_total = records_total
        self.records = 0
        self.bytes = 0

    def tell(self, step: str, *, records: int = 0, bytes: int = 0, finished: bool = False) -> None:
        """Note what was done and report it."""
        self.records += records
        self.bytes += bytes
        if self._callback is not None:
            seconds = time.monotonic() - self._started
            total = self._records_total
            now = Progress(self._job, step, self.records, self.bytes, int(finished), 1, seconds, finished, total)
            self._callback(now)
