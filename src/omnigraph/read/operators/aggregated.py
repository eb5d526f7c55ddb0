"""The values that an aggregate is taken of: one for each row in which its variable stands for something."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from omnigraph.query import ir
from omnigraph.read.codes.arrays import FEW_PLACES, Codes, combined, distinct_codes, removed, stretches
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
        return _taken(combined(run.evaluate(expr, Frame(len(every), {expr.var: every}))), codes, missing)
    codes = removed(codes, missing) if len(missing) else codes
    if not shared:
        return combined(run.evaluate(expr, Frame(len(codes), {expr.var: codes})))
    distinct, inverse = distinct_codes(codes)
    return combined(run.evaluate(expr, Frame(len(distinct), {expr.var: distinct})).take(pa.array(inverse)))


def _taken(column: pa.Array, codes: Codes, missing: Codes) -> pa.Array:
    """The values of a whole column for the codes but the missing ones, which numbers need no copy to leave out."""
    if len(missing) == 0:
        return column.take(pa.array(codes))
    if (
        len(missing) > FEW_PLACES
        or column.null_count
        or not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type))
    ):
        return column.take(pa.array(removed(codes, missing)))
    plain = column.to_numpy()
    out = np.empty(len(codes) - len(missing), dtype=plain.dtype)
    done = 0
    for start, stop in stretches(missing, len(codes)):
        np.take(plain, codes[start:stop], out=out[done : done + stop - start], mode="clip")
        done += stop - start
    return pa.array(out, column.type)
