"""Merge and difference on executors: rows are compared and written by tasks, decided and committed by the driver."""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnigraph.config import settings
from omnigraph.merge.placement import Placement
from omnigraph.spark.session.session import spark_session
from omnigraph.spark.spread import spread

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def spark_placement(session: SparkSession | None = None, *, least_rows: int | None = None) -> Placement:
    """Spread what has at least `least_rows` changed rows (as a setting: one batch) over the executors.

    A session is made when there is something to spread, not before: most merges of a large graph are small.
    """
    rows = settings().merge_stage_batch_rows if least_rows is None else least_rows
    return Placement("spark", lambda function, items: spread(session or spark_session(), function, items), rows)
