"""Writes the fragments of one table while more rows are still being decoded.

A thread of its own per table feeds Lance from a short queue: writing runs beside decoding, and what waits between the
two is a few batches, however large the input is.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterable, Iterator

import pyarrow as pa

from omnigraph.storage.values import StagedWrite

WAITING_BATCHES = 4
"""Batches between decoding and writing. More would only take memory: the slower side sets the pace."""

Stage = Callable[[Iterable[pa.RecordBatch]], StagedWrite]


class TableWriter:
    """Rows go in by `put`; `finish` gives the staged write with all of them."""

    def __init__(self, name: str, stage: Stage) -> None:
        self._queue: queue.Queue[pa.Table | None] = queue.Queue(WAITING_BATCHES)
        self._stage = stage
        self._staged: StagedWrite | None = None
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name=f"omnigraph-write-{name}", daemon=True)
        self._thread.start()

    def put(self, rows: pa.Table) -> None:
        """Hand over rows; waits while the writer is behind. Raises what the writer met."""
        while True:
            if self._error is not None:
                raise self._error
            try:
                self._queue.put(rows, timeout=0.5)
                return
            except queue.Full:
                continue

    def finish(self) -> StagedWrite:
        """No more rows: wait for the files to be complete."""
        while self._thread.is_alive():
            try:
                self._queue.put(None, timeout=0.5)
                break
            except queue.Full:
                continue
        self._thread.join()
        if self._error is not None:
            raise self._error
        assert self._staged is not None
        return self._staged

    def _run(self) -> None:
        try:
            self._staged = self._stage(self._batches())
        except BaseException as error:  # it is raised again in the thread that puts or finishes
            self._error = error

    def _batches(self) -> Iterator[pa.RecordBatch]:
        while (rows := self._queue.get()) is not None:
            yield from rows.to_batches()
