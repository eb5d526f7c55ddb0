"""Workers that the system kills because memory is short, at every attempt: the load ends with an error that says where
and what to turn, and leaves nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from omnigraph.errors import SparkJobFailed
from omnigraph.failpoints import ENVIRONMENT_VARIABLE
from omnigraph.ledger.store import create_store
from tests.spark.failures.graph_files import SCHEMA, counted, left_over, write_people

pytestmark = pytest.mark.spark


def test_workers_that_are_always_killed_end_the_load_with_advice_and_leave_nothing(spark: Any, tmp_path: Path) -> None:
    from omnigraph.spark.load.load import load

    data = str(write_people(tmp_path / "people.jsonl", 50))
    with create_store(str(tmp_path / "g.omni"), SCHEMA) as store:
        head = store.snapshot().head
        spark.sparkContext.environment[ENVIRONMENT_VARIABLE] = "spark.load.written=kill"
        try:
            with pytest.raises(SparkJobFailed) as caught:
                load(spark, store, data, mode="append")
        finally:
            del spark.sparkContext.environment[ENVIRONMENT_VARIABLE]
        for part in ("while decoding, checking and writing", "worker", "memory", "spark.executor.memoryOverhead"):
            assert part in caught.value.message
        assert store.snapshot().head == head
        assert left_over(store) == []
        load(spark, store, data, mode="append")
        assert counted(store) == [49, 50]
