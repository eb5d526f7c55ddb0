"""Rows of a frame on their way to Python tasks, as an RDD of Arrow batches that are counted and not weighed.

What Spark's own steps through Python do besides costs as much as handing the rows over. They close a batch when it has
enough rows or enough bytes, and for the bytes ask every column for its size after every row; they put each row into
another one; and Java has a query to plan. Here batches have few rows, and no row may be large: one that is comes
without its values, the task says so and ends, and whoever started the job takes the other way.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import reduce
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from pyspark import RDD
    from pyspark.sql import Column, DataFrame, SparkSession

ROWS = 2_000
"""Rows of a batch."""

LARGEST_ROW = 16 << 10
"""Bytes that the texts and lists of a row may have together. A batch has at most 32 MB of them: half of what Spark
closes a batch at."""

_IS_LARGE = "is large"
_BYTES_OF_A_NUMBER = 8
_SET_BY_THE_CALLER = (
    "spark.sql.execution.arrow.maxBytesPerBatch",
    "spark.sql.execution.arrow.maxRecordsPerBatch",
)


def can_be_counted(frame: DataFrame) -> bool:
    """Whether the size of a row can be told by a glance at its texts and lists, and the session says nothing of
    batches itself."""
    conf = frame.sparkSession._jsparkSession.sessionState().conf()
    return not any(conf.contains(name) for name in _SET_BY_THE_CALLER) and all(
        _is_plain(field.dataType) for field in frame.schema
    )


class LargeRow(Exception):
    """A row that is too large to be counted only. No failure: its task ends, and the rows are to be weighed."""


def counted_batches(frame: DataFrame) -> tuple[RDD[bytes], pa.Schema]:
    """The rows of a frame that can be counted: messages of Arrow, and the schema to read them by (`read_batches`)."""
    from pyspark import RDD
    from pyspark.serializers import NoOpSerializer
    from pyspark.sql.pandas.types import to_arrow_schema

    guarded = _guarded(frame)
    java = guarded._jdf.toArrowBatchRdd(ROWS, "UTC", False, False).toJavaRDD()
    found: Any = RDD(java, frame.sparkSession.sparkContext, NoOpSerializer())
    return found, to_arrow_schema(guarded.schema, timezone="UTC")


def read_batches(messages: Iterator[bytes], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """In a task: the batches of one partition. Raises LargeRow instead of one that has such a row."""
    for message in messages:
        batch = pa.ipc.read_record_batch(pa.py_buffer(message), schema)
        if schema.names[-1] != _IS_LARGE:
            yield batch
            continue
        if pc.any(batch.column(_IS_LARGE)).as_py():
            raise LargeRow
        yield batch.select(schema.names[:-1])


@contextmanager
def settings_for_tasks(session: SparkSession) -> Iterator[None]:
    """Tell tasks of the jobs that this thread starts meanwhile what the session has set.

    Expressions ask for some settings while they are evaluated. Spark sends them along with a query, as local properties
    of its jobs, and leaves that out where the rows of a frame become an RDD of something else.
    """
    context = session.sparkContext._jsc.sc()
    before = context.getLocalProperties()
    told = before.clone()
    told.putAll(session._jsparkSession.sessionState().conf().settings())
    context.setLocalProperties(told)
    try:
        yield
    finally:
        context.setLocalProperties(before)


def _guarded(frame: DataFrame) -> DataFrame:
    """The frame, and in a last column whether a row is too large; such a row has no texts and lists any more."""
    from pyspark.sql import functions

    sizes = [_size(field.name, field.dataType) for field in frame.schema if not _is_fixed(field.dataType)]
    if not sizes:
        return frame
    sized = frame.withColumn(_IS_LARGE, reduce(lambda some, more: some + more, sizes) > LARGEST_ROW)
    small = ~functions.col(_IS_LARGE)
    columns = [
        functions.col(field.name)
        if _is_fixed(field.dataType)
        else functions.when(small, functions.col(field.name)).alias(field.name)
        for field in frame.schema
    ]
    return sized.select(*columns, _IS_LARGE)


def _size(name: str, type_: Any) -> Column:
    from pyspark.sql import functions, types

    column = functions.col(name)
    if isinstance(type_, types.ArrayType):
        size = functions.array_size(column) * _BYTES_OF_A_NUMBER
    else:
        size = functions.octet_length(column)
    return functions.coalesce(size, functions.lit(0))


def _is_plain(type_: Any) -> bool:
    """Numbers, days, moments, texts, and lists of such as have a fixed size."""
    from pyspark.sql import types

    if isinstance(type_, types.ArrayType):
        return _is_fixed(type_.elementType)
    return isinstance(type_, types.StringType) or _is_fixed(type_)


def _is_fixed(type_: Any) -> bool:
    from pyspark.sql import types

    fixed = (types.NumericType, types.BooleanType, types.DateType, types.TimestampType, types.TimestampNTZType)
    return isinstance(type_, fixed)
