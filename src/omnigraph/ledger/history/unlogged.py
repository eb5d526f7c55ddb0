"""Commits of `main` that are published and acknowledged, and not in the commit log yet: they are logged together.

To log each small write before it is acknowledged takes a third of its time, and the log is derived: opening a graph for
writing completes it for `main`, so a process that dies here leaves nothing that would be missed. Whatever in this
process reads the log has these commits logged first; other processes find them at the head of `main`, as after a crash.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable, Sequence

from omnigraph.config import settings
from omnigraph.ledger.history.log_rows import LogEntry

MOST_UNLOGGED = 64
"""When so many wait, the writer logs them itself: the thread that should does not keep up."""

WITH_OTHERS = 12
"""So many times longer commits wait while other processes publish too: each reads what the others have published and
logged before it logs. Four of them that all do so five times a second keep a core busy, and once a second they still
spend a tenth of what the writes take."""

_LONGEST_NAP = 0.1
"""A program that ends waits so long at most before its last commits are logged."""

_logger = logging.getLogger("omnigraph.ledger")


class Unlogged:
    """The commits of one handle that wait to be logged, in the order of their publishes. Safe to share."""

    def __init__(self) -> None:
        self._waiting: list[LogEntry] = []
        self._log: Callable[[Sequence[LogEntry]], object] | None = None
        self._with_others = False
        self._guard = threading.Lock()
        # Held while commits are being logged, so that who wants to read the log waits for them.
        self._logging = threading.RLock()
        self._thread: threading.Thread | None = None
        self._closed = threading.Event()

    def add(self, entry: LogEntry, log: Callable[[Sequence[LogEntry]], object], *, with_others: bool = False) -> None:
        """Have a commit logged by `log`, with others, about when the settings say; `with_others`: other processes
        publish too."""
        with self._guard:
            self._waiting.append(entry)
            self._log = log
            self._with_others = with_others
            many = len(self._waiting) >= MOST_UNLOGGED
            thread = None
            if self._thread is None and not many:
                self._closed.clear()
                # No daemon: a thread that is inside Lance when the interpreter ends takes the process down.
                thread = self._thread = threading.Thread(target=self._log_soon, name="omnigraph-log", daemon=False)
        try:
            if thread is not None:
                thread.start()
        except RuntimeError:
            self._thread, many = None, True
        if many:
            self.flush()

    def flush(self) -> None:
        """Log everything that waits, now. Trouble with the log is told and not raised, by `log`."""
        with self._logging:
            with self._guard:
                waiting, self._waiting = self._waiting, []
            if waiting and self._log is not None:
                self._log(waiting)

    def close(self) -> None:
        """Log what waits, and let the thread end."""
        self._closed.set()
        self.flush()

    def _log_soon(self) -> None:
        while True:
            self._wait()
            try:
                self.flush()
            except Exception as error:
                _logger.warning(
                    "commits are published but not in the commit log yet; the next open adds them: %s", error
                )
            with self._guard:
                if not self._waiting:
                    self._thread = None
                    return

    def _wait(self) -> None:
        """For about as long as the settings say, but no longer than the program runs.

        Whoever logs first logs what other processes have published before too: they had better not all do so at once.
        """
        delay = settings().commit_log_delay * random.uniform(0.5, 1.5)
        began = time.monotonic()
        while threading.main_thread().is_alive():
            # That others are at work may turn out while it waits.
            left = began + delay * (WITH_OTHERS if self._with_others else 1) - time.monotonic()
            if left <= 0 or self._closed.wait(min(left, _LONGEST_NAP)):
                return
