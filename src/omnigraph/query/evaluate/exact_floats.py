"""Sums of floats by group that are exact until they are rounded once, whatever the order of rows.

Each value is cut into pieces on a grid of its group, coarse to fine. Pieces of one grid add up without rounding, in any
order. What is below the finest grid goes through the same again, until nothing is left. So a sum can also be put
together from parts that were made elsewhere: the pieces of the parts are values themselves.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Codes = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

LEVELS = 3
_NEAR_THE_END = 2.0**960
"""From here on a sum on grids could leave what floats hold, though its result does not."""
_IN_REACH = 900
"""Grids of so many powers of two up or down have their anchors well inside of what floats hold."""
_IN_CACHE = 2**16
"""So many numbers, and what is made of them on the way, fit the cache of a processor."""
_SMALLEST = 1074
"""Every float is a whole multiple of two to the power of minus this."""


@dataclass(frozen=True, slots=True)
class Pieces:
    """Floats that add up to the sums of groups exactly: three for each group, and more for some.

    `more` and `groups` are the others and the group that each is of: values near the largest float, which are not added
    up before the end, and what lay below the three grids.
    """

    levels: npt.NDArray[np.float64]
    more: Floats
    groups: Codes


def float_sums(values: Floats, numbers: Codes, sizes: Codes) -> Floats:
    """The sum of each group, rounded once; infinite where it is beyond what floats hold. Values are finite."""
    found = float_pieces(values, numbers, sizes)
    sums = _rounded(*found.levels)
    if len(found.more):
        with_more = np.unique(found.groups)
        order = np.argsort(found.groups, kind="stable")
        parts = np.split(found.more[order], np.searchsorted(found.groups[order], with_more[1:]))
        for group, part in zip(with_more.tolist(), parts, strict=True):
            sums[group] = _exactly([*found.levels[:, group].tolist(), *part.tolist()])
    return sums


def float_pieces(values: Floats, numbers: Codes, sizes: Codes) -> Pieces:
    """What the sums of groups are made of. `sizes` are how many values each group has, or more. Values are finite."""
    count = len(sizes)
    more, groups = [np.empty(0)], [np.empty(0, dtype=np.int64)]
    if len(values) and max(values.max(), -values.min()) >= _NEAR_THE_END:
        near_the_end = np.abs(values) >= _NEAR_THE_END
        more, groups = [values[near_the_end]], [numbers[near_the_end]]
        values, numbers = values[~near_the_end], numbers[~near_the_end]
    rounds = list(_rounds(values, numbers, sizes))
    levels = rounds[0] if rounds else np.zeros((LEVELS, count))
    for finer in rounds[1:]:
        for level in finer:
            there = np.flatnonzero(level)
            more.append(level[there])
            groups.append(there)
    return Pieces(levels, np.concatenate(more), np.concatenate(groups))


def _rounds(values: Floats, numbers: Codes, sizes: Codes) -> Iterator[Floats]:
    """Sums on three grids of each group, as often as something is left below them."""
    count = len(sizes)
    while len(values):
        largest = _largest_exponents(values, numbers, count)
        width = 52 - np.frexp(np.maximum(sizes, 2).astype(np.float64))[1]
        grids = np.maximum(largest - width * np.arange(1, LEVELS + 1)[:, np.newaxis], -_SMALLEST)
        totals = np.zeros((LEVELS, count))
        in_reach = int(np.abs(grids).max(initial=0)) < _IN_REACH
        left: list[tuple[Floats, Codes]] = []
        # Pieces add up exactly in any order, so a stretch that fits the processor's cache is taken through all grids.
        for start in range(0, len(values), _IN_CACHE):
            rest, own = values[start : start + _IN_CACHE], numbers[start : start + _IN_CACHE]
            for total, exponents in zip(totals, grids, strict=True):
                pieces = _on_grid(rest, exponents, own) if in_reach else _on_far_grid(rest, exponents, own)
                total += np.bincount(own, weights=pieces, minlength=count)
                rest = rest - pieces
                if not rest.any():
                    break
            else:
                there = np.flatnonzero(rest)
                left.append((rest[there], own[there]))
        yield totals
        values = np.concatenate([rest for rest, _ in left]) if left else np.empty(0)
        numbers = np.concatenate([own for _, own in left]) if left else np.empty(0, dtype=np.int64)


def _on_grid(values: Floats, exponents: Codes, numbers: Codes) -> Floats:
    """Each value rounded to a multiple of two to the power of its group's exponent.

    A float that is so large that its last digit is one step of the grid takes on just those digits of what is added.
    """
    anchors = np.ldexp(1.5, exponents + 52)
    same = bool((exponents == exponents[0]).all())
    anchor = anchors[0] if same else anchors[numbers]
    pieces = values + anchor
    pieces -= anchor
    return np.asarray(pieces)


def _on_far_grid(values: Floats, exponents: Codes, numbers: Codes) -> Floats:
    """As `_on_grid`, slowly, where no float is large enough or a power of two too small."""
    return np.asarray(np.ldexp(np.rint(np.ldexp(values, -exponents[numbers])), exponents[numbers]))


def _largest_exponents(values: Floats, numbers: Codes, count: int) -> Codes:
    """For each group the power of two just above its largest value. Where values of one size are in all groups, a look
    at the first of them is enough: no group can have more than there is."""
    top = np.frexp(max(float(values.max(initial=0.0)), -float(values.min(initial=0.0))))[1]
    largest, exponents = np.zeros(count), np.zeros(count, dtype=np.int64)
    for start in range(0, len(values), _IN_CACHE):
        stretch = slice(start, start + _IN_CACHE)
        np.maximum.at(largest, numbers[stretch], np.abs(values[stretch]))
        exponents = np.frexp(largest)[1].astype(np.int64)
        if bool((exponents == top).all()):
            break
    return exponents


# --- rounding ------------------------------------------------------------------------------------------------------


def _rounded(first: Floats, second: Floats, third: Floats) -> Floats:
    """The sum of three floats, rounded once (Boldo and Melquiond: what is lost on the way is added rounded to odd, so
    that the last rounding sees on which side of a tie the sum lies)."""
    upper, lower = _two_sum(second, third)
    whole, more = _two_sum(first, upper)
    return np.asarray(whole + _odd_sum(more, lower) + 0.0)


def _two_sum(one: Floats, other: Floats) -> tuple[Floats, Floats]:
    """A sum, and exactly what its rounding lost."""
    total = one + other
    back = total - one
    return total, (one - (total - back)) + (other - back)


def _odd_sum(one: Floats, other: Floats) -> Floats:
    """A sum; where it is not exact, that neighbour of it whose last digit is odd."""
    total, lost = _two_sum(one, other)
    even = (total.view(np.int64) & 1) == 0
    towards = np.where(lost > 0, np.inf, -np.inf)
    return np.where((lost != 0) & even, np.nextafter(total, towards), total)


def _exactly(pieces: Sequence[float]) -> float:
    """The sum of a few floats in whole numbers, rounded once."""
    total = 0
    for piece in pieces:
        numerator, denominator = piece.as_integer_ratio()
        total += numerator << (_SMALLEST - denominator.bit_length() + 1)
    try:
        return total / (1 << _SMALLEST)
    except OverflowError:
        return math.inf if total > 0 else -math.inf
