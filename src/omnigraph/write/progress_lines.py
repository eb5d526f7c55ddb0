"""Progress where there is no terminal: a line now and then, for a log or the output of a scheduled job."""

from __future__ import annotations

import time
from collections.abc import Callable

from omnigraph.write.progress import Progress, ProgressCallback
from omnigraph.write.progress_bar import size_text

LINE_EVERY = 10.0
"""Seconds from one line to the next."""


def lines(tell: Callable[[str], object], every: float = LINE_EVERY, *, only_if_long: bool = False) -> ProgressCallback:
    """A callback that tells a line now and then and one at the end, and first where the job can be watched.

    `only_if_long`: nothing at all about work that is over before the first line is due.
    """
    last = time.monotonic()
    begun = not only_if_long
    watched = False

    def report(now: Progress) -> None:
        nonlocal last, begun, watched
        due = time.monotonic() - last >= every
        begun = begun or due
        if not begun:
            return
        if now.ui is not None and not watched:
            watched = True
            tell(f"{now.job}: watch it at {now.ui}")
        if now.finished or due:
            last = time.monotonic()
            tell(describe(now))

    return report


def describe(now: Progress) -> str:
    """One line for people."""
    ending = f"done in {now.seconds:.1f} s" if now.finished else now.step or "starting"
    rates = f"{now.records_per_second:,.0f} records/s, {size_text(now.bytes_per_second)}/s"
    return (
        f"{now.job}: {ending}, {now.records:,} records, {size_text(now.bytes)}, {rates}, "
        f"tasks {now.tasks_done}/{now.tasks_total}"
    )
