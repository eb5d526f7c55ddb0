"""A session of the user's own, with settings that nobody here would choose: every one gives what one process gives."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.spark.session import own_session

pytestmark = pytest.mark.spark
EXPLORE = os.environ.get("OMNIGRAPH_EXPLORE") == "1"

AT_RUN_TIME = {
    "spark.sql.session.timeZone": "Asia/Kathmandu",
    "spark.sql.ansi.enabled": "false",
    "spark.sql.caseSensitive": "true",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.timestampType": "TIMESTAMP_NTZ",
    "spark.sql.execution.arrow.pyspark.enabled": "false",
    "spark.sql.execution.arrow.useLargeVarTypes": "true",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "2",
    "spark.sql.python.filterPushdown.enabled": "false",
    "spark.sql.shuffle.partitions": "3",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
}
"""What can be changed while a session runs. All at once in every run of the tests, each alone when exploring."""

FROM_THE_START = {
    "kryo": {"spark.serializer": "org.apache.spark.serializer.KryoSerializer"},
    "speculation": {"spark.speculation": "true", "spark.speculation.minTaskRuntime": "10ms"},
    "no reuse of workers": {"spark.python.worker.reuse": "false"},
    "compression": {"spark.rdd.compress": "true", "spark.sql.execution.arrow.compression.codec": "zstd"},
    "small batches": {"spark.sql.inMemoryColumnarStorage.batchSize": "2", "spark.buffer.size": "4096"},
    "another zone of the machine": {"spark.driver.extraJavaOptions": "-Duser.timezone=America/Caracas"},
    "executors that come and go": {
        "spark.master": "local-cluster[2,1,1024]",
        "spark.executor.memory": "600m",
        "spark.dynamicAllocation.enabled": "true",
        "spark.dynamicAllocation.shuffleTracking.enabled": "true",
        "spark.dynamicAllocation.minExecutors": "0",
        "spark.dynamicAllocation.executorIdleTimeout": "1s",
    },
}
"""What a session has from its start. Each takes a process of its own, so they are tried when exploring."""


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return own_session.round_in_process(tmp_path_factory.mktemp("expected"))


@pytest.mark.parametrize(
    "settings",
    [AT_RUN_TIME, *({name: value} for name, value in AT_RUN_TIME.items() if EXPLORE)],
    ids=lambda settings: next(iter(settings)) if len(settings) == 1 else "all together",
)
def test_settings_that_change_while_the_session_runs(
    spark: Any, settings: dict[str, str], expected: dict[str, Any], tmp_path: Path
) -> None:
    before = {name: spark.conf.get(name, None) for name in settings}
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        assert own_session.round_of_work(spark, tmp_path) == expected
        after = {name: spark.conf.get(name, None) for name in settings}
    finally:
        for name, value in before.items():
            spark.conf.unset(name) if value is None else spark.conf.set(name, value)
    assert after == settings, "the session was changed"


if EXPLORE:

    @pytest.mark.slow
    @pytest.mark.parametrize("names", [(name,) for name in FROM_THE_START], ids=" and ".join)
    def test_settings_that_a_session_has_from_its_start(
        names: tuple[str, ...], expected: dict[str, Any], tmp_path: Path
    ) -> None:
        """A session by the book in a process of its own, whose workers would start a program that is no Python."""
        settings = {setting: value for name in names for setting, value in FROM_THE_START[name].items()}
        done = subprocess.run(
            [sys.executable, "-m", own_session.__name__, str(tmp_path / "é ?#%20"), *map("=".join, settings.items())],
            capture_output=True,
            text=True,
            timeout=400,
            env={**os.environ, "PYSPARK_PYTHON": "/bin/false", "TZ": "America/St_Johns"},
            check=False,
        )
        assert done.returncode == 0, done.stderr[-3000:]
        assert done.stdout.splitlines()[-1] == repr(expected)
        assert [path.name for path in tmp_path.iterdir()] == ["é ?#%20"], "something went to another place"
