"""Grouping: which rows belong together. What the aggregates of a group are is `query/evaluate/aggregates.py`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np
import pyarrow as pa

from omnigraph.query import ir
from omnigraph.query.evaluate.aggregates import aggregate
from omnigraph.read.codes.arrays import Codes, combined, distinct_codes, factorize, removed
from omnigraph.read.codes.order import is_null, order_codes, total_order
from omnigraph.read.operators.aggregated import addends, argument_values, missing_rows
from omnigraph.read.operators.sort import column_order
from omnigraph.read.plan.show import show
from omnigraph.read.state.frame import ComputedColumn, EntityCodes, Frame
from omnigraph.read.state.run_state import Run
from omnigraph.read.state.spaces import EdgeRowSpace, SortedSpace
from omnigraph.read.tables.arrow_types import result_type

CELLS = 1 << 26
"""Marks that are made at most to count different values."""
DENSE_ROWS = 10_000
"""From so many rows on it is worth numbering the values of a whole column."""


@dataclass(frozen=True, slots=True)
class Groups:
    """Which group each row is in, how many there are, for each group its keys, and where that is known its rows."""

    numbers: Codes
    count: int
    keys: tuple[ComputedColumn, ...]
    sizes: Codes | None = None


def group(run: Run, frame: Frame, operator: ir.GroupBy) -> Frame:
    """One row for each distinct tuple of keys; one row over everything when there are no keys."""
    if operator.row_order and frame.length > 1:
        order = total_order([column_order(run, frame, name) for name in operator.row_order])
        frame = frame if order is None else frame.take(order)
    groups = _dense_groups(run, frame, operator.keys) or _groups(run, frame, operator.keys)
    columns: dict[str, ComputedColumn] = {
        key.name: values for key, values in zip(operator.keys, groups.keys, strict=True)
    }
    # An entity that is a key is the same in all rows of its group, so it stays bound.
    bound = {
        key.expr.var: values.codes
        for key, values in zip(operator.keys, groups.keys, strict=True)
        if isinstance(key.expr, ir.Entity) and isinstance(values, EntityCodes)
    }
    for column in operator.aggregates:
        assert isinstance(column.expr, ir.Aggregate)
        columns[column.name] = _aggregate(run, frame, column.expr, column, groups)
    return Frame(groups.count, bound, columns)


def _groups(run: Run, frame: Frame, keys: Sequence[ir.Column]) -> Groups:
    if not keys:
        return Groups(np.zeros(frame.length, dtype=np.int64), 1, (), np.array([frame.length], dtype=np.int64))
    numbers, first = factorize([_value_codes(run, frame, key.expr) for key in keys], frame.length)
    sample = frame.take(first)
    return Groups(numbers, len(first), tuple(_key_values(run, sample, key) for key in keys))


# --- keys with few different values ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _DenseKey:
    """A key whose codes are below `size`, and the value behind each code."""

    codes: Codes
    size: int
    values: pa.Array


def _dense_groups(run: Run, frame: Frame, keys: Sequence[ir.Column]) -> Groups | None:
    """Groups by properties of whole tables: each value of a column has its number already, so rows are only counted."""
    if not keys:
        return None
    dense: list[_DenseKey] = []
    for key in keys:
        found = _dense_key(run, frame, key.expr)
        if found is None:
            return None
        dense.append(found)
    total = prod(key.size for key in dense)
    if total > frame.length:
        return None
    combined_codes = dense[0].codes
    for more in dense[1:]:
        combined_codes = combined_codes * more.size + more.codes
    sizes = np.bincount(combined_codes, minlength=total)
    there = np.flatnonzero(sizes)
    numbers = combined_codes
    if len(there) < total:
        number_of = np.zeros(total, dtype=np.int64)
        number_of[there] = np.arange(len(there))
        numbers = number_of[combined_codes]
    values: list[ComputedColumn] = []
    rest = there
    for each in reversed(dense):
        values.append(each.values.take(pa.array(rest % each.size)))
        rest = rest // each.size
    return Groups(numbers, len(there), tuple(reversed(values)), sizes[there])


def _dense_key(run: Run, frame: Frame, expr: ir.Expr) -> _DenseKey | None:
    if not isinstance(expr, ir.Prop) or frame.length < DENSE_ROWS:
        return None
    tables = run.variables[expr.var]
    codes = frame.bindings[expr.var]
    space = run.entities(tables)
    if not isinstance(space, SortedSpace | EdgeRowSpace) or space.size() > frame.length or int(codes.min()) < 0:
        return None
    key = (run.reader.state(tables[0]), expr.column)
    encoded = run.caches.codes.get(key, lambda: _encoded(space.columns(np.arange(space.size()), [expr.column])[0]))
    if encoded is None:
        return None
    return _DenseKey(encoded.numbers[codes], len(encoded.values), encoded.values)


@dataclass(frozen=True, slots=True)
class _Encoded:
    """A whole column: the number of the value of each entity, and the values."""

    numbers: Codes
    values: pa.Array

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return int(self.numbers.nbytes + self.values.nbytes)


def _encoded(values: pa.Array) -> _Encoded | None:
    """None where equality of values is not that of their bytes (floats, lists)."""
    values = combined(values)
    if pa.types.is_floating(values.type) or pa.types.is_nested(values.type):
        return None
    encoded = values.dictionary_encode(null_encoding="encode")
    return _Encoded(np.asarray(encoded.indices.to_numpy()).astype(np.int64), encoded.dictionary)


def _value_codes(run: Run, frame: Frame, expr: ir.Expr) -> Codes:
    """Integers that are equal exactly for equal values."""
    match expr:
        case ir.Entity(var=var):
            return frame.bindings[var]
        case ir.ColumnRef(name=name) if isinstance(computed := frame.columns[name], EntityCodes):
            codes: Codes = computed.codes
            return codes
        case ir.Prop(var=var):
            # A property is looked at once for each entity, not once for each row.
            distinct, inverse = distinct_codes(frame.bindings[var])
            values = run.evaluate(expr, Frame(len(distinct), {var: distinct}))
            return equality_codes(values)[inverse]
        case _:
            return equality_codes(run.evaluate(expr, frame))


def equality_codes(values: pa.Array) -> Codes:
    """Integers that are equal exactly for equal values; null equals null here."""
    values = combined(values)
    if pa.types.is_large_string(values.type):
        encoded = values.dictionary_encode(null_encoding="encode")
        return np.asarray(encoded.indices.to_numpy()).astype(np.int64)
    return order_codes(values)


def _key_values(run: Run, sample: Frame, key: ir.Column) -> ComputedColumn:
    if isinstance(key.expr, ir.Entity):
        return EntityCodes(run.variables[key.expr.var], sample.bindings[key.expr.var])
    if isinstance(key.expr, ir.ColumnRef):
        return sample.columns[key.expr.name]
    return run.evaluate(key.expr, sample)


def _aggregate(run: Run, frame: Frame, wanted: ir.Aggregate, column: ir.Column, groups: Groups) -> pa.Array:
    type_ = result_type(column.type, None)
    if wanted.function is ir.AggregateFunction.COUNT:
        counted = _count(run, frame, wanted, groups)
        if counted is not None:
            return counted
    missing = missing_rows(frame, wanted.arg)
    numbers, sizes = groups.numbers, _sizes_without(groups, missing)
    values = addends(run, frame, wanted.arg, missing) if len(missing) and _adds_up(wanted) else None
    if values is None:
        values = argument_values(run, frame, wanted.arg, missing)
        if len(missing):
            # Of one group all numbers are alike.
            numbers = numbers[: len(values)] if groups.count == 1 else removed(numbers, missing)
    named = wanted if wanted.source else replace(wanted, source=show(wanted))
    return aggregate(named, values, numbers, groups.count, type_, sizes, nothing=frame.length == 0)


def _sizes_without(groups: Groups, missing: Codes) -> Codes | None:
    """How many rows each group has but for the missing ones; where none is, only if that is known."""
    if len(missing) == 0:
        return groups.sizes
    sizes = np.bincount(groups.numbers, minlength=groups.count) if groups.sizes is None else groups.sizes
    return sizes - np.bincount(groups.numbers[missing], minlength=groups.count)


def _adds_up(wanted: ir.Aggregate) -> bool:
    """Whether a 0 more changes nothing but how many values there are, which is known."""
    return wanted.function in (ir.AggregateFunction.SUM, ir.AggregateFunction.AVG) and not wanted.distinct


def _count(run: Run, frame: Frame, wanted: ir.Aggregate, groups: Groups) -> pa.Array | None:
    """Counts that need no values, only codes; None for others."""
    numbers, count = groups.numbers, groups.count
    match wanted.arg:
        case ir.Entity(var=var):
            codes = frame.bindings[var]
            size = run.entities(run.variables[var]).size()
            present = codes >= 0
        case ir.Prop() if (
            wanted.distinct and frame.length and (dense := _dense_key(run, frame, wanted.arg)) is not None
        ):
            codes, size = dense.codes, dense.size
            present = ~is_null(dense.values)[codes]
        case ir.Prop(var=var) if wanted.distinct:
            distinct, inverse = distinct_codes(frame.bindings[var])
            values = run.evaluate(wanted.arg, Frame(len(distinct), {var: distinct}))
            codes, present = equality_codes(values)[inverse], ~is_null(values)[inverse]
            size = 0
        case _:
            return None
    if not wanted.distinct and count == 1:
        return pa.array([np.count_nonzero(present)], pa.int64())
    all_there = bool(present.all())
    if all_there and not wanted.distinct and groups.sizes is not None:
        return pa.array(groups.sizes, pa.int64())
    if not all_there:
        codes, numbers = codes[present] if wanted.distinct else codes, numbers[present]
    if not wanted.distinct or len(numbers) == 0:
        return pa.array(np.bincount(numbers, minlength=count), pa.int64())
    if 0 < count * size <= CELLS:
        # One mark for each value of each group, set as often as it comes.
        seen = np.zeros(count * size, dtype=bool)
        seen[numbers * size + codes] = True
        return pa.array(np.count_nonzero(seen.reshape(count, size), axis=1), pa.int64())
    numbers = numbers[factorize([numbers, codes], len(numbers))[1]]
    return pa.array(np.bincount(numbers, minlength=count), pa.int64())
