"""Sums of groups that do not depend on the order of rows: integers exactly, floats exactly and rounded once.

So two plans of one query, and two engines, give the same bits.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.query.evaluate.exact_floats import float_sums
from omnigraph.query.functions.kernels.arguments import CannotCompute

Codes = npt.NDArray[np.int64]

EXACT = 2**53
"""Integers up to here are exact as 64-bit floats."""
_STRETCH = 2**20
"""So many numbers of 32 bits add up exactly as floats."""


def integer_sums(values: pa.Array, groups: Codes, count: int) -> pa.Array:
    """The exact sum of each group, in the type of the values (int64 or uint64). Raises `CannotCompute`."""
    plain = np.asarray(values.to_numpy(zero_copy_only=False))
    if len(plain) == 0:
        return pa.array(np.zeros(count, dtype=np.int64)).cast(values.type)
    largest = max(abs(int(plain.max())), abs(int(plain.min())))
    if largest * len(plain) < EXACT:
        sums = np.bincount(groups, weights=plain, minlength=count)
        return pa.array(sums.astype(np.int64)).cast(values.type)
    low, high = integer_halves(plain, groups, count)
    high = high + (low >> 32)
    low = low & 0xFFFFFFFF
    unsigned = plain.dtype == np.uint64
    bottom, top = (0, 2**32) if unsigned else (-(2**31), 2**31)
    if bool(np.any((high < bottom) | (high >= top))):
        raise CannotCompute(f"a sum that does not fit {'U64' if unsigned else 'I64'}")
    if unsigned:
        return pa.array((high.astype(np.uint64) << np.uint64(32)) | low.astype(np.uint64))
    return pa.array((high << 32) | low)


def integer_halves(plain: npt.NDArray[Any], groups: Codes, count: int) -> tuple[Codes, Codes]:
    """The sums of the lower and of the upper 32 bits of integers."""
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
    low, high = integer_halves(np.asarray(values.to_numpy(zero_copy_only=False)), groups, count)
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
        return infinite + float_sums(plain[finite], rest, np.bincount(rest, minlength=count))
    return float_sums(plain, numbers, sizes)
