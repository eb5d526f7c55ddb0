"""The meaning of expressions on Arrow columns. Reads, writes and Spark tasks share it; engines add no meaning.

- Conditions are three-valued: null stands for unknown, and `and`, `or`, `not` follow Kleene's tables. A filter keeps
  the rows for which the condition is true (`matching_rows`).
- Comparing with null is unknown. `IsNull` is never unknown.
- Numbers of different types compare by their exact value: no integer is rounded to a float first.
- NaN is equal to itself and greater than every other number, so that comparisons agree with the sort order. `-0.0`
  equals `0.0`.
- Text compares by code point. `contains`, `starts_with` and `ends_with` are exact and case-sensitive; `matches` runs in
  linear time.
- Membership in a list that does not hold the value but holds a null is unknown.
- What has no value (an overflow, a division by zero, a conversion that fails) raises `BadRequest`, which names the
  expression. A branch of `case`, and a part of `and` or `or`, is not computed for rows that do not need it.

Aggregates over groups of rows are in `aggregates`.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.query import ir
from omnigraph.query.evaluate.expressions import Columns, Evaluation

__all__ = ["Columns", "aggregates", "comparisons", "evaluate", "exact_floats", "matching_rows", "room", "sums"]


def evaluate(
    expr: ir.Expr,
    columns: Columns,
    params: Mapping[str, Any],
    now: datetime.datetime,
    length: int,
) -> pa.Array:
    """The value of an expression for each of `length` rows. `params` are values as `bind_parameters` gives them."""
    return Evaluation(columns, params, now, length).array(expr)


def matching_rows(
    predicate: ir.Expr,
    columns: Columns,
    params: Mapping[str, Any],
    now: datetime.datetime,
    length: int,
) -> pa.Array:
    """For each row whether the predicate is true: a Boolean array without nulls."""
    return pc.fill_null(evaluate(predicate, columns, params, now, length), False)
