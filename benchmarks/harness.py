"""Side-by-side measurement: both sides are run in turns in one process, and ratios are what is reported."""

from __future__ import annotations

import gc
import statistics
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Row:
    """One comparison. `ratio` is ours over theirs: below 1 we are faster. `goal` says what was aimed at, in words."""

    name: str
    ours_seconds: float
    other_seconds: float | None
    ratio: float | None
    goal: str
    spread: float = 0.0
    """How far apart the middle half of our own times lies, as a part of their median."""
    unit: str = "s"
    """What is compared: seconds, unless a row is about something else (`MB`)."""


def measure(
    name: str,
    ours: Callable[[], Any],
    other: Callable[[], Any] | None,
    goal: str,
    *,
    repeats: int = 9,
    warm_up: int = 10,
    patience: float = 20.0,
) -> Row:
    """Run both in turns, and tell the medians of their times and of the ratios.

    Slow ones are repeated less often: for `patience` seconds, and three times at least.
    """
    for action in (ours, other):
        if action is not None:
            _warm(action, warm_up)
    our_times: list[float] = []
    other_times: list[float] = []
    started = time.perf_counter()
    for done in range(repeats):
        if done >= 3 and time.perf_counter() - started > patience:
            break
        # A collection leaves the caches of the processor cold: each side starts from there, not only the first.
        gc.collect()
        our_times.append(seconds(ours))
        if other is not None:
            gc.collect()
            other_times.append(seconds(other))
    our_median = statistics.median(our_times)
    quartiles = statistics.quantiles(our_times, n=4) if len(our_times) > 1 else [our_median] * 3
    spread = (quartiles[2] - quartiles[0]) / our_median if our_median else 0.0
    if not other_times:
        return Row(name, our_median, None, None, goal, spread)
    # Of each pair of turns, not of the medians: a machine that is slow for a while is slow for both sides of a pair.
    ratio = statistics.median(here / there for here, there in zip(our_times, other_times, strict=True))
    return Row(name, our_median, statistics.median(other_times), ratio, goal, spread)


def _warm(action: Callable[[], Any], times: int) -> None:
    """Run something until its caches are what they are in a process that lives on; slow ones only twice."""
    spent = 0.0
    for done in range(times):
        if done >= 2 and spent > 1.0:
            return
        spent += seconds(action)


def seconds(action: Callable[[], Any]) -> float:
    """How long one call takes."""
    started = time.perf_counter()
    action()
    return time.perf_counter() - started


def shown(row: Row) -> Row:
    """The row, told at once: what runs for minutes should not lose everything when it is stopped."""
    print(_line(row), file=sys.stderr, flush=True)
    return row


def markdown(rows: Iterable[Row]) -> str:
    """The rows as one Markdown table."""
    out = ["| what | ours | theirs | ratio | spread | goal |", "|---|---:|---:|---:|---:|---|"]
    out += map(_line, rows)
    return "\n".join(out) + "\n"


def _line(row: Row) -> str:
    theirs = "" if row.other_seconds is None else _amount(row.other_seconds, row.unit)
    ratio = "" if row.ratio is None else f"{row.ratio:.2f}"
    ours = _amount(row.ours_seconds, row.unit)
    return f"| {row.name} | {ours} | {theirs} | {ratio} | ±{row.spread:.0%} | {row.goal} |"


def _amount(value: float, unit: str) -> str:
    if unit != "s":
        return f"{value:.0f} {unit}"
    return f"{value * 1000:.2f} ms" if value < 1 else f"{value:.2f} s"
