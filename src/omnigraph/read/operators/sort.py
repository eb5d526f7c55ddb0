"""The total order of rows: the keys of the query, and whatever is still equal is decided by the ids of the bound
entities in order of binding, so no two runs can differ.
"""

from __future__ import annotations

from omnigraph.query import ir
from omnigraph.read.codes.arrays import Codes
from omnigraph.read.codes.order import first_places, order_codes, total_order
from omnigraph.read.state.frame import EntityCodes, Frame
from omnigraph.read.state.run_state import Run


def column_order(run: Run, frame: Frame, name: str) -> Codes:
    """The order of a variable's ids, or of a computed column's values."""
    if name in frame.columns:
        column = frame.columns[name]
        if isinstance(column, EntityCodes):
            return run.space(column.table_key).order(column.codes)
        return order_codes(column)
    return run.space_of(name).order(frame.bindings[name])


def sort(run: Run, frame: Frame, operator: ir.Sort, limit: int | None) -> Frame:
    """The rows in their total order, or the first `limit` of them."""
    if frame.length < 2:
        return frame
    keys = [key_codes(run, frame, key) for key in operator.keys]
    if limit is not None and keys and limit < frame.length // 4:
        candidates = first_places(keys[0], limit)
        frame, keys = frame.take(candidates), [key[candidates] for key in keys]
    keys += [column_order(run, frame, name) for name in operator.tie_break]
    if not keys:
        return frame
    order = total_order(keys, limit)
    return frame if order is None else frame.take(order)


def key_codes(run: Run, frame: Frame, key: ir.SortKey) -> Codes:
    """Integers that sort as a key says."""
    if isinstance(key.expr, ir.ColumnRef):
        codes = column_order(run, frame, key.expr.name)
    elif isinstance(key.expr, ir.Entity):
        codes = column_order(run, frame, key.expr.var)
    else:
        codes = order_codes(run.evaluate(key.expr, frame))
    return ~codes if key.descending else codes
