"""Aggregates over all rows at once, without a task that has all of them.

What has states is made of them. A deviation takes sums of what values are away from their mean, which are exact and so
the same however rows are spread. A median is found at its place in the order. What is asked of different values is
asked of them after Spark has told them apart. Only a list of all values is made by one task: it is one value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.query import ir
from omnigraph.query.evaluate.aggregates import aggregate, deviations
from omnigraph.query.functions.kernels.arguments import fit
from omnigraph.query.typing import type_of
from omnigraph.schema.types import FLOATS, Scalar, ScalarType
from omnigraph.spark.query.expressions import spark_name
from omnigraph.spark.query.groups.aggregates import Asked, Keys, grouped, made_by_spark
from omnigraph.spark.query.groups.states import Floats
from omnigraph.spark.query.needs import stored_type
from omnigraph.spark.query.row_places import all_places

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_F = ir.AggregateFunction
_EVERYTHING = Keys({}, ())
Numbers = npt.NDArray[np.float64]


def over_everything(
    frame: DataFrame, asked: Sequence[Asked], arguments: Sequence[Column], row_order: Sequence[str]
) -> DataFrame:
    """One row."""
    from pyspark.sql import functions as f

    by_tasks = [each for each in asked if _has_states(each) or each.aggregate.function is _F.COLLECT]
    if len(by_tasks) == len(asked) and len({each.aggregate.function is _F.COLLECT for each in asked}) == 1:
        return grouped(frame, _EVERYTHING, asked, arguments, row_order)
    # Looked at several times.
    names = [f"argument{position}" for position in range(len(asked))]
    kept = [column.alias(name) for name, column in zip(names, arguments, strict=True)]
    rows = frame.select(*kept, *row_order).localCheckpoint(eager=False)
    place = dict(zip((each.name for each in asked), names, strict=True))
    found = frame.sparkSession.range(1).select()
    for lists in (False, True):
        together = [each for each in by_tasks if (each.aggregate.function is _F.COLLECT) is lists]
        if together:
            columns = [f.col(place[each.name]) for each in together]
            found = found.crossJoin(grouped(rows, _EVERYTHING, together, columns, row_order if lists else ()))
    for each in asked:
        if each not in by_tasks:
            found = found.crossJoin(_alone(rows, each, place[each.name]))
    return found.select(*[each.name for each in asked])


def _has_states(each: Asked) -> bool:
    """Whether states are enough, and small: all different values of everything are not."""
    return made_by_spark(each.aggregate) or (each.state is not None and not each.aggregate.distinct)


def _alone(rows: DataFrame, each: Asked, name: str) -> DataFrame:
    """One aggregate, from nothing but its values."""
    from pyspark.sql import functions as f

    wanted = each.aggregate
    values = rows.select(f.col(name).alias("value")).where(f.col(name).isNotNull())
    type_ = type_of(wanted.arg)
    if isinstance(type_, ScalarType) and type_.scalar in FLOATS:
        # There is one zero.
        values = values.select((f.col("value") + f.lit(0.0)).cast(spark_name(type_)).alias("value"))
    if wanted.distinct:
        values = values.distinct()
        each = replace(each, aggregate=replace(wanted, distinct=False))
    if _has_states(each) or type_ is None or wanted.function not in (_F.STDDEV, _F.MEDIAN):
        return grouped(values, _EVERYTHING, [each], [f.col("value")], ())
    values = values.localCheckpoint(eager=False)
    made = _deviation(values, each) if wanted.function is _F.STDDEV else _median(values, each)
    return rows.sparkSession.range(1).select(f.lit(made).cast("double").alias(each.name))


def _deviation(values: DataFrame, each: Asked) -> float | None:
    """As the in-process engine does it: from a centre that is brought as close to the mean as can be."""
    from pyspark.sql import functions as f

    argument = stored_type(type_of(each.aggregate.arg))
    mean = replace(each, aggregate=replace(each.aggregate, function=_F.AVG))
    count = Asked(replace(each.aggregate, function=_F.COUNT), ScalarType(Scalar.I64), "n")
    found = grouped(values, _EVERYTHING, [mean, count], [f.col("value")] * 2, ()).first()
    if found is None or found["n"] < 2:
        return None
    centre, size = float(found[each.name]), int(found["n"])
    with np.errstate(all="ignore"):
        (off,) = _sums(values, argument, lambda numbers: [numbers - centre]) / size
        centre = centre + off if np.isfinite(off) else centre

        def away(numbers: Numbers) -> list[Numbers]:
            apart = numbers - centre
            return [apart * apart, apart]

        squares, left = _sums(values, argument, away)
    return float(deviations(squares, left, size))


def _sums(values: DataFrame, argument: pa.DataType, made: Callable[[Numbers], list[Numbers]]) -> Numbers:
    """The sums of what is made of each value: tasks make pieces of them, which are added up here."""
    state = Floats(mean=False)
    names = [f"s{position}" for position in range(len(state.types))]

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            numbers = fit(batch.column(0).cast(argument), pa.float64()).to_numpy(zero_copy_only=False)
            with np.errstate(all="ignore"):
                parts = made(numbers)
            for number, part in enumerate(parts):
                pieces = state.of_rows(pa.array(part), np.zeros(len(part), dtype=np.int64), 1)
                yield pa.RecordBatch.from_arrays([pa.array([number]), *pieces], names=["number", *names])

    schema = "number bigint, s0 double, s1 double, s2 double, s3 array<double>, s4 bigint"
    found = values.mapInArrow(task, schema).toArrow().combine_chunks()
    columns = [_array(column) for column in found.columns]
    numbers = np.asarray(columns[0].to_numpy(zero_copy_only=False)).astype(np.int64)
    sums = state.whole([part.cast(type_) for part, type_ in zip(columns[1:], state.types)], numbers, len(made(_NONE)))
    return np.asarray(sums.to_numpy(zero_copy_only=False))


_NONE: Numbers = np.empty(0)


def _median(values: DataFrame, each: Asked) -> Any:
    from pyspark.sql import functions as f

    placed, count = all_places(values, [f.col("value").asc()], "place")
    middle = [(count + 1) // 2, count // 2 + 1]
    found = placed.where(f.col("place").isin(middle)).select("value").toArrow()
    argument = stored_type(type_of(each.aggregate.arg))
    both = _array(found.column(0)).cast(argument)
    made = aggregate(each.aggregate, both, np.zeros(len(both), dtype=np.int64), 1, stored_type(each.type))
    return made[0].as_py()


def _array(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks or [pa.array([], column.type)])
