"""Rows on their way from Spark to Python tasks, in batches that are counted and not weighed.

Spark closes a batch when it has enough rows or enough bytes. For the bytes it asks every column for its size after
every row, and with ten columns or less that takes longer than all else about handing a row over. Batches of fewer rows
than usual keep within their bounds without: a batch fails beyond 2 GB, which they reach at half a megabyte each.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROWS = 4_000
"""Rows of a batch that is not weighed. A thousand would cost a twentieth more."""

_BYTES = "spark.sql.execution.arrow.maxBytesPerBatch"
_RECORDS = "spark.sql.execution.arrow.maxRecordsPerBatch"
_OF_PYTHON = re.compile("Python|InArrow|InPandas")
"""What Spark's steps through Python are called."""

_ANY_NUMBER = str(2**31 - 1)
"""Spark's word for not weighing."""


@contextmanager
def unweighed_batches(session: SparkSession) -> Iterator[None]:
    """For the jobs that this thread starts meanwhile. What the session says itself about either setting stands.

    Tasks know the settings of SQL by the local properties of their job, where Spark puts those that a session has set.
    """
    context = session.sparkContext
    if any(_is_set(session, name) for name in (_BYTES, _RECORDS)):
        yield
        return
    before = {name: context.getLocalProperty(name) for name in (_BYTES, _RECORDS)}
    try:
        context.setLocalProperty(_BYTES, _ANY_NUMBER)
        context.setLocalProperty(_RECORDS, str(ROWS))
        yield
    finally:
        for name, value in before.items():
            context.setLocalProperty(name, value)


def has_small_rows(frame: DataFrame) -> bool:
    """Whether nobody expects megabytes in a row, and no other Python step of the plan gets batches of another size."""
    if not all(_is_small(field.dataType) for field in frame.schema):
        return False
    return not _OF_PYTHON.search(str(frame._jdf.queryExecution().optimizedPlan().toString()))


def _is_small(type_: Any) -> bool:
    """Numbers, days, moments, texts, and lists of such; a list of vectors or a binary value may be anything."""
    from pyspark.sql import types

    if isinstance(type_, types.ArrayType):
        return _is_small(type_.elementType) and not isinstance(type_.elementType, types.ArrayType | types.StringType)
    return isinstance(type_, types.AtomicType) and not isinstance(type_, types.BinaryType)


def _is_set(session: SparkSession, name: str) -> bool:
    return bool(session._jsparkSession.sessionState().conf().contains(name))
