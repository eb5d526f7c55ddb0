"""`Result.to_spark()`: rows of a query that are in this process, as a Spark frame."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from omnigraph.read.result.result import Result
from omnigraph.spark.session.session import frame_session
from omnigraph.spark.types import travelling_type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def result_frame(result: Result, session: Any = None) -> DataFrame:
    """The rows as a frame. Without a session the active one is used, or one is built."""
    import pyarrow as pa

    used = session or frame_session()
    table = result.to_arrow()
    target = pa.schema([pa.field(field.name, travelling_type(field.type)) for field in table.schema])
    return used.createDataFrame(table.cast(target))
