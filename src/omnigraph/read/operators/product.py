"""The first rows of a product in their order, without making the product.

The order of rows is lexicographic: the rows that come first are made of the first rows of the part that the leading
keys look at. So that part is walked in its own order, a stretch at a time, joined with the others, and the walk ends
as soon as there are enough rows. Where the first key looks at several parts at once nothing can be left out, but no
more rows are held than are wanted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from omnigraph.query import ir
from omnigraph.query.typing import variables_of
from omnigraph.read.codes.arrays import paired
from omnigraph.read.codes.order import total_order
from omnigraph.read.matching.join import combine
from omnigraph.read.operators.sort import key_codes
from omnigraph.read.plan.steps import CombineStep, FilterStep, InnerStep, Step
from omnigraph.read.state.frame import Frame
from omnigraph.read.state.run_state import Run

STRETCH = 1 << 18
"""Pairs that are made at a time."""


@dataclass(frozen=True, slots=True)
class Product:
    """The steps of a block whose rows are a product, taken apart."""

    first: tuple[Step, ...]
    others: tuple[CombineStep, ...]
    conditions: tuple[Step, ...]


def product_of(steps: tuple[Step, ...]) -> Product | None:
    """The product that a block ends in, when nothing but conditions comes after it."""
    at = next((at for at, step in enumerate(steps) if isinstance(step, CombineStep) and not step.on), None)
    if at is None:
        return None
    others: list[CombineStep] = []
    conditions: list[Step] = []
    for step in steps[at:]:
        if isinstance(step, CombineStep) and not step.on:
            others.append(step)
        elif isinstance(step, FilterStep | InnerStep):
            conditions.append(step)
        else:
            return None
    return Product(steps[:at], tuple(others), tuple(conditions))


def first_rows(
    run: Run, parts: Sequence[Frame], keys: Sequence[ir.SortKey], count: int, kept: Callable[[Frame], Frame]
) -> Frame:
    """The first `count` rows of the product for which all conditions hold (`kept`), sorted by `keys`."""
    size = prod(part.length for part in parts)
    if size <= STRETCH or not keys:
        return _sorted(run, kept(_joined(run, parts)), keys, count)
    reads = variables_of(keys[0].expr)
    lead = next((at for at, part in enumerate(parts) if reads <= part.bindings.keys()), None)
    if lead is None:
        return _best_rows(run, parts, keys, count, kept)
    others = [part for at, part in enumerate(parts) if at != lead]
    leading = 1
    while leading < len(keys) and variables_of(keys[leading].expr) <= parts[lead].bindings.keys():
        leading += 1
    found: Frame | None = None
    for unit in _stretches(run, parts[lead], keys[:leading], prod(part.length for part in others)):
        run.stop.check()
        wanted = count - (0 if found is None else found.length)
        if unit.equal:
            rows = first_rows(run, [unit.rows, *others], keys[leading:], wanted, kept)
        else:
            rows = _sorted(run, kept(_joined(run, [unit.rows, *others])), keys, wanted)
        found = rows if found is None else found.append(rows)
        if found.length >= count:
            return found.slice(0, count)
    return found if found is not None else kept(_joined(run, parts))


def _best_rows(
    run: Run, parts: Sequence[Frame], keys: Sequence[ir.SortKey], count: int, kept: Callable[[Frame], Frame]
) -> Frame:
    """All pairs have to be looked at; only the best so far are held."""
    longest = max(range(len(parts)), key=lambda at: parts[at].length)
    others = [part for at, part in enumerate(parts) if at != longest]
    stretch = max(1, STRETCH // max(prod(part.length for part in others), 1))
    found: Frame | None = None
    for start in range(0, parts[longest].length, stretch):
        run.stop.check()
        unit = parts[longest].slice(start, min(start + stretch, parts[longest].length))
        rows = kept(_joined(run, [unit, *others]))
        found = _sorted(run, rows if found is None else found.append(rows), keys, count)
    return found if found is not None else kept(_joined(run, parts))


@dataclass(frozen=True, slots=True)
class _Unit:
    """A stretch of a part. `equal`: all its rows have equal keys, so the keys that follow decide among them."""

    rows: Frame
    equal: bool


def _stretches(run: Run, part: Frame, keys: Sequence[ir.SortKey], width: int) -> Iterator[_Unit]:
    """The part in the order of the keys. Rows with equal keys are never parted."""
    codes = [key_codes(run, part, key) for key in keys]
    order = total_order(codes)
    key = codes[0]
    for more in codes[1:]:
        key = paired(key, more)
    if order is not None:
        part, key = part.take(order), key[order]
    starts = np.concatenate(([0], np.flatnonzero(key[1:] != key[:-1]) + 1, [part.length]))
    stretch = max(1, STRETCH // max(width, 1))
    at = 0
    while at < part.length:
        group = int(np.searchsorted(starts, at, side="right"))
        last = max(group, int(np.searchsorted(starts, at + stretch, side="right")) - 1)
        stop = int(starts[last])
        yield _Unit(part.slice(at, stop), last == group)
        at = stop


def _joined(run: Run, parts: Sequence[Frame]) -> Frame:
    joined = parts[0]
    for part in parts[1:]:
        joined = combine(run, joined, part, ())
    return joined


def _sorted(run: Run, frame: Frame, keys: Sequence[ir.SortKey], count: int) -> Frame:
    if frame.length < 2 or not keys:
        return frame.slice(0, min(count, frame.length))
    order = total_order([key_codes(run, frame, key) for key in keys], count)
    return frame if order is None else frame.take(order)
