"""Grouping and aggregates.

Sums do not depend on the order of rows: integers are added exactly, and floats in pieces that add up without
rounding. So two plans of one query give the same bits.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from omnigraph.errors import BadRequest
from omnigraph.query import ir
from omnigraph.read.codes.arrays import Codes, combined, distinct_codes, factorize
from omnigraph.read.codes.order import is_null, order_codes
from omnigraph.read.codes.sums import group_integer_sums, group_sums
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
    sizes = np.bincount(numbers, minlength=count) if frame.length else np.zeros(count, dtype=np.int64)
    for column in operator.aggregates:
        assert isinstance(column.expr, ir.Aggregate)
        columns[column.name] = _aggregate(run, frame, column.expr, column, numbers, sizes, count)
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


def _aggregate(
    run: Run, frame: Frame, aggregate: ir.Aggregate, column: ir.Column, numbers: Codes, sizes: Codes, count: int
) -> pa.Array:
    function = aggregate.function
    if isinstance(aggregate.arg, ir.Entity):
        return pa.array(sizes, pa.int64())
    values = combined(run.evaluate(aggregate.arg, frame))
    if values.null_count:
        present = ~is_null(values)
        values, numbers = values.drop_null(), numbers[present]
        sizes = np.bincount(numbers, minlength=count)
    if function is ir.AggregateFunction.COUNT:
        return pa.array(sizes, pa.int64())
    empty = sizes == 0
    if function is ir.AggregateFunction.SUM and pa.types.is_integer(values.type):
        sums, over = group_integer_sums(values, numbers, count)
        if over.any():
            shown = show(aggregate)
            raise BadRequest(
                f"`{shown}` is outside of {column.type}; sum fewer rows, or sum it as a float", expression=shown
            )
        return pa.array(sums, mask=empty)
    if function in (ir.AggregateFunction.SUM, ir.AggregateFunction.AVG):
        sums = group_sums(values, numbers, count)
        if function is ir.AggregateFunction.AVG:
            with np.errstate(invalid="ignore", divide="ignore"):
                sums = sums / sizes
        return pa.array(sums, pa.float64(), mask=empty)
    return _extreme(values, numbers, count, empty, column, largest=function is ir.AggregateFunction.MAX)


def _extreme(
    values: pa.Array, numbers: Codes, count: int, empty: np.ndarray, column: ir.Column, *, largest: bool
) -> pa.Array:
    if len(values) == 0:
        return pa.nulls(count, result_type(column.type, None))
    ranks = order_codes(values)
    order = np.lexsort((ranks, numbers))
    groups, starts = np.unique(numbers[order], return_index=True)
    ends = np.append(starts[1:], len(order))
    chosen = np.zeros(count, dtype=np.int64)
    chosen[groups] = order[(ends - 1) if largest else starts]
    return values.take(pa.array(chosen, mask=empty))
