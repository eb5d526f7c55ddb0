"""Progress on a terminal: one line with a bar, the step, records, bytes and rate, which goes when the work is done."""

from __future__ import annotations

from collections.abc import Callable

from omnigraph.write.progress import Progress, ProgressCallback


def terminal_bar() -> tuple[ProgressCallback, Callable[[], None]]:
    """A callback that draws the state of a job on standard error, and a function that takes the line away."""
    from rich.console import Console
    from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    bar = Bar(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(bar_width=20),
        TextColumn("{task.fields[counts]}"),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    task = bar.add_task("", total=None, counts="")
    bar.start()
    watched = False

    def report(now: Progress) -> None:
        nonlocal watched
        if now.ui is not None and not watched:
            watched = True
            bar.console.print(f"{now.job}: watch it at {now.ui}", highlight=False)
        bar.update(
            task,
            description=f"{now.job}: {now.step}",
            # One task says nothing about how much is left.
            total=now.records_total or (now.tasks_total if now.tasks_total > 1 else None),
            completed=now.records if now.records_total else now.tasks_done,
            counts=counted(now),
        )

    return report, bar.stop


def counted(now: Progress) -> str:
    """Records, bytes and rate, as far as they are known yet."""
    parts = []
    if now.records:
        of = f" of {now.records_total:,}" if now.records_total else ""
        parts += [f"{now.records:,}{of} records", f"{now.records_per_second:,.0f}/s"]
    if now.bytes:
        parts.insert(1 if now.records else 0, size_text(now.bytes))
    if now.tasks_total > 1:
        parts.append(f"tasks {now.tasks_done}/{now.tasks_total}")
    return " · ".join(parts)


def size_text(count: float) -> str:
    """A number of bytes for people."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"
