"""Merge and difference on executors: rows are compared and written by tasks, decided and committed by the driver."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from omnigraph.config import settings
from omnigraph.merge.placement import Placement
from omnigraph.spark.session.progress import run_job
from omnigraph.spark.session.session import spark_session
from omnigraph.spark.spread import spread

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def spark_placement(
    session: SparkSession | None = None,
    *,
    least_rows: int | None = None,
    operation: str = "merge",
    source: str | None = None,
    place: str | None = None,
) -> Placement:
    """Spread what has at least `least_rows` changed rows (as a setting: one batch) over the executors.

    A session is made when there is something to spread, not before: most merges of a large graph are small. Spark shows
    the jobs as those of the `operation`, on what it reads (`source`) or where it writes (`place`).
    """
    rows = settings().merge_stage_batch_rows if least_rows is None else least_rows

    def run_all(function: Callable[[Any], Any], items: Sequence[Any], doing: str) -> list[Any]:
        chosen = session or spark_session()
        with run_job(chosen, operation, source=source, place=place) as job:
            job.step(doing)
            return spread(chosen, function, items)

    return Placement("spark", run_all, rows)
