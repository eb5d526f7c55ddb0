"""How far long work is, on standard error: a bar on a terminal, a line every ten seconds elsewhere."""

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
    if not shown:
        yield None
        return
    if not sys.stderr.isatty():
        from omnigraph.write.progress_lines import lines

        yield lines(_line, only_if_long=True)
        return
    from omnigraph.write.progress_bar import terminal_bar

    report, close = terminal_bar()
    try:
        yield report
    finally:
        close()


def _line(text: str) -> None:
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


def time_taken(records: int, seconds: float) -> str:
    """What a load took and its rate; nothing where it was over in a moment."""
    return f", {records:,} records in {seconds:.1f} s, {records / seconds:,.0f} a second" if seconds >= 1 else ""
