"""The values that an aggregate is taken of: one for each row in which its variable stands for something."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from omnigraph.query import ir
from omnigraph.read.codes.arrays import Codes, combined, distinct_codes, removed
from omnigraph.read.state.frame import Frame
from omnigraph.read.state.run_state import Run
from omnigraph.read.state.spaces import EdgeRowSpace, SortedSpace


def missing_rows(frame: Frame, expr: ir.Expr) -> Codes:
    """The rows in which the variable of a property stands for nothing: aggregates skip them.

    An `optional` leaves few rows alone: to drop them is much cheaper than to carry their nulls through.
    """
    if not isinstance(expr, ir.Prop):
        return np.empty(0, dtype=np.int64)
    return np.flatnonzero(frame.bindings[expr.var] < 0)


def argument_values(run: Run, frame: Frame, expr: ir.Expr, missing: Codes) -> pa.Array:
    """The values of an expression for all rows but the missing ones.

    A property that many rows share is read once for each entity.
    """
    if not isinstance(expr, ir.Prop):
        return combined(run.evaluate(expr, frame))
    codes = frame.bindings[expr.var]
    space = run.entities(run.variables[expr.var])
    shared = 2 * space.size() <= frame.length
    if shared and isinstance(space, SortedSpace | EdgeRowSpace):
        every = np.arange(space.size(), dtype=np.int64)
        kept = removed(codes, missing) if len(missing) else codes
        return combined(run.evaluate(expr, Frame(len(every), {expr.var: every}))).take(pa.array(kept))
    codes = removed(codes, missing) if len(missing) else codes
    if not shared:
        return combined(run.evaluate(expr, Frame(len(codes), {expr.var: codes})))
    distinct, inverse = distinct_codes(codes)
    return combined(run.evaluate(expr, Frame(len(distinct), {expr.var: distinct})).take(pa.array(inverse)))


def addends(run: Run, frame: Frame, expr: ir.Expr, missing: Codes) -> pa.Array | None:
    """A number for each row, 0 for the missing ones: where values are added up nothing need be left out for those.

    None where there are not many rows to an entity, or some entities have no number.
    """
    if not isinstance(expr, ir.Prop):
        return None
    space = run.entities(run.variables[expr.var])
    if not isinstance(space, SortedSpace | EdgeRowSpace) or not 0 < 2 * space.size() <= frame.length:
        return None
    every = np.arange(space.size(), dtype=np.int64)
    column = combined(run.evaluate(expr, Frame(len(every), {expr.var: every})))
    if column.null_count or not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
        return None
    run.memory.expect("the values of properties", frame.length * column.type.bit_width // 8)
    values = column.to_numpy()[frame.bindings[expr.var]]
    values[missing] = 0
    return pa.array(values, column.type)
