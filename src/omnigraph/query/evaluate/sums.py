"""Sums of groups that do not depend on the order of rows: integers exactly, floats in pieces that add up exactly.

So two plans of one query, and two engines, give the same bits.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.query.functions.kernels.rows import CannotCompute

Codes = npt.NDArray[np.int64]

LEVELS = 3
EXACT = 2**53
"""Integers up to here are exact as 64-bit floats."""
_STRETCH = 2**20
"""So many numbers of 32 bits add up exactly as floats."""
_IN_CACHE = 2**15
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


def group_sums(values: pa.Array, numbers: Codes, count: int) -> npt.NDArray[np.float64]:
    """The sum of each group as a 64-bit float, whatever the order of rows."""
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
        return infinite + _float_sums(plain[finite], numbers[finite], count)
    return _float_sums(plain, numbers, count)


def _float_sums(values: npt.NDArray[np.float64], numbers: Codes, count: int) -> npt.NDArray[np.float64]:
    """Sums that do not depend on the order of rows, nor on what is in other groups.

    Each value is cut into pieces on a grid of its group, coarse to fine. Pieces of one grid add up without rounding, in
    any order; three grids hold more digits than a float does.
    """
    largest = np.zeros(count)
    np.maximum.at(largest, numbers, np.abs(values))
    sizes = np.bincount(numbers, minlength=count)
    width = 52 - np.frexp(np.maximum(sizes, 2).astype(np.float64))[1]
    grids = np.frexp(largest)[1] - width * np.arange(1, LEVELS + 1)[:, np.newaxis]
    totals = np.zeros((LEVELS, count))
    # Pieces add up exactly in any order, so a stretch that fits the processor's cache is taken through all grids.
    for start in range(0, len(values), _IN_CACHE):
        rest, own = values[start : start + _IN_CACHE], numbers[start : start + _IN_CACHE]
        for total, exponents in zip(totals, grids, strict=True):
            steps = np.rint(_scaled(rest, -exponents, own))
            total += np.bincount(own, weights=steps, minlength=count)
            rest = rest - _scaled(steps, exponents, own)
            if not rest.any():
                break
    sums = np.zeros(count)
    for total, exponents in zip(totals, grids, strict=True):
        sums += np.ldexp(total, exponents)
    return sums


def _scaled(values: npt.NDArray[np.float64], exponents: Codes, numbers: Codes) -> npt.NDArray[np.float64]:
    """Each value times two to the power of its group's exponent."""
    if int(np.abs(exponents).max()) < 1000:
        # A power of two that a float holds: multiplying by it is exact, and much faster than `ldexp`.
        powers = np.ldexp(1.0, exponents)
        same = bool(np.all(exponents == exponents[0]))
        return np.asarray(values * (powers[0] if same else powers[numbers]))
    return np.asarray(np.ldexp(values, exponents[numbers]))
