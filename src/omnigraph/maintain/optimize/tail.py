"""Small commits must not pile up: after a write that leaves many small fragments, the table's tail is compacted.

One thread for each open graph, off the caller's path; writes that come while it works are noted once. Closing the graph
waits for it, so a command-line program compacts at its end. It is `optimize` for one table, with the same sidecar:
dying in the middle costs nothing.

Fragments are brought together in steps: single rows to some thousands, those to some hundred thousand, and so on. Each
row is rewritten once per step, whatever the size of the table.
"""

from __future__ import annotations

import atexit
import logging
import random
import threading
import weakref
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from omnigraph.config import settings
from omnigraph.errors import OmniGraphError
from omnigraph.ledger.commit.intents import TableWrite, WriteIntent
from omnigraph.ledger.snapshots import table_of
from omnigraph.ledger.values import TablePin
from omnigraph.maintain.optimize.optimize import compact_table, optimize
from omnigraph.storage.constants import ROWS_PER_FILE
from omnigraph.storage.layout.compaction import CompactionOptions
from omnigraph.storage.values import TableVersion

if TYPE_CHECKING:
    from omnigraph.ledger.store import GraphStore

STEPS = (4096, 65_536, ROWS_PER_FILE)
"""The sizes in rows up to which fragments count as small, step by step."""

ROWS_IN_THE_WINDOW = 2 * STEPS[0]
"""Rows that may be rewritten while writers wait: some tens of milliseconds."""

IDLE_SECONDS = 2.0
"""How long the thread waits for more to do before it ends."""

PUT_OFF = 0.5
"""While other processes write to the branch too a tail may grow by up to this part more, by chance: tables that are
written to alike have long tails at the same time, and all of their writers would wait for all of the compactions."""

ATTEMPTS = 8
"""How often a writer may be faster before the tail is left to the next write."""

MAINTENANCE_ACTOR = "omnigraph:maintenance"
_logger = logging.getLogger("omnigraph.maintain")


def step_to_take(rows: Sequence[int], most: int) -> int | None:
    """The size that fragments with these numbers of rows should be brought to; None while there are few of each."""
    chosen, lower = None, 0
    for step in STEPS:
        if sum(lower <= count < step for count in rows) > most:
            chosen = step
        lower = step
    return chosen


class TailCompaction:
    """The worker of one open graph. `noted` is called after each commit and returns at once."""

    def __init__(self, store: GraphStore) -> None:
        self._store = store
        self._waiting: dict[tuple[str, str], TableVersion] = {}
        self._put_off: dict[tuple[str, str], float] = {}
        self._changed = threading.Condition()
        self._worker: threading.Thread | None = None
        self._closed = False
        self._at_exit = _close_at_exit(self)
        atexit.register(self._at_exit)

    def noted(self, intent: WriteIntent) -> None:
        """Take note of the tables that a write has just committed to."""
        if not settings().auto_compact_fragments or not intent.changes_data:
            return
        with self._changed:
            if self._closed:
                return
            self._waiting.update({(intent.branch.name, write.table_key): _reached(write) for write in intent.writes})
            if self._waiting and self._worker is None:
                self._worker = threading.Thread(target=self._work, name="omnigraph-tail", daemon=True)
                self._worker.start()
            self._changed.notify()

    def close(self) -> None:
        """Finish what is noted and stop."""
        with self._changed:
            self._closed = True
            self._changed.notify()
            worker = self._worker
        if worker is not None and worker is not threading.current_thread():
            worker.join()
        atexit.unregister(self._at_exit)

    def _work(self) -> None:
        while True:
            with self._changed:
                if not self._waiting and not self._closed:
                    self._changed.wait(IDLE_SECONDS)
                if not self._waiting:
                    # The next write starts another one: an idle graph keeps no thread, and can be forgotten.
                    self._worker = None
                    return
                branch, table_key = next(iter(self._waiting))
                reached = self._waiting.pop((branch, table_key))
            try:
                if self._has_many(branch, table_key, reached):
                    self._put_off.pop((branch, table_key), None)
                    compact_tail(self._store, branch, table_key)
            except (OmniGraphError, OSError) as error:
                # The write is long done; the next one looks again.
                _logger.info("the tail of %s on branch `%s` was not compacted: %s", table_key, branch, error)

    def _has_many(self, branch: str, table_key: str, reached: TableVersion) -> bool:
        """Whether a write left so many fragments that its table is worth looking at as it is now.

        What this process committed is at hand. To look up the newest version reads what other processes published,
        after each write, and mostly for nothing.
        """
        most: float = settings().auto_compact_fragments
        if self._store.queue.is_accompanied(branch):
            most *= 1.0 + self._put_off.setdefault((branch, table_key), random.uniform(0.0, PUT_OFF))
        return len(self._store.tables.fragments(reached)) > most + 1


def compact_tail(store: GraphStore, branch: str, table_key: str) -> None:
    """Compact the small fragments of one table if there are more than the settings allow.

    What is little is committed whatever writers do meanwhile; else a table that is written to all the time would never
    be compacted. What is more is left to any optimize, which gives way to them.
    """
    most = settings().auto_compact_fragments
    for _ in range(ATTEMPTS):
        pin = store.snapshot(branch=branch).tables.get(table_key)
        if not most or pin is None:
            return
        rows = _rows_of_fragments(store, pin)
        step = step_to_take(rows, most)
        if step is None:
            return
        options = CompactionOptions(target_rows=step, deleted_share=1.0)
        if sum(count for count in rows if count < step) > ROWS_IN_THE_WINDOW:
            optimize(store, branch, tables=[table_key], actor=MAINTENANCE_ACTOR, options=options)
            return
        still = partial(_still_takes, store, most, step)
        if compact_table(store, branch, table_key, options, MAINTENANCE_ACTOR, wanted=still):
            return


def _rows_of_fragments(store: GraphStore, pin: TablePin) -> list[int]:
    """The rows of the tail: all fragments but the first, which is spared (see `plan_compaction`)."""
    found = sorted(store.tables.fragments(table_of(pin)), key=lambda fragment: fragment.id)
    return [fragment.physical_rows for fragment in found[1:]]


def _still_takes(store: GraphStore, most: int, step: int, pin: TablePin) -> bool:
    """Whether the table, as it is now, is still to be brought to this size: every process that writes to it notices
    a long tail at about the same time, and one of them is enough."""
    return step_to_take(_rows_of_fragments(store, pin), most) == step


def _reached(write: TableWrite) -> TableVersion:
    """The version that a write committed."""
    return write.line.at(write.line.version + len(write.commits))


def attach(store: GraphStore) -> None:
    """Compact tails after the writes of this store, until it is closed."""
    if store.read_only or not settings().auto_compact_fragments:
        return
    tail = TailCompaction(store)
    store.after_commit.append(tail.noted)
    store.on_close.append(tail.close)


def _close_at_exit(tail: TailCompaction) -> Callable[[], None]:
    """Closes a worker at the end of the program, without keeping its graph alive until then."""
    reference = weakref.ref(tail)

    def close() -> None:
        alive = reference()
        if alive is not None:
            alive.close()

    return close
