"""Groups and their aggregates, to the last bit what the in-process engine gives.

Counts, extremes and sums of whole numbers are the same however rows are spread, so Spark makes them where the rows are.
For most others each task makes a state of the groups among its rows, and states are put together (states.py). What has
no state is made by the function that the in-process engine uses: all rows of a group come to one task, which puts them
in the order that the query gives them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from omnigraph.query import ir
from omnigraph.query.typing import type_of
from omnigraph.schema.types import FLOATS, INTEGERS, EntityType, EnumType, ScalarType, ValueType
from omnigraph.spark.query.expressions import spark_name, spark_type
from omnigraph.spark.query.groups.group_tasks import SOMETHING, GroupStates, MergedStates, WholeGroups
from omnigraph.spark.query.groups.states import State, WholeNumbers, state_of
from omnigraph.spark.query.needs import stored_type

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_F = ir.AggregateFunction


@dataclass(frozen=True, slots=True)
class Keys:
    """What tells groups apart, by name; and the columns that are the same in all rows of a group because of it."""

    columns: Mapping[str, Column]
    carried: Sequence[str]


@dataclass(frozen=True, slots=True)
class Asked:
    """An aggregate, the type of its value, and the column it becomes."""

    aggregate: ir.Aggregate
    type: ValueType
    name: str

    @property
    def state(self) -> State | None:
        """What tasks know of it."""
        return state_of(self.aggregate, self.type)


def grouped(
    frame: DataFrame, keys: Keys, asked: Sequence[Asked], arguments: Sequence[Column], row_order: Sequence[str]
) -> DataFrame:
    """One row for each group; one row over everything when there are no keys."""
    if all(made_by_spark(each.aggregate) for each in asked):
        return _in_spark(frame, keys, asked, arguments)
    states = [each.state for each in asked]
    known = [state for state in states if state is not None]
    if len(known) < len(states):
        return _in_tasks(frame, keys, asked, arguments, row_order)
    prepared = frame.select(*_kept_columns(keys), *_numbered("argument", arguments))
    kept = len(keys.columns) + len(keys.carried)
    schema = states_schema(prepared.schema.fields[:kept], asked, known)
    task = GroupStates(len(keys.columns), kept, known, tuple(schema.fieldNames()))
    names = list(keys.columns)
    return merged(prepared.mapInArrow(task.run, schema), names, keys.carried, asked, known)


# --- by Spark ------------------------------------------------------------------------------------------------------


def made_by_spark(wanted: ir.Aggregate) -> bool:
    """Whether Spark's own aggregate is the same to the last bit."""
    argument = type_of(wanted.arg)
    exact = isinstance(argument, EntityType | EnumType | ScalarType)
    match wanted.function:
        case _F.COUNT:
            return exact or not wanted.distinct
        case _F.MIN | _F.MAX:
            return exact
        case _F.SUM | _F.AVG:
            return isinstance(argument, ScalarType) and argument.scalar in INTEGERS and not wanted.distinct
        case _:
            return False


def _in_spark(frame: DataFrame, keys: Keys, asked: Sequence[Asked], arguments: Sequence[Column]) -> DataFrame:
    from pyspark.sql import functions as f

    made = [f.first(name).alias(name) for name in keys.carried]
    for each, argument in zip(asked, arguments, strict=True):
        made += _partial(each, argument)
    columns = [key.alias(name) for name, key in keys.columns.items()]
    found = frame.groupBy(*columns).agg(*made) if made else frame.select(*columns).distinct()
    return found.select(*keys.columns, *keys.carried, *(_whole(each, [each.name, f"{each.name}n"]) for each in asked))


def _partial(each: Asked, argument: Column) -> list[Column]:
    from pyspark.sql import functions as f

    type_ = type_of(each.aggregate.arg)
    if isinstance(type_, ScalarType) and type_.scalar in FLOATS:
        # There is one zero.
        argument = (argument + f.lit(0.0)).cast(spark_name(type_))
    match each.aggregate.function:
        case _F.COUNT:
            counted = f.count_distinct(argument) if each.aggregate.distinct else f.count(argument)
            return [counted.alias(each.name)]
        case _F.MIN:
            return [f.min(argument).alias(each.name)]
        case _F.MAX:
            return [f.max(argument).alias(each.name)]
        case _:
            total = f.sum(argument.cast("decimal(20,0)")).cast("decimal(38,0)")
            return [total.alias(each.name), f.count(argument).alias(f"{each.name}n")]


def _whole(each: Asked, names: Sequence[str]) -> Column:
    """The value of an aggregate; of a sum what fits, and the error of the in-process engine for what does not.

    A sum is given as one number or as two halves, the lower one first, and how many values there were.
    """
    from pyspark.sql import functions as f

    wanted = each.aggregate
    if wanted.function not in (_F.SUM, _F.AVG):
        return f.col(names[0]).alias(each.name)
    state = WholeNumbers(wanted, stored_type(type_of(wanted.arg)), stored_type(each.type))

    def finished(*given: pa.Array) -> pa.Array:
        *halves, sizes = (part.to_pylist() for part in given)
        totals = [
            None if not size else sum(int(half) << (32 * place) for place, half in enumerate(parts))
            for size, *parts in zip(sizes, *halves, strict=True)
        ]
        return state.finished(totals, [int(size or 0) for size in sizes])

    # Not to be moved by Spark: it can fail, and is asked for each group that there is.
    made = f.arrow_udf(finished, returnType=spark_name(each.type)).asNondeterministic()
    return made(*[f.col(name) for name in names]).alias(each.name)


# --- states --------------------------------------------------------------------------------------------------------


def states_schema(kept: Sequence[Any], asked: Sequence[Asked], states: Sequence[State]) -> Any:
    """The columns of states: those that are kept, then those of each state under names of their own."""
    from pyspark.sql.pandas.types import from_arrow_type
    from pyspark.sql.types import StructField, StructType

    fields = list(kept)
    for each, state in zip(asked, states, strict=True):
        pairs = zip(_state_names(each, state), state.types, strict=True)
        fields += [StructField(name, from_arrow_type(type_)) for name, type_ in pairs]
    return StructType(fields)


def merged(
    frame: DataFrame, keys: Sequence[str], carried: Sequence[str], asked: Sequence[Asked], states: Sequence[State]
) -> DataFrame:
    """One row for each group, from the states that tasks have made; one over everything when there are no keys."""
    from pyspark.sql import functions as f
    from pyspark.sql.types import StructField, StructType

    names = [_state_names(each, state) for each, state in zip(asked, states, strict=True)]
    added = [state.added(own) for state, own in zip(states, names, strict=True)]
    known = [columns for columns in added if columns is not None]
    if len(known) == len(added):
        made = [f.first(name).alias(name) for name in carried]
        made += [column.alias(name) for own, columns in zip(names, known) for name, column in zip(own, columns)]
        found = frame.groupBy(*keys).agg(*made) if made else frame.distinct()
        return found.select(*keys, *carried, *(_whole(each, own) for each, own in zip(asked, names)))
    kept = [*keys, *carried]
    schema = StructType(
        [*frame.schema.fields[: len(kept)], *(StructField(each.name, spark_type(each.type)) for each in asked)]
    )
    task = MergedStates(len(keys), len(kept), states, tuple(schema.fieldNames()))
    return _by_key(frame.withColumn(SOMETHING, f.lit(True)), len(keys)).mapInArrow(task.run, schema)


def _state_names(each: Asked, state: State) -> list[str]:
    return [f"{each.name}s{position}" for position in range(len(state.types))]


# --- all rows of a group -------------------------------------------------------------------------------------------


def _in_tasks(
    frame: DataFrame, keys: Keys, asked: Sequence[Asked], arguments: Sequence[Column], row_order: Sequence[str]
) -> DataFrame:
    from pyspark.sql import functions as f
    from pyspark.sql.types import StructField, StructType

    prepared = frame.select(
        *_kept_columns(keys),
        *_numbered("argument", arguments),
        *_numbered("order", [f.col(name) for name in row_order]),
        f.lit(True).alias(SOMETHING),
    )
    kept = len(keys.columns) + len(keys.carried)
    own = prepared.schema.fields[:kept]
    schema = StructType([*own, *(StructField(each.name, spark_type(each.type)) for each in asked)])
    wanted = [(each.aggregate, each.type) for each in asked]
    task = WholeGroups(len(keys.columns), kept, wanted, tuple(schema.fieldNames()))
    return _by_key(prepared, len(keys.columns)).mapInArrow(task.run, schema)


def _by_key(frame: DataFrame, keys: int) -> DataFrame:
    """Rows with equal keys in one partition. Without keys all in one, and a row that is not marked with them."""
    from pyspark.sql import functions as f

    if keys:
        return frame.repartition(*(_one_zero(name, type_) for name, type_ in frame.dtypes[:keys]))
    nothing = [f.lit(None).cast(field.dataType).alias(field.name) for field in frame.schema.fields[:-1]]
    none = frame.sparkSession.range(1).select(*nothing, f.lit(False).alias(SOMETHING))
    return frame.union(none).repartition(1)


def _one_zero(name: str, type_: str) -> Column:
    """A key as groups are told apart: -0.0 and 0.0 go to one task."""
    from pyspark.sql import functions as f

    return f.col(name) + f.lit(0.0) if type_ in ("double", "float") else f.col(name)


def _kept_columns(keys: Keys) -> list[Any]:
    return [*(key.alias(name) for name, key in keys.columns.items()), *keys.carried]


def _numbered(name: str, columns: Sequence[Column]) -> list[Column]:
    return [each.alias(f"{name}{position}") for position, each in enumerate(columns)]
