"""Where the heavy part of maintenance runs: in this process, or on Spark's executors. The meaning is the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from omnigraph.storage.compaction import CompactionWork, run_compaction_task
from omnigraph.storage.indexes import IndexWork, run_index_task


@dataclass(frozen=True, slots=True)
class Workers:
    """Runs planned compaction and index tasks; `parts` is into how many segments an index build is split."""

    engine: str
    compact: Callable[[Sequence[CompactionWork]], list[str]]
    index: Callable[[Sequence[IndexWork]], list[bytes]]
    parts: int = 1


def local_workers() -> Workers:
    """One task after the other, here."""
    return Workers(
        "local",
        lambda work: [run_compaction_task(task) for task in work],
        lambda work: [run_index_task(task) for task in work],
    )
