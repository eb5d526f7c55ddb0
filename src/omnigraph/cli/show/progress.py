"""A line that says how far long work is, on a terminal only; programs and pipes see nothing of it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from omnigraph.write.progress import ProgressCallback


@contextmanager
def progress_line(*, shown: bool) -> Iterator[ProgressCallback | None]:
    """A callback for `progress=`: step, records, bytes and rate. None when nothing is to be shown."""
    if not shown or not sys.stderr.isatty():
        yield None
        return
    from omnigraph.write.progress_bar import terminal_bar

    report, close = terminal_bar()
    try:
        yield report
    finally:
        close()
