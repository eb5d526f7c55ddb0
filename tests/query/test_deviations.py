"""Standard deviations, held against exact fractions."""

from __future__ import annotations

import math
import statistics
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.query import ir
from omnigraph.query.evaluate.aggregates import aggregate
from omnigraph.schema.types import Scalar, ScalarType

F64 = ScalarType(Scalar.F64)
STDDEV = ir.Aggregate(ir.AggregateFunction.STDDEV, ir.Literal(0.0, F64), distinct=False)


def deviations(*groups: list[float]) -> list[float | None]:
    numbers = np.repeat(np.arange(len(groups)), [len(group) for group in groups])
    values = pa.array([value for group in groups for value in group], pa.float64())
    return aggregate(STDDEV, values, numbers, len(groups), pa.float64()).to_pylist()


def exact(group: list[float]) -> float:
    return math.sqrt(statistics.variance(map(Fraction, group)))


@pytest.mark.parametrize("value", [0.1, 1 / 3, 1e300, -7.3e-200, 2.0**53 + 2, 0.0])
def test_values_that_are_the_same_do_not_deviate(value: float) -> None:
    assert deviations(*([value] * size for size in range(2, 60))) == [0.0] * 58


@given(start=st.floats(1e-3, 1e3), steps=st.lists(st.integers(0, 3), min_size=2, max_size=9))
def test_of_neighbours_what_they_differ_counts_not_how_a_mean_is_rounded(start: float, steps: list[int]) -> None:
    group = [start + step * math.ulp(start) for step in steps]
    assert deviations(group)[0] == pytest.approx(exact(group), rel=1e-12)


@given(st.lists(st.floats(-1e100, 1e100), min_size=2, max_size=9))
def test_any_values(group: list[float]) -> None:
    assert deviations(group)[0] == pytest.approx(exact(group), rel=1e-12)


def test_fewer_than_two_values_have_none_and_groups_do_not_meet() -> None:
    assert deviations([1.0], [1.0, 3.0], [0.1, 0.1, 0.1]) == [None, math.sqrt(2.0), 0.0]
