"""An object store that answers 503: now and then or for some seconds, which nobody notices; and to every write of a
table, which ends the load with an error and leaves nothing that anybody sees."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from omnigraph.errors import OmniGraphError
from omnigraph.ledger.store import create_store
from tests.spark.failures.graph_files import SCHEMA, counted, left_over, write_people
from tests.spark.failures.throttling_proxy import Throttle, throttled

pytestmark = [pytest.mark.spark, pytest.mark.s3, pytest.mark.slow]


@pytest.fixture
def throttle(s3_server: str, spark: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Throttle]:
    """The driver and the workers reach the store through a server that may refuse."""
    environment = spark.sparkContext.environment
    with throttled(s3_server) as (endpoint, chosen):
        for name in ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"):
            monkeypatch.setenv(name, endpoint)
            environment[name] = endpoint
        names = ("AWS_ALLOW_HTTP", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION")
        for name in names:
            environment[name] = {"AWS_ALLOW_HTTP": "true", "AWS_REGION": "us-east-1"}.get(name, "test")
        try:
            yield chosen
        finally:
            for name in ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", *names):
                del environment[name]


def test_a_load_onto_a_store_that_throttles(
    spark: Any, throttle: Throttle, s3_uri: Callable[[], str], tmp_path: Path
) -> None:
    from omnigraph.spark.load.load import load

    data = str(write_people(tmp_path / "people.jsonl", 60))
    with create_store(s3_uri(), SCHEMA) as store:
        head = store.snapshot().head
        throttle.refuses = lambda number, method, path: method in ("PUT", "POST") and "/data/" in path
        with pytest.raises(OmniGraphError) as caught:
            load(spark, store, data, mode="append")
        for part in ("while decoding, checking and writing", "people.jsonl", "Nothing was published"):
            assert part in caught.value.message
        assert throttle.refused
        assert store.snapshot().head == head
        throttle.refuses = lambda number, method, path: number % 4 == 0
        throttle.refused = 0
        load(spark, store, data, mode="append")
        assert throttle.refused
        throttle.refuses = lambda number, method, path: False
        assert counted(store) == [59, 60]
        assert left_over(store) == []


def test_some_seconds_without_an_answer_are_waited_for(
    spark: Any, throttle: Throttle, s3_uri: Callable[[], str]
) -> None:
    from omnigraph.spark.source.datasource import register

    register(spark)
    with create_store(s3_uri(), SCHEMA) as store:
        frame = spark.range(60).selectExpr("concat('p', id) AS slug")
        until = time.monotonic() + 4
        throttle.refuses = lambda number, method, path: time.monotonic() < until
        frame.write.format("omnigraph").option("type", "Person").mode("append").save(store.uri)
        assert throttle.refused
        until = time.monotonic() + 4
        assert spark.read.format("omnigraph").option("type", "Person").load(store.uri).count() == 60
        assert store.snapshot().pin("node:Person").row_count == 60
