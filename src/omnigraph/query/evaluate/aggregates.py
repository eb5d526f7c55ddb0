"""The meaning of aggregates over groups of rows, on Arrow. Both engines call this; `ir.Aggregate` has the rules."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import BadRequest
from omnigraph.query import ir
from omnigraph.query.evaluate.sums import EXACT, Codes, group_sums, integer_sums, integer_totals
from omnigraph.query.functions.kernels.arguments import CannotCompute, fit

_F = ir.AggregateFunction


def aggregate(
    wanted: ir.Aggregate,
    values: pa.Array,
    groups: Codes,
    count: int,
    result: pa.DataType,
    sizes: Codes | None = None,
    *,
    nothing: bool = False,
) -> pa.Array:
    """The aggregate of each of `count` groups.

    `values` are those of the argument, in the order of the rows (for an entity its ids); `groups` says for each row
    which group it is in, from 0; `result` is the Arrow type of the answer; `sizes`, where it is known, says how many
    rows each group has; `nothing` that there are no rows at all, which is not the same as rows without a value.
    Raises `BadRequest` for a sum that does not fit.
    """
    if nothing and wanted.function is _F.COLLECT:
        return pa.nulls(count, result)
    try:
        return _aggregate(wanted, values, groups, count, result, sizes)
    except CannotCompute as problem:
        raise BadRequest(f"{problem} in `{wanted.source}`", expression=wanted.source) from None


def _aggregate(
    wanted: ir.Aggregate, values: pa.Array, groups: Codes, count: int, result: pa.DataType, sizes: Codes | None
) -> pa.Array:
    if values.null_count or wanted.distinct:
        sizes = None
    if values.null_count:
        present = values.is_valid()
        groups = groups[present.to_numpy(zero_copy_only=False)]
        values = values.filter(present)
    if wanted.distinct:
        first = distinct_rows(values, groups)
        values, groups = values.take(pa.array(first)), groups[first]
    if sizes is None:
        sizes = np.bincount(groups, minlength=count).astype(np.int64)
    if wanted.function is _F.COUNT:
        return pa.array(sizes)
    if wanted.function is _F.COLLECT:
        # Small numbers are sorted by their digits, which is much faster.
        order = np.argsort(groups.astype(np.uint16) if count <= 2**16 else groups, kind="stable")
        offsets = np.concatenate(([0], np.cumsum(sizes))).astype(np.int32)
        return pa.ListArray.from_arrays(pa.array(offsets), fit(values, result.value_type).take(pa.array(order)))
    empty = sizes == 0
    match wanted.function:
        case _F.SUM if pa.types.is_integer(result):
            sums = integer_sums(fit(values, result), groups, count)
            return pc.if_else(pa.array(empty), None, sums)
        case _F.SUM:
            return pa.array(group_sums(values, groups, sizes), pa.float64(), mask=empty)
        case _F.AVG:
            return pa.array(_means(values, groups, count, sizes), pa.float64(), mask=empty)
        case _F.STDDEV:
            return pa.array(_deviations(values, groups, count, sizes), pa.float64(), mask=sizes < 2)
        case _F.MEDIAN:
            return pa.array(_medians(values, groups, count, sizes), pa.float64(), mask=empty)
        case _:
            return _extreme(values, groups, sizes, result, last=wanted.function is _F.MAX)


def distinct_rows(values: pa.Array, groups: Codes) -> Codes:
    """The rows, in their order, where a value comes for the first time in its group. There are no nulls."""
    if pa.types.is_list(values.type) or pa.types.is_large_list(values.type):
        known: dict[Any, int] = {}
        codes = np.array([known.setdefault(tuple(each), len(known)) for each in values.to_pylist()], dtype=np.int64)
    else:
        encoded = _even(values).dictionary_encode()
        codes = np.asarray(encoded.indices.to_numpy(zero_copy_only=False)).astype(np.int64)
    width = int(codes.max()) + 1 if len(codes) else 1
    _, first = np.unique(groups * width + codes, return_index=True)
    return np.sort(first)


def _even(values: pa.Array) -> pa.Array:
    """Floats with one zero instead of two."""
    return pc.add(values, pa.scalar(0.0, values.type)) if pa.types.is_floating(values.type) else values


def _means(values: pa.Array, groups: Codes, count: int, sizes: Codes) -> Any:
    """Of integers the exact sum divided once; of floats the sum divided."""
    sums = group_sums(values, groups, sizes)
    if pa.types.is_integer(values.type) and bool(np.any(np.abs(sums) >= EXACT)):
        totals = integer_totals(values, groups, count)
        return np.array([mean_of(total, size) for total, size in zip(totals, sizes.tolist(), strict=True)])
    with np.errstate(invalid="ignore", divide="ignore"):
        return sums / sizes


def mean_of(total: int, size: int) -> float:
    """A quotient of integers, rounded once as Python does; of nothing it is no number."""
    return total / size if size else math.nan


def _deviations(values: pa.Array, groups: Codes, count: int, sizes: Codes) -> Any:
    """The standard deviation of a sample: from the mean, in a second pass.

    A mean is rounded, and of values that are nearly the same what it is off counts as much as they differ. So it is
    brought as close as can be, which makes it exact for values that are the same, and what is left is taken out.
    """
    means = _means(values, groups, count, sizes)
    with np.errstate(all="ignore"):
        numbers = fit(values, pa.float64()).to_numpy(zero_copy_only=False)
        off = group_sums(pa.array(numbers - means[groups]), groups, sizes) / sizes
        apart = numbers - np.where(np.isfinite(off), means + off, means)[groups]
        squares = group_sums(pa.array(apart * apart), groups, sizes)
        return deviations(squares, group_sums(pa.array(apart), groups, sizes), sizes)


def deviations(squares: Any, left: Any, sizes: Any) -> Any:
    """Standard deviations from the sums of what values are away from a centre: of the squares, and of what is left."""
    with np.errstate(all="ignore"):
        exact = np.isfinite(squares)
        return np.sqrt(np.where(exact, np.maximum(squares - left * left / sizes, 0.0), squares) / (sizes - 1))


def _medians(values: pa.Array, groups: Codes, count: int, sizes: Codes) -> Any:
    order = _sorted(values, groups)
    numbers = fit(values, pa.float64()).to_numpy(zero_copy_only=False)[order]
    starts = np.concatenate(([0], np.cumsum(sizes)))[:-1]
    lower = np.minimum(starts + np.maximum(sizes - 1, 0) // 2, max(len(numbers) - 1, 0))
    upper = np.minimum(starts + sizes // 2, max(len(numbers) - 1, 0))
    if not len(numbers):
        return np.zeros(count)
    if pa.types.is_integer(values.type) and bool(np.any(np.abs(numbers) >= EXACT)):
        exact = values.take(pa.array(order)).to_pylist()
        return np.array([(exact[one] + exact[two]) / 2 for one, two in zip(lower.tolist(), upper.tolist())])
    return np.where(lower == upper, numbers[lower], numbers[lower] / 2 + numbers[upper] / 2)


def _extreme(values: pa.Array, groups: Codes, sizes: Codes, result: pa.DataType, *, last: bool) -> pa.Array:
    if not len(values):
        return pa.nulls(len(sizes), result)
    order = _sorted(values, groups)
    ends = np.cumsum(sizes)
    at = np.clip(ends - 1 if last else ends - sizes, 0, len(order) - 1)
    return fit(_even(values), result).take(pa.array(order[at], mask=sizes == 0))


def _sorted(values: pa.Array, groups: Codes) -> Codes:
    """The rows by group and within it by value; NaN is the greatest number."""
    table = pa.table({"group": pa.array(groups), "value": _even(values)})
    order = pc.sort_indices(table, sort_keys=[("group", "ascending"), ("value", "ascending")])
    return np.asarray(order.to_numpy(zero_copy_only=False)).astype(np.int64)
