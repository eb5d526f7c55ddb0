"""Sums of floats at the ends of what floats hold, against exact fractions."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

from omnigraph.query.evaluate.sums import group_sums

LARGEST = 1.7976931348623157e308


def sums(values: list[float], numbers: list[int]) -> list[float]:
    groups = np.array(numbers, dtype=np.int64)
    return group_sums(pa.array(values, pa.float64()), groups, np.bincount(groups)).tolist()


@pytest.mark.parametrize(
    ("values", "total"),
    [
        ([LARGEST], LARGEST),
        ([-LARGEST], -LARGEST),
        ([LARGEST, -LARGEST, 5.0], 0.0),  # the five lies below the finest grid, whatever the order
        ([LARGEST, LARGEST], math.inf),
        ([LARGEST, LARGEST, -LARGEST], LARGEST),
        ([2.0**970, 1.0], 2.0**970),
        ([5e-324, 5e-324], 1e-323),
    ],
)
def test_a_sum_at_the_edges(values: list[float], total: float) -> None:
    assert sums(values, [0] * len(values)) == [total]
    assert sums(values[::-1], [0] * len(values)) == [total]


def test_a_group_of_large_values_takes_no_digits_from_one_of_small_values() -> None:
    random = np.random.default_rng(3)
    values, numbers = [], []
    for number, exponent in enumerate([1023, -1070, 0, 961, 959, -400]):
        for mantissa in random.uniform(0.05, 0.1, 9):
            values.append(math.ldexp(float(mantissa), exponent))
            numbers.append(number)
    for number, total in enumerate(sums(values, numbers)):
        exact = sum(Fraction(value) for value, own in zip(values, numbers, strict=True) if own == number)
        assert total == float(exact)
