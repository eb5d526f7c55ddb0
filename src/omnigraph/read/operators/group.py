"""Grouping: which rows belong together. What the aggregates of a group are is `query/evaluate/aggregates.py`."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

from omnigraph.query import ir
from omnigraph.query.evaluate.aggregates import aggregate
from omnigraph.read.codes.arrays import Codes, combined, distinct_codes, factorize
from omnigraph.read.codes.order import is_null, order_codes, total_order
from omnigraph.read.operators.sort import column_order
from omnigraph.read.plan.show import show
from omnigraph.read.state.frame import ComputedColumn, EntityCodes, Frame
from omnigraph.read.state.run_state import Run
from omnigraph.read.tables.arrow_types import result_type


def group(run: Run, frame: Frame, operator: ir.GroupBy) -> Frame:
    """One row for each distinct tuple of keys; one row over everything when there are no keys."""
    if operator.row_order and frame.length > 1:
        order = total_order([column_order(run, frame, name) for name in operator.row_order])
        frame = frame if order is None else frame.take(order)
    encoded = [_value_codes(run, frame, key.expr) for key in operator.keys]
    numbers, first = factorize(encoded, frame.length)
    count = len(first) if operator.keys else 1
    columns: dict[str, ComputedColumn] = {}
    sample = frame.take(first) if operator.keys else frame
    for key in operator.keys:
        columns[key.name] = _key_values(run, sample, key)
    for column in operator.aggregates:
        assert isinstance(column.expr, ir.Aggregate)
        columns[column.name] = _aggregate(run, frame, column.expr, column, numbers, count)
    # An entity that is a key is the same in all rows of its group, so it stays bound.
    bound = {key.expr.var: sample.bindings[key.expr.var] for key in operator.keys if isinstance(key.expr, ir.Entity)}
    return Frame(count, bound, columns)


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


def _aggregate(run: Run, frame: Frame, wanted: ir.Aggregate, column: ir.Column, numbers: Codes, count: int) -> pa.Array:
    type_ = result_type(column.type, None)
    if wanted.function is ir.AggregateFunction.COUNT:
        counted = _count(run, frame, wanted, numbers, count)
        if counted is not None:
            return counted
    values = combined(_values(run, frame, wanted.arg))
    named = wanted if wanted.source else replace(wanted, source=show(wanted))
    return aggregate(named, values, numbers, count, type_)


def _count(run: Run, frame: Frame, wanted: ir.Aggregate, numbers: Codes, count: int) -> pa.Array | None:
    """Counts that need no values, only codes; None for others."""
    match wanted.arg:
        case ir.Entity(var=var):
            codes = frame.bindings[var]
            present = codes >= 0
        case ir.Prop(var=var) if wanted.distinct:
            distinct, inverse = distinct_codes(frame.bindings[var])
            values = run.evaluate(wanted.arg, Frame(len(distinct), {var: distinct}))
            codes, present = equality_codes(values)[inverse], ~is_null(values)[inverse]
        case _:
            return None
    if not present.all():
        codes, numbers = codes[present], numbers[present]
    if wanted.distinct and len(codes):
        numbers = numbers[factorize([numbers, codes], len(numbers))[1]]
    return pa.array(np.bincount(numbers, minlength=count), pa.int64())


def _values(run: Run, frame: Frame, expr: ir.Expr) -> pa.Array:
    """The values of an expression; a property is read once for each entity."""
    if not isinstance(expr, ir.Prop):
        return run.evaluate(expr, frame)
    distinct, inverse = distinct_codes(frame.bindings[expr.var])
    if 2 * len(distinct) > frame.length:
        return run.evaluate(expr, frame)
    return run.evaluate(expr, Frame(len(distinct), {expr.var: distinct})).take(pa.array(inverse))
