"""Arithmetic on integers of every type, held against Python's own integers."""

from __future__ import annotations

import math

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.query.evaluate import arithmetic
from omnigraph.query.functions.kernels.arguments import CannotCompute
from omnigraph.query.ir import ArithmeticOp

SIGNED = st.sampled_from((-(2**63), -(2**63) + 1, -2, -1, 0, 1, 2, 2**62, 2**63 - 1)) | st.integers(-(2**63), 2**63 - 1)
UNSIGNED = st.sampled_from((0, 1, 2, 2**63 - 1, 2**63, 2**64 - 1)) | st.integers(0, 2**64 - 1)


def exact(op: ArithmeticOp, left: int, right: int) -> int:
    match op:
        case ArithmeticOp.ADD:
            return left + right
        case ArithmeticOp.SUBTRACT:
            return left - right
        case ArithmeticOp.MULTIPLY:
            return left * right
    return left - right * (abs(left) // abs(right)) * int(math.copysign(1, left)) * int(math.copysign(1, right))


@given(
    op=st.sampled_from(
        (ArithmeticOp.ADD, ArithmeticOp.SUBTRACT, ArithmeticOp.MULTIPLY, ArithmeticOp.MODULO),
    ),
    pairs=st.lists(st.tuples(SIGNED | st.none(), UNSIGNED | st.none()), min_size=1, max_size=4),
    turned=st.booleans(),
)
def test_signed_and_unsigned_together_are_exact_or_do_not_fit(
    op: ArithmeticOp, pairs: list[tuple[int | None, int | None]], turned: bool
) -> None:
    left, right = ([pair[side] for pair in pairs] for side in (0, 1))
    columns = [pa.array(left, pa.int64()), pa.array(right, pa.uint64())]
    if turned:
        left, right, columns = right, left, columns[::-1]
    if op is ArithmeticOp.MODULO and any(two == 0 and one is not None for one, two in zip(left, right, strict=True)):
        expected = None
    else:
        expected = [
            None if one is None or two is None else exact(op, one, two) for one, two in zip(left, right, strict=True)
        ]
    if expected is None or not all(each is None or -(2**63) <= each < 2**63 for each in expected):
        with pytest.raises(CannotCompute):
            arithmetic.compute(op, *columns, pa.int64())
    else:
        assert arithmetic.compute(op, *columns, pa.int64()) == pa.array(expected, pa.int64())


@pytest.mark.parametrize("item", [pa.scalar(2**63, pa.uint64()), pa.array([2**63, None, 3], pa.uint64())])
def test_the_negative_of_the_first_unsigned_number_that_is_no_signed_one_fits(item: pa.Scalar | pa.Array) -> None:
    found = arithmetic.negate(item, pa.int64())
    if isinstance(item, pa.Scalar):
        assert found.as_py() == -(2**63)
    else:
        assert found.to_pylist() == [-(2**63), None, -3]


def test_a_negative_that_does_not_fit_is_told() -> None:
    with pytest.raises(CannotCompute, match="does not fit I64"):
        arithmetic.negate(pa.array([2**63 + 1], pa.uint64()), pa.int64())
    with pytest.raises(CannotCompute, match="does not fit I64"):
        arithmetic.negate(pa.array([-(2**63)], pa.int64()), pa.int64())
