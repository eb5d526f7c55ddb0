"""A line that says how far long work is, on a terminal only; programs and pipes see nothing of it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

Report = Callable[[Any], None]


@contextmanager
def progress_line(what: str, *, shown: bool) -> Iterator[Report | None]:
    """A callback for `progress=`: step, records and rate. None when nothing is to be shown."""
    if not shown or not sys.stderr.isatty():
        yield None
        return
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    from omnigraph.cli.output import console

    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=console(stderr=True), transient=True) as bar:
        task = bar.add_task(what)

        def report(state: Any) -> None:
            rate = f"{state.records_per_second:,.0f}/s" if state.records else ""
            counted = f"{state.records:,} records {rate}" if state.records else ""
            bar.update(task, description=f"{what}: {state.step} {counted}".strip())

        yield report
