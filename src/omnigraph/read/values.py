"""Scalar evaluation as reads use it: parameters put in first, columns found by name. The meaning is
`query/evaluate.py`'s.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from omnigraph.query import evaluate as meaning
from omnigraph.query import ir

_NO_TIME = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


def evaluate(expr: ir.Expr, length: int, column: Callable[[ir.Prop | ir.ColumnRef], Any]) -> pa.Array:
    """The value of an expression without parameters for each row."""
    return meaning.evaluate(expr, column, {}, _NO_TIME, length)


def holds(predicate: ir.Expr, length: int, column: Callable[[str], Any]) -> pa.Array:
    """For each row whether a predicate over one entity is true; its columns are found by their names."""
    return meaning.matching_rows(predicate, lambda leaf: column(leaf.name), {}, _NO_TIME, length)
