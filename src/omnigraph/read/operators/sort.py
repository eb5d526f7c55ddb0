"""The total order of rows: the keys of the query, and whatever is still equal is decided by the ids of the bound
entities in order of binding, so no two runs can differ.
"""

from __future__ import annotations

import numpy as np

from omnigraph.query import ir
from omnigraph.read.codes.arrays import Codes
from omnigraph.read.codes.order import first_places, is_null, order_codes, total_order
from omnigraph.read.state.frame import EntityCodes, Frame
from omnigraph.read.state.run_state import Run, id_property


def column_order(run: Run, frame: Frame, name: str) -> Codes:
    """The order of a variable's ids, or of a computed column's values."""
    if name in frame.bindings:
        return run.order(run.variables[name], frame.bindings[name])
    column = frame.columns[name]
    if isinstance(column, EntityCodes):
        return run.order(column.tables, column.codes)
    return order_codes(column)


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
    match key.expr:
        case ir.Entity(var=var):
            codes = run.order(run.variables[var], frame.bindings[var])
            missing = frame.bindings[var] < 0
        case ir.Prop(var=var) as prop if _is_id(run, prop):
            # The property is the id: its order is known without reading it.
            codes = run.order(run.variables[var], frame.bindings[var])
            missing = frame.bindings[var] < 0
        case ir.ColumnRef(name=name) if isinstance(column := frame.columns[name], EntityCodes):
            codes = run.order(column.tables, column.codes)
            missing = column.codes < 0
        case _:
            values = run.evaluate(key.expr, frame)
            codes = order_codes(values)
            missing = is_null(values)
    codes = ~codes if key.descending else codes
    if key.nulls_lead == (not key.descending) or not missing.any():
        return codes
    # Nulls are the smallest value of their own accord: put them at the other end.
    ranks: Codes = np.unique(codes, return_inverse=True)[1].astype(np.int64)
    ranks[missing] = -1 if key.nulls_lead else len(ranks)
    return ranks


def _is_id(run: Run, prop: ir.Prop) -> bool:
    """Whether a property of a variable is the id itself."""
    tables = run.variables[prop.var]
    return len(tables) == 1 and prop.column in ("id", id_property(run.catalog, tables[0]))
