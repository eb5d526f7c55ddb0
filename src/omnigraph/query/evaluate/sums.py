"""Sums of groups that do not depend on the order of rows: integers exactly, floats in pieces that add up exactly.

So two plans of one query, and two engines, give the same bits.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.query.functions.kernels.arguments import CannotCompute

Codes = npt.NDArray[np.int64]

LEVELS = 3
EXACT = 2**53
"""Integers up to here are exact as 64-bit floats."""
_STRETCH = 2**20
"""So many numbers of 32 bits add up exactly as floats."""
_NEAR_THE_END = 960
"""Powers of two above which a sum on grids could leave what floats hold, though its result does not."""
_IN_REACH = 900
"""Grids of so many powers of two up or down have their anchors well inside of what floats hold."""
_IN_CACHE = 2**16
"""So many numbers, and what is made of them on the way, fit the cache of a processor."""


def integer_sums(values: pa.Array, groups: Codes, count: int) -> pa.Array:
    """The exact sum of each group, in the type of the values (int64 or uint64). Raises `CannotCompute`."""
    plain = np.asarray(values.to_numpy(zero_copy_only=False))
    if len(plain) == 0:
        return pa.array(np.zeros(count, dtype=np.int64)).cast(values.type)
    largest = max(abs(int(plain.max())), abs(int(plain.min())))
    if largest * len(plain) < EXACT:
        sums = np.bincount(groups, weights=plain, minlength=count)
        return pa.array(sums.astype(np.int64)).cast(values.type)
    low, high = _halves(plain, groups, count)
    high = high + (low >> 32)
    low = low & 0xFFFFFFFF
    unsigned = plain.dtype == np.uint64
    bottom, top = (0, 2**32) if unsigned else (-(2**31), 2**31)
    if bool(np.any((high < bottom) | (high >= top))):
        raise CannotCompute(f"a sum that does not fit {'U64' if unsigned else 'I64'}")
    if unsigned:
        return pa.array((high.astype(np.uint64) << np.uint64(32)) | low.astype(np.uint64))
    return pa.array((high << 32) | low)


def _halves(plain: npt.NDArray[Any], groups: Codes, count: int) -> tuple[Codes, Codes]:
    """The sums of the lower and of the upper 32 bits."""
    plain = plain if plain.dtype.itemsize == 8 else plain.astype(np.int64)
    low, high = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
    for start in range(0, len(plain), _STRETCH):
        part, numbers = plain[start : start + _STRETCH], groups[start : start + _STRETCH]
        lower = (part & part.dtype.type(0xFFFFFFFF)).astype(np.float64)
        upper = (part >> part.dtype.type(32)).astype(np.float64)
        low += np.bincount(numbers, weights=lower, minlength=count).astype(np.int64)
        high += np.bincount(numbers, weights=upper, minlength=count).astype(np.int64)
    return low, high


def integer_totals(values: pa.Array, groups: Codes, count: int) -> list[int]:
    """The exact sum of each group, however large."""
    low, high = _halves(np.asarray(values.to_numpy(zero_copy_only=False)), groups, count)
    return [(up << 32) + down for up, down in zip(high.tolist(), low.tolist(), strict=True)]


def group_sums(values: pa.Array, numbers: Codes, sizes: Codes) -> npt.NDArray[np.float64]:
    """The sum of each group as a 64-bit float, whatever the order of rows. `sizes` are how many values each has."""
    count = len(sizes)
    plain = np.asarray(values.to_numpy(zero_copy_only=False))
    if len(plain) == 0:
        return np.zeros(count)
    if plain.dtype.kind in "iu":
        largest = max(abs(int(plain.max())), abs(int(plain.min())))
        if largest * len(plain) < EXACT:
            return np.bincount(numbers, weights=plain, minlength=count).astype(np.float64)
        return np.array([float(total) for total in integer_totals(values, numbers, count)])
    plain = plain.astype(np.float64)
    finite = np.isfinite(plain)
    if not finite.all():
        infinite = np.bincount(numbers[~finite], weights=plain[~finite], minlength=count)
        rest = numbers[finite]
        return infinite + _float_sums(plain[finite], rest, np.bincount(rest, minlength=count))
    return _float_sums(plain, numbers, sizes)


def _float_sums(values: npt.NDArray[np.float64], numbers: Codes, sizes: Codes) -> npt.NDArray[np.float64]:
    """Sums that do not depend on the order of rows, nor on what is in other groups.

    Each value is cut into pieces on a grid of its group, coarse to fine. Pieces of one grid add up without rounding, in
    any order; three grids hold more digits than a float does.
    """
    count = len(sizes)
    largest = _largest_exponents(values, numbers, count)
    if int(largest.max(initial=0)) > _NEAR_THE_END:
        # Rounded to a grid, a value next to the largest float would be infinite. Digits that are lost here lie far
        # below the finest grid of their group.
        down = np.where(largest > _NEAR_THE_END, _NEAR_THE_END // 2, 0)
        with np.errstate(over="ignore"):
            return np.asarray(np.ldexp(_float_sums(np.ldexp(values, -down[numbers]), numbers, sizes), down))
    width = 52 - np.frexp(np.maximum(sizes, 2).astype(np.float64))[1]
    grids = largest - width * np.arange(1, LEVELS + 1)[:, np.newaxis]
    totals = np.zeros((LEVELS, count))
    in_reach = int(np.abs(grids).max(initial=0)) < _IN_REACH
    # Pieces add up exactly in any order, so a stretch that fits the processor's cache is taken through all grids.
    for start in range(0, len(values), _IN_CACHE):
        rest, own = values[start : start + _IN_CACHE], numbers[start : start + _IN_CACHE]
        for total, exponents in zip(totals, grids, strict=True):
            pieces = _on_grid(rest, exponents, own) if in_reach else _on_far_grid(rest, exponents, own)
            total += np.bincount(own, weights=pieces, minlength=count)
            rest = rest - pieces
            if not rest.any():
                break
    return np.asarray(totals[0] + totals[1] + totals[2])


def _on_grid(values: npt.NDArray[np.float64], exponents: Codes, numbers: Codes) -> npt.NDArray[np.float64]:
    """Each value rounded to a multiple of two to the power of its group's exponent.

    A float that is so large that its last digit is one step of the grid takes on just those digits of what is added.
    """
    anchors = np.ldexp(1.5, exponents + 52)
    same = bool((exponents == exponents[0]).all())
    anchor = anchors[0] if same else anchors[numbers]
    pieces = values + anchor
    pieces -= anchor
    return np.asarray(pieces)


def _on_far_grid(values: npt.NDArray[np.float64], exponents: Codes, numbers: Codes) -> npt.NDArray[np.float64]:
    """As `_on_grid`, slowly, where no float is large enough or a power of two too small."""
    return np.asarray(np.ldexp(np.rint(np.ldexp(values, -exponents[numbers])), exponents[numbers]))


def _largest_exponents(values: npt.NDArray[np.float64], numbers: Codes, count: int) -> Codes:
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
