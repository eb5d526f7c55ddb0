"""Grouping: which rows belong together. What the aggregates of a group are is `query/evaluate/aggregates.py`."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

from omnigraph.query import ir
from omnigraph.query.evaluate.aggregates import aggregate
from omnigraph.read.codes.arrays import Codes, combined, distinct_codes, factorize
from omnigraph.read.codes.order import order_codes
from omnigraph.read.plan.show import show
from omnigraph.read.state.frame import ComputedColumn, EntityCodes, Frame
from omnigraph.read.state.run_state import Run
from omnigraph.read.tables.arrow_types import result_type


def group(run: Run, frame: Frame, operator: ir.GroupBy) -> Frame:
    """One row for each distinct tuple of keys; one row over everything when there are no keys."""
    encoded = [_key_codes(run, frame, key) for key in operator.keys]
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


def _key_codes(run: Run, frame: Frame, key: ir.Column) -> Codes:
    match key.expr:
        case ir.Entity(var=var):
            return frame.bindings[var]
        case ir.ColumnRef(name=name) if isinstance(computed := frame.columns[name], EntityCodes):
            codes: Codes = computed.codes
            return codes
        case ir.Prop(var=var):
            # A property is looked at once for each entity, not once for each row.
            distinct, inverse = distinct_codes(frame.bindings[var])
            values = run.evaluate(key.expr, Frame(len(distinct), {var: distinct}))
            return equality_codes(values)[inverse]
        case _:
            return equality_codes(run.evaluate(key.expr, frame))


def equality_codes(values: pa.Array) -> Codes:
    """Integers that are equal exactly for equal values; null equals null here."""
    values = combined(values)
    if pa.types.is_large_string(values.type):
        encoded = values.dictionary_encode(null_encoding="encode")
        return np.asarray(encoded.indices.to_numpy()).astype(np.int64)
    return order_codes(values)


def _key_values(run: Run, sample: Frame, key: ir.Column) -> ComputedColumn:
    if isinstance(key.expr, ir.Entity):
        return EntityCodes(run.tables[key.expr.var], sample.bindings[key.expr.var])
    if isinstance(key.expr, ir.ColumnRef):
        return sample.columns[key.expr.name]
    return run.evaluate(key.expr, sample)


def _aggregate(run: Run, frame: Frame, wanted: ir.Aggregate, column: ir.Column, numbers: Codes, count: int) -> pa.Array:
    type_ = result_type(column.type, None)
    if isinstance(wanted.arg, ir.Entity) and not wanted.distinct and not wanted.arg.nullable:
        sizes = np.bincount(numbers, minlength=count) if frame.length else np.zeros(count, dtype=np.int64)
        return pa.array(sizes, pa.int64())
    values = combined(run.evaluate(wanted.arg, frame))
    named = wanted if wanted.source else replace(wanted, source=show(wanted))
    return aggregate(named, values, numbers, count, type_)
