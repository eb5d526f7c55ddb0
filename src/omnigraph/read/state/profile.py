"""What really happened in a run: rows and time of each step, and the form that was chosen for each expansion."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field


@dataclass(slots=True)
class StepRecord:
    """One step of a run. A step inside `not { }` may run more than once; its figures add up."""

    rows: int = 0
    seconds: float = 0.0
    note: str = ""


@dataclass(slots=True)
class Profile:
    """Records by step. Steps are known by identity, since two equal steps are still two steps."""

    records: dict[int, StepRecord] = field(default_factory=dict)
    planning_seconds: float = 0.0
    total_seconds: float = 0.0
    result_rows: int | None = None
    peak_bytes: int = 0

    @contextmanager
    def step(self, step: object) -> Iterator[StepRecord]:
        """Time a step."""
        record = self.records.setdefault(id(step), StepRecord())
        started = time.perf_counter()
        try:
            yield record
        finally:
            record.seconds += time.perf_counter() - started
