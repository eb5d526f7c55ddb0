"""Sums of floats at the ends of what floats hold, against exact fractions."""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

from omnigraph.query.evaluate.exact_floats import float_pieces
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
        ([LARGEST, -LARGEST, 5.0], 5.0),
        ([1.0, 1e-20, 1e-40, -1.0, -1e-20], 1e-40),
        ([1.0, 2.0**-53, 2.0**-400], 1.0 + 2.0**-52),  # just above the middle between two floats
        ([1.0, 2.0**-53, -(2.0**-400)], 1.0),  # just below it
        ([1.0, 2.0**-53], 1.0),
        ([-0.0, -0.0], 0.0),
        ([5e-324, -1e300, 1e300], 5e-324),
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


@pytest.mark.parametrize("seed", range(12))
def test_sums_are_exact_and_rounded_once(seed: int) -> None:
    values, numbers = mixed_values(np.random.default_rng(seed), rows=3000, groups=40)
    for number, total in enumerate(sums(values, numbers)):
        assert total == exact_sum(value for value, own in zip(values, numbers, strict=True) if own == number)


@pytest.mark.parametrize("seed", range(6))
def test_pieces_of_parts_add_up_to_the_sum_of_the_whole(seed: int) -> None:
    random = np.random.default_rng(seed)
    values, numbers = mixed_values(random, rows=2000, groups=10)
    parts = random.integers(0, 7, len(values))
    pieces: list[float] = []
    of_group: list[int] = []
    for part in range(7):
        own = np.array(numbers)[parts == part]
        found = float_pieces(np.array(values)[parts == part], own, np.bincount(own, minlength=10))
        for level in found.levels:
            pieces += level.tolist()
            of_group += range(10)
        pieces += found.more.tolist()
        of_group += found.groups.tolist()
    assert sums(pieces, of_group) == sums(values, numbers)


def mixed_values(random: np.random.Generator, rows: int, groups: int) -> tuple[list[float], list[int]]:
    """Values of all sizes, in some groups of one size, in others of many; with some that take each other away."""
    numbers = random.integers(0, groups, rows)
    spans = random.choice([1, 10, 60, 200, 900], groups)
    middles = random.integers(-1074, 1023, groups)
    exponents = np.clip(middles[numbers] + random.integers(-spans[numbers], spans[numbers] + 1), -1073, 1021)
    values = np.ldexp(random.uniform(-1, 1, rows), exponents)
    again = random.integers(0, rows, rows // 5)
    return [*values.tolist(), *(-values[again]).tolist()], [*numbers.tolist(), *numbers[again].tolist()]


def exact_sum(values: Iterable[float]) -> float:
    try:
        return float(sum(map(Fraction, values), Fraction(0)))
    except OverflowError:
        return math.nan
