"""Groups and their aggregates, to the last bit what the in-process engine gives.

Counts, extremes and sums of whole numbers are the same however rows are spread, so Spark makes them where the rows are.
Everything else is made by the function that the in-process engine uses: all rows of a group come to one task, which
numbers the groups it has and puts their rows in the order that the query gives them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from omnigraph.query import ir
from omnigraph.query.evaluate.aggregates import aggregate, mean_of
from omnigraph.query.typing import type_of
from omnigraph.read.codes.arrays import Codes, factorize
from omnigraph.read.codes.order import order_codes
from omnigraph.schema.types import FLOATS, INTEGERS, EntityType, EnumType, ScalarType, ValueType
from omnigraph.spark.query.expressions import spark_name, spark_type
from omnigraph.spark.query.needs import stored_type
from omnigraph.spark.spread import with_details
from omnigraph.spark.types import travelling_type

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_F = ir.AggregateFunction
_SOMETHING = "something"
"""The column that tells rows from the one that is put in so that a task runs over nothing too."""


@dataclass(frozen=True, slots=True)
class Keys:
    """What tells groups apart, by name; and the columns that are the same in all rows of a group because of it."""

    columns: Mapping[str, Column]
    carried: Sequence[str]


@dataclass(frozen=True, slots=True)
class Asked:
    """An aggregate, the type of its value, the column it becomes, and the column of its argument."""

    aggregate: ir.Aggregate
    type: ValueType
    name: str
    argument: Column


def grouped(frame: DataFrame, keys: Keys, asked: Sequence[Asked], row_order: Sequence[str]) -> DataFrame:
    """One row for each group; one row over everything when there are no keys."""
    if all(_by_spark(each.aggregate) for each in asked):
        return _in_spark(frame, keys, asked)
    return _in_tasks(frame, keys, asked, row_order)


# --- by Spark ------------------------------------------------------------------------------------------------------


def _by_spark(wanted: ir.Aggregate) -> bool:
    """Whether Spark's own aggregate is the same to the last bit."""
    argument = type_of(wanted.arg)
    exact = isinstance(argument, EntityType | EnumType) or (
        isinstance(argument, ScalarType) and argument.scalar not in FLOATS
    )
    match wanted.function:
        case _F.COUNT:
            return exact or not wanted.distinct
        case _F.MIN | _F.MAX:
            return exact
        case _F.SUM | _F.AVG:
            return isinstance(argument, ScalarType) and argument.scalar in INTEGERS and not wanted.distinct
        case _:
            return False


def _in_spark(frame: DataFrame, keys: Keys, asked: Sequence[Asked]) -> DataFrame:
    from pyspark.sql import functions as f

    made = [f.first(name).alias(name) for name in keys.carried]
    for each in asked:
        made += _partial(each)
    columns = [key.alias(name) for name, key in keys.columns.items()]
    found = frame.groupBy(*columns).agg(*made) if made else frame.select(*columns).distinct()
    return found.select(*keys.columns, *keys.carried, *(_whole(each) for each in asked))


def _partial(each: Asked) -> list[Column]:
    from pyspark.sql import functions as f

    match each.aggregate.function:
        case _F.COUNT:
            counted = f.count_distinct(each.argument) if each.aggregate.distinct else f.count(each.argument)
            return [counted.alias(each.name)]
        case _F.MIN:
            return [f.min(each.argument).alias(each.name)]
        case _F.MAX:
            return [f.max(each.argument).alias(each.name)]
        case _:
            total = f.sum(each.argument.cast("decimal(20,0)")).cast("decimal(38,0)")
            return [total.alias(each.name), f.count(each.argument).alias(f"{each.name}n")]


def _whole(each: Asked) -> Column:
    """The value of an aggregate; of a sum what fits, and the error of the in-process engine for what does not."""
    from pyspark.sql import functions as f

    wanted, result = each.aggregate, stored_type(each.type)
    if wanted.function not in (_F.SUM, _F.AVG):
        return f.col(each.name)

    def sums(totals: pa.Array) -> pa.Array:
        limits = np.iinfo(result.to_pandas_dtype())
        known = [None if total is None else int(total) for total in totals.to_pylist()]
        if any(total is not None and not limits.min <= total <= limits.max for total in known):
            _aggregated(wanted, pa.array([limits.max] * 2, result), np.zeros(2, dtype=np.int64), 1, result)
        return pa.array(known, result).cast(travelling_type(result))

    def means(totals: pa.Array, counts: pa.Array) -> pa.Array:
        pairs = zip(totals.to_pylist(), counts.to_pylist(), strict=True)
        return pa.array([None if total is None else mean_of(int(total), count) for total, count in pairs], pa.float64())

    # Not to be moved by Spark: it can fail, and is asked for each group that there is.
    if wanted.function is _F.SUM:
        made = f.arrow_udf(sums, returnType=spark_name(each.type)).asNondeterministic()(f.col(each.name))
    else:
        made = f.arrow_udf(means, returnType="double")(f.col(each.name), f.col(f"{each.name}n"))
    return made.alias(each.name)


# --- in tasks ------------------------------------------------------------------------------------------------------


def _in_tasks(frame: DataFrame, keys: Keys, asked: Sequence[Asked], row_order: Sequence[str]) -> DataFrame:
    from pyspark.sql import functions as f
    from pyspark.sql.types import StructField, StructType

    kept = [*keys.columns, *keys.carried]
    prepared = frame.select(
        *(key.alias(name) for name, key in keys.columns.items()),
        *keys.carried,
        *(each.argument.alias(f"argument{position}") for position, each in enumerate(asked)),
        *(f.col(name).alias(f"order{position}") for position, name in enumerate(row_order)),
        f.lit(True).alias(_SOMETHING),
    )
    fields = prepared.schema.fields
    if keys.columns:
        spread = prepared.repartition(*(_one_zero(name, type_) for name, type_ in prepared.dtypes[: len(keys.columns)]))
    else:
        nothing = [f.lit(None).cast(field.dataType).alias(field.name) for field in fields[:-1]]
        none = frame.sparkSession.range(1).select(*nothing, f.lit(False).alias(_SOMETHING))
        spread = prepared.union(none).repartition(1)
    schema = StructType([*fields[: len(kept)], *(StructField(each.name, spark_type(each.type)) for each in asked)])
    task = _Task(
        len(keys.columns), len(kept), [(each.aggregate, each.type) for each in asked], tuple(schema.fieldNames())
    )
    return spread.mapInArrow(task.run, schema)


def _one_zero(name: str, type_: str) -> Column:
    """A key as groups are told apart: -0.0 and 0.0 go to one task."""
    from pyspark.sql import functions as f

    return f.col(name) + f.lit(0.0) if type_ in ("double", "float") else f.col(name)


@dataclass(frozen=True, slots=True)
class _Task:
    """The groups of one partition. Columns: keys, what is carried with them, arguments, the order of rows, a mark."""

    keys: int
    kept: int
    asked: Sequence[tuple[ir.Aggregate, ValueType]]
    names: tuple[str, ...]

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """One row for each group."""
        given = list(batches)
        if not given:
            return
        table = pa.Table.from_batches(given)
        table = table.filter(table.column(_SOMETHING)).combine_chunks()
        columns = [_array(column) for column in table.columns[:-1]]
        behind = self.kept + len(self.asked)
        order = _order([code for column in columns[behind:] for code in _codes(column)], table.num_rows)
        columns = [column if order is None else column.take(order) for column in columns[:behind]]
        numbers, first = factorize([code for column in columns[: self.keys] for code in _codes(column)], table.num_rows)
        count = len(first) if self.keys else 1
        made = [column.take(pa.array(first)) for column in columns[: self.kept]]
        for (wanted, type_), values in zip(self.asked, columns[self.kept :], strict=True):
            stored = values.cast(stored_type(type_of(wanted.arg)))
            result = stored_type(type_)
            of_group = _aggregated(wanted, stored, numbers, count, result, nothing=table.num_rows == 0)
            made.append(of_group.cast(travelling_type(result)))
        yield pa.RecordBatch.from_arrays(made, names=list(self.names))


_aggregated = with_details(aggregate)


def _order(codes: list[Codes], length: int) -> pa.Array | None:
    return pa.array(np.lexsort(tuple(reversed(codes)))) if codes and length else None


def _codes(column: pa.Array) -> list[Codes]:
    """Integers that are equal for equal values and sort as they do; for the key of an entity of several tables two."""
    if pa.types.is_struct(column.type):
        return [order_codes(part) for part in column.flatten()]
    return [order_codes(column.cast(pa.uint64()) if pa.types.is_decimal(column.type) else column)]


def _array(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks or [pa.array([], column.type)])
