"""Aggregates of a group as Spark columns, to the last bit what the in-process engine gives.

Whole numbers are added exactly. The sum of floats depends on the order in which they are added, so it is made by the
in-process engine's own function over all values of the group; Spark does not mix such functions with its own in one
grouping, so then all aggregates are made that way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import InternalError
from omnigraph.query import ir
from omnigraph.query.evaluate.sums import group_sums
from omnigraph.query.typing import type_of
from omnigraph.schema.types import FLOATS, EntityType, PropertyType, Scalar, ScalarType, ValueType
from omnigraph.spark.expressions import stored_type
from omnigraph.spark.types import spark_type_name

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

Resolve = Callable[[ir.Expr], "Column"]
_ADDING = (ir.AggregateFunction.SUM, ir.AggregateFunction.AVG)


def aggregate_rows(
    frame: DataFrame, keys: Sequence[Column], columns: Sequence[ir.Column], names: Sequence[str], resolve: Resolve
) -> DataFrame:
    """One row for each group; one row over everything when there are no keys. Aggregates come under `names`."""
    aggregates = [_aggregate_of(column) for column in columns]
    by_tasks = any(a.function in _ADDING and _is_float(type_of(a.arg)) for a in aggregates)
    lower = _by_task if by_tasks else _by_spark
    made = [lower(aggregate, resolve).alias(name) for aggregate, name in zip(aggregates, names, strict=True)]
    grouped = frame.groupBy(*keys).agg(*made)
    return _at_least_one(grouped, aggregates, names) if by_tasks and not keys else grouped


def _at_least_one(grouped: DataFrame, aggregates: Sequence[ir.Aggregate], names: Sequence[str]) -> DataFrame:
    """Spark runs no task over no rows, and then gives no row: put in what the aggregates are over nothing."""
    from pyspark.sql import functions as f

    found = grouped.localCheckpoint()
    if not found.isEmpty():
        return found
    nothing = [
        f.lit(0 if aggregate.function is ir.AggregateFunction.COUNT else None).cast(_result_name(aggregate)).alias(name)
        for aggregate, name in zip(aggregates, names, strict=True)
    ]
    return grouped.sparkSession.range(1).select(*nothing)


def _aggregate_of(column: ir.Column) -> ir.Aggregate:
    if not isinstance(column.expr, ir.Aggregate):
        raise InternalError(f"{column.expr!r} is not an aggregate")
    return column.expr


def _by_spark(aggregate: ir.Aggregate, resolve: Resolve) -> Column:
    from pyspark.sql import functions as f

    if isinstance(aggregate.arg, ir.Entity):
        return f.count(f.lit(1))
    column = resolve(aggregate.arg)
    match aggregate.function:
        case ir.AggregateFunction.COUNT:
            return f.count(column)
        case ir.AggregateFunction.SUM:
            return f.sum(column.cast("decimal(20,0)")).cast("double")
        case ir.AggregateFunction.AVG:
            return f.sum(column.cast("decimal(20,0)")).cast("double") / f.count(column)
        case ir.AggregateFunction.MIN:
            return f.min(column)
        case ir.AggregateFunction.MAX:
            return f.max(column)


def _by_task(aggregate: ir.Aggregate, resolve: Resolve) -> Column:
    from pyspark.sql import functions as f

    function = aggregate.function
    if isinstance(aggregate.arg, ir.Entity):
        stored, column = pa.string(), resolve(aggregate.arg)
    else:
        stored, column = stored_type(type_of(aggregate.arg)), resolve(aggregate.arg)

    def task(values: pa.Array) -> Any:
        return _aggregated(function, values.cast(stored))

    return f.arrow_udf(task, returnType=_result_name(aggregate))(column)


def _aggregated(function: ir.AggregateFunction, values: pa.Array) -> Any:
    present = values.drop_null()
    if function is ir.AggregateFunction.COUNT:
        return len(present)
    if not len(present):
        return None
    if function in _ADDING:
        total = float(group_sums(present, np.zeros(len(present), dtype=np.int64), 1)[0])
        return total / len(present) if function is ir.AggregateFunction.AVG else total
    extreme = pc.min(present) if function is ir.AggregateFunction.MIN else pc.max(present)
    # U64 crosses to Spark as a decimal, and Arrow takes an integer that large only as one.
    return Decimal(extreme.as_py()) if pa.types.is_uint64(values.type) else extreme.as_py()


def _result_name(aggregate: ir.Aggregate) -> str:
    if aggregate.function is ir.AggregateFunction.COUNT:
        return "bigint"
    if aggregate.function in _ADDING:
        return "double"
    return spark_type_name(_stored_as(type_of(aggregate.arg)))


def _stored_as(type_: ValueType | None) -> PropertyType:
    return ScalarType(Scalar.STRING) if type_ is None or isinstance(type_, EntityType) else type_


def _is_float(type_: ValueType | None) -> bool:
    return isinstance(type_, ScalarType) and type_.scalar in FLOATS
