"""Scalar evaluation as reads use it: parameters put in first, columns found by name. The meaning is
`query/evaluate.py`'s.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.query import evaluate as meaning
from omnigraph.query import ir
from omnigraph.query.predicates import leaves
from omnigraph.read.codes.arrays import Mask

_NO_TIME = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


def evaluate(expr: ir.Expr, length: int, column: Callable[[ir.Prop | ir.ColumnRef], Any]) -> pa.Array:
    """The value of an expression without parameters for each row."""
    return meaning.evaluate(expr, column, {}, _NO_TIME, length)


def holds(predicate: ir.Expr, length: int, column: Callable[[str], Any]) -> pa.Array:
    """For each row whether a predicate over one entity is true; its columns are found by what they are called."""
    return meaning.matching_rows(predicate, lambda leaf: column(leaf.column), {}, _NO_TIME, length)


def true_mask(values: pa.Array) -> Mask:
    """True where a three-valued result is true."""
    return np.asarray(pc.fill_null(values, False).to_numpy(zero_copy_only=False), dtype=bool)


def conjunction(predicates: Sequence[ir.Expr]) -> ir.Expr | None:
    """Several predicates as one; None when there are none."""
    if not predicates:
        return None
    return predicates[0] if len(predicates) == 1 else ir.And(tuple(predicates))


def properties_of(expr: ir.Expr, var: str) -> frozenset[str]:
    """The columns of one variable that an expression reads as plain values."""
    return frozenset(leaf.column for leaf in leaves(expr) if isinstance(leaf, ir.Prop) and leaf.var == var)
