"""What PySpark logs of an error in a query: nothing in a session that was built here, nothing of our jobs in any."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.errors import SparkJobFailed

pytestmark = pytest.mark.spark


class Heard(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


def test_an_error_of_a_frame_is_raised_and_not_logged_beside_that(spark: Any, tmp_path: Path) -> None:
    from pyspark.logger import PySparkLogger

    logger = PySparkLogger.getLogger("SQLQueryContextLogger")
    assert not logger.isEnabledFor(logging.ERROR), "the session was built here"
    heard = Heard()
    logger.addHandler(heard)
    level = logger.level
    logger.setLevel(logging.WARNING)
    try:
        with og.init(tmp_path / "g.omni", schema="node Person { slug: String @key  age: I32? }") as graph:
            frame = spark.range(9).selectExpr("concat('p', id) AS slug", "cast(1 / (id - 5) AS int) AS age")
            with pytest.raises(SparkJobFailed, match="DIVIDE_BY_ZERO"):
                graph.load(frame, type="Person", mode="append")
            assert heard.lines == []
            with pytest.raises(Exception, match="DIVIDE_BY_ZERO"):
                frame.collect()
            assert len(heard.lines) == 1
    finally:
        logger.setLevel(level)
        logger.removeHandler(heard)
