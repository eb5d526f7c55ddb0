"""One small Spark session for every Spark test: starting one costs more than most of the tests."""

from __future__ import annotations

import pytest

TINY = {
    "spark.driver.memory": "1g",
    "spark.sql.shuffle.partitions": "2",
    "spark.speculation": "false",
    "spark.task.maxFailures": "4",
}


@pytest.fixture(scope="session")
def spark() -> object:
    from omnigraph.spark.session.session import spark_session

    # The second number of `local[2,2]` lets a failed task run again, as on a cluster.
    return spark_session("local[2,2]", TINY)
