"""Where the heavy part of maintenance runs: in this process, or on Spark's executors. The meaning is the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

from omnigraph.storage.constants import ROWS_PER_FILE
from omnigraph.storage.layout.compaction import CompactionOptions, CompactionWork, run_compaction_task
from omnigraph.storage.layout.indexes import IndexWork, run_index_task

SMALLEST_TARGET = ROWS_PER_FILE // 4
"""Fragments of fewer rows are not worth a task of their own: to start one takes a tenth of a second."""


@dataclass(frozen=True, slots=True)
class Workers:
    """Runs planned compaction and index tasks; `parts` is how many of them run at once. The work is done inside of
    `guarded`, by threads of its own: what an interrupt has to end, it ends."""

    engine: str
    compact: Callable[[Sequence[CompactionWork]], list[str]]
    index: Callable[[Sequence[IndexWork]], list[bytes]]
    parts: int = 1
    guarded: Callable[[], AbstractContextManager[None]] = nullcontext

    def options_for(self, rows: int) -> CompactionOptions:
        """How a table of this many rows is compacted, so that every worker has something to do.

        The target is halved in whole steps: if it followed the number of rows, fragments that were full yesterday
        would be small today, and each run would rewrite the whole table.
        """
        target = ROWS_PER_FILE
        while self.parts > 1 and target > SMALLEST_TARGET and rows < target * self.parts:
            target //= 2
        return CompactionOptions(target_rows=target)


def local_workers() -> Workers:
    """One task after the other, here."""
    return Workers(
        "local",
        lambda work: [run_compaction_task(task) for task in work],
        lambda work: [run_index_task(task) for task in work],
    )
