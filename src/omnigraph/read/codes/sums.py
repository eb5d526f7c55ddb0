"""Sums that do not depend on the order of rows: integers are added exactly, and floats in pieces that add up without
rounding. So two plans of one query, and both engines, give the same bits.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.read.codes.arrays import Codes, Mask

LEVELS = 3
EXACT = 2**53
"""Integers up to here are exact as 64-bit floats."""


HALF = 32
LOW = 2**HALF - 1
CHUNK = 2**20
"""So many 32-bit numbers add up exactly in a 64-bit float."""


def group_integer_sums(values: pa.Array, numbers: Codes, count: int) -> tuple[npt.NDArray[Any], Mask]:
    """The exact sum of each group in 64 bits, unsigned for unsigned values, and which sums do not fit in there."""
    plain = np.asarray(values.to_numpy(zero_copy_only=False))
    unsigned = plain.dtype.kind == "u"
    wide = plain.astype(np.uint64 if unsigned else np.int64, copy=False)
    if len(wide) == 0:
        return np.zeros(count, dtype=wide.dtype), np.zeros(count, dtype=bool)
    if max(abs(int(wide.max())), abs(int(wide.min()))) * len(wide) < EXACT:
        sums = np.bincount(numbers, weights=wide, minlength=count).astype(wide.dtype)
        return sums, np.zeros(count, dtype=bool)
    low = np.zeros(count, dtype=np.int64)
    high = np.zeros(count, dtype=np.int64)
    for start in range(0, len(wide), CHUNK):
        part, at = wide[start : start + CHUNK], numbers[start : start + CHUNK]
        low += np.bincount(at, weights=part & wide.dtype.type(LOW), minlength=count).astype(np.int64)
        high += np.bincount(at, weights=part >> wide.dtype.type(HALF), minlength=count).astype(np.int64)
    high += low >> HALF
    low &= LOW
    bottom, top = (0, LOW) if unsigned else (-(2 ** (HALF - 1)), 2 ** (HALF - 1) - 1)
    over = (high < bottom) | (high > top)
    return (high.astype(wide.dtype) << wide.dtype.type(HALF)) | low.astype(wide.dtype), over


def group_sums(values: pa.Array, numbers: Codes, count: int) -> npt.NDArray[np.float64]:
    """The sum of each group as a 64-bit float, whatever the order of rows."""
    plain = np.asarray(values.to_numpy(zero_copy_only=False))
    if len(plain) == 0:
        return np.zeros(count)
    if plain.dtype.kind in "iu":
        largest = max(abs(int(plain.max())), abs(int(plain.min())))
        if largest * len(plain) < EXACT:
            return np.bincount(numbers, weights=plain, minlength=count).astype(np.float64)
        totals = [0] * count
        for number, value in zip(numbers.tolist(), plain.tolist(), strict=True):
            totals[number] += value
        return np.array([float(total) for total in totals])
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
    exponents = np.frexp(largest)[1]
    sums = np.zeros(count)
    rest = values
    for _ in range(LEVELS):
        exponents = exponents - width
        steps = np.rint(_scaled(rest, -exponents, numbers))
        sums += np.ldexp(np.bincount(numbers, weights=steps, minlength=count), exponents)
        rest = rest - _scaled(steps, exponents, numbers)
        if not rest.any():
            break
    return sums


def _scaled(values: npt.NDArray[np.float64], exponents: Codes, numbers: Codes) -> npt.NDArray[np.float64]:
    """Each value times two to the power of its group's exponent."""
    if bool(np.all(exponents == exponents[0])):
        return np.asarray(np.ldexp(values, exponents[0]))
    if int(np.abs(exponents).max()) < 1000:
        return np.asarray(values * np.ldexp(1.0, exponents)[numbers])
    return np.asarray(np.ldexp(values, exponents[numbers]))
