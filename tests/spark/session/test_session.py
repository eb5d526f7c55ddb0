"""The session: lazy, the caller's own first, tuned for one machine, quiet, and clear about what it refuses."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from typing import Any

import pytest

from omnigraph.errors import BadRequest, SparkUnavailable
from omnigraph.spark.session import session as sessions
from omnigraph.spark.session.progress import log_lines, run_job
from omnigraph.write.progress import Progress
from omnigraph.write.progress_lines import describe


def run_python(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, **environment},
        check=False,
    )


def test_importing_the_package_imports_no_pyspark() -> None:
    ran = run_python(
        """
        import sys, omnigraph.spark.session.session, omnigraph.spark.session.progress
        import omnigraph.spark.session.starting.java
        assert omnigraph.spark.session.session.active_session() is None
        assert not [m for m in sys.modules if m.split(".")[0] in ("pyspark", "py4j")]
        """
    )
    assert ran.returncode == 0, ran.stderr


def test_spark_connect_is_refused_with_a_clear_message() -> None:
    ran = run_python(
        """
        import importlib.util, sys
        from omnigraph.errors import SparkUnavailable
        from omnigraph.spark.session.session import spark_session
        try:
            spark_session("sc://somewhere:15002")
        except SparkUnavailable as error:
            assert "Spark Connect" in error.message and "local[*]" in error.message
            for needed in ("job groups", "accumulators", "status tracker"):
                assert needed in error.message
            assert ("it lacks grpcio, " in error.message) == (importlib.util.find_spec("grpc") is None), error.message
            assert "pyspark" not in sys.modules
            sys.exit(7)
        """
    )
    assert ran.returncode == 7, ran.stderr


@pytest.mark.parametrize("name", ["SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED"])
def test_where_the_environment_is_for_spark_connect_jobs_are_refused_and_auto_stays_in_process(name: str) -> None:
    """Spark starts no JVM for a process with the one, and PySpark makes no classic session in one with the other."""
    ran = run_python(
        """
        import sys
        from omnigraph.errors import SparkUnavailable
        from omnigraph.spark.session.engine import choose_engine
        from omnigraph.spark.session.session import frame_session, spark_session
        assert choose_engine("auto", input_bytes=1 << 60) == choose_engine("local") == "local"
        for call in (spark_session, frame_session, lambda: spark_session("local[1]"), lambda: choose_engine("spark")):
            try:
                print("made", call())
            except SparkUnavailable as error:
                print(error.message)
        assert "pyspark" not in sys.modules
        """,
        **{name: "sc://127.0.0.1:1"},
    )
    assert ran.returncode == 0, ran.stderr
    told = ran.stdout.splitlines()
    assert len(told) == 4
    for line in told:
        assert name in line.split(" speaks Spark Connect, which has no SparkContext")[0], line


def test_without_java_nothing_is_started(tmp_path: Any) -> None:
    ran = run_python(
        """
        import sys
        from omnigraph.errors import SparkUnavailable
        from omnigraph.spark.session.session import spark_session
        try:
            spark_session()
        except SparkUnavailable as error:
            assert "Install a JDK" in error.message
            assert "pyspark" not in sys.modules
            sys.exit(7)
        """,
        JAVA_HOME=str(tmp_path),
    )
    assert ran.returncode == 7, ran.stderr


def test_settings_that_are_not_sparks_are_refused() -> None:
    with pytest.raises(BadRequest, match=r"`executor\.memory` is not a Spark setting"):
        sessions.spark_session(conf={"executor.memory": "1g"})


def test_local_settings_follow_the_machine() -> None:
    gigabyte = 1 << 30
    small = sessions.local_settings("local[*]", 2 * gigabyte, 2)
    large = sessions.local_settings("local[*]", 256 * gigabyte, 32)
    assert (small["spark.driver.memory"], large["spark.driver.memory"]) == ("1024m", "16384m")
    assert (small["spark.sql.shuffle.partitions"], large["spark.sql.shuffle.partitions"]) == ("8", "128")
    assert small["spark.driver.bindAddress"] == small["spark.driver.host"] == "127.0.0.1"
    assert small["spark.python.unix.domain.socket.enabled"] == "true"
    assert small["spark.buffer.size"] == "262144"


@pytest.mark.parametrize(
    ("master", "cores"), [("local", 1), ("local[3]", 3), ("local[*]", 8), ("local[2,4]", 2), ("yarn", 8)]
)
def test_cores_are_read_from_the_master(master: str, cores: int) -> None:
    assert sessions.cores_of(master, 8) == cores


@pytest.mark.spark
@pytest.mark.slow
def test_a_built_session_is_quiet_and_takes_master_and_settings_from_the_environment() -> None:
    ran = run_python(
        """
        import sys, os
        from omnigraph.spark.session.session import spark_session
        told = {name: value for name, value in os.environ.items() if name.startswith("PYSPARK")}
        spark = spark_session(conf={"spark.driver.memory": "600m"})
        assert {name: value for name, value in os.environ.items() if name.startswith("PYSPARK")} == told
        assert spark.sparkContext.master == "local[1]"
        assert spark.conf.get("spark.sql.shuffle.partitions") == "3", spark.conf.get("spark.sql.shuffle.partitions")
        assert spark.conf.get("spark.ui.enabled") == "false"
        assert spark.conf.get("spark.driver.host") == "127.0.0.1"
        assert spark.conf.get("spark.sql.adaptive.enabled") == "true"
        assert spark.conf.get("spark.driver.memory") == "600m"
        def where(batches):
            import sys, pyarrow as pa
            for _ in batches:
                loaded = [name for name in ("duckdb", "lance", "pandas") if name in sys.modules]
                yield pa.RecordBatch.from_pydict({"python": [sys.executable], "loaded": [loaded]})
        rows = spark.range(1, numPartitions=1).mapInArrow(where, "python string, loaded array<string>").collect()
        assert rows[0].python == sys.executable, rows
        # Workers are forked with the slow imports done, but for Lance, which would not survive the fork.
        assert rows[0].loaded == ["duckdb", "pandas"], rows
        """,
        OMNIGRAPH_SPARK_MASTER="local[1]",
        OMNIGRAPH_SPARK_CONF="spark.sql.shuffle.partitions=3, spark.driver.memory=500m",
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout == ""
    assert ran.stderr == ""


@pytest.mark.spark
@pytest.mark.slow
def test_a_master_that_cannot_be_had_is_one_clear_error() -> None:
    ran = run_python(
        """
        import sys
        from omnigraph.errors import SparkUnavailable
        from omnigraph.spark.session.session import spark_session
        try:
            spark_session("nonsense://here", {"spark.driver.memory": "600m"})
        except SparkUnavailable as error:
            assert "Spark did not start on nonsense://here" in error.message, error.message
            sys.exit(7)
        """
    )
    assert ran.returncode == 7, ran.stderr


@pytest.mark.spark
def test_an_active_session_is_used_as_it_is(spark: Any) -> None:
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(sessions.spark_session()))
    thread.start()
    thread.join()
    assert sessions.spark_session() is spark
    assert sessions.active_session() is spark
    assert found[0].sparkContext is spark.sparkContext


@pytest.mark.spark
def test_other_settings_than_the_active_session_has_are_refused(spark: Any) -> None:
    with pytest.raises(BadRequest, match=r"used as it is, so master=yarn, spark\.sql\.shuffle\.partitions=99"):
        sessions.spark_session("yarn", {"spark.sql.shuffle.partitions": "99"})
    same = {"spark.sql.shuffle.partitions": spark.conf.get("spark.sql.shuffle.partitions")}
    assert sessions.spark_session(spark.sparkContext.master, same) is spark


@pytest.mark.spark
def test_progress_reports_tasks_records_and_the_end(spark: Any) -> None:
    seen: list[Progress] = []
    with run_job(spark, "count", seen.append) as job:
        job.step("counting")
        records = job.records

        def count(batches: Any) -> Any:
            import time

            for batch in batches:
                records.add(batch.num_rows)
                time.sleep(0.4)
                yield batch

        assert spark.range(100, numPartitions=4).mapInArrow(count, "id long").count() == 100
    last = seen[-1]
    assert last.finished
    assert (last.job, last.step, last.records) == ("count", "counting", 100)
    assert last.tasks_done == last.tasks_total >= 4
    assert [look.finished for look in seen[:-1]] == [False] * (len(seen) - 1)
    assert len(seen) > 1
    assert "count: done in" in describe(last)
    assert "100 records" in describe(last)


@pytest.mark.spark
def test_the_job_group_ends_with_the_job(spark: Any) -> None:
    context = spark.sparkContext
    context.setJobGroup("mine", "my own work")
    try:
        with run_job(spark, "inner") as job:
            assert context.getLocalProperty("spark.jobGroup.id") == job.group
        assert context.getLocalProperty("spark.jobGroup.id") == "mine"
    finally:
        context.setLocalProperty("spark.jobGroup.id", None)


def slow_job(spark: Any) -> int:
    """Minutes of work that can be cancelled. The task is a function inside, which travels as a whole."""

    def slow(batches: Any) -> Any:
        for batch in batches:
            time.sleep(200)
            yield batch

    return spark.range(2, numPartitions=2).mapInArrow(slow, "id long").count()


@pytest.mark.spark
def test_a_failure_on_the_driver_cancels_the_job_group(spark: Any) -> None:
    failures: list[BaseException] = []

    def background() -> None:
        spark.sparkContext.setLocalProperty("spark.jobGroup.id", group)
        try:
            slow_job(spark)
        except Exception as error:
            failures.append(error)

    started = time.monotonic()
    with pytest.raises(RuntimeError, match="stop here"), run_job(spark, "doomed") as job:  # noqa: PT012
        group = job.group
        thread = threading.Thread(target=background)
        thread.start()
        while not spark.sparkContext.statusTracker().getJobIdsForGroup(group):
            time.sleep(0.05)
        raise RuntimeError("stop here")
    thread.join(timeout=120)
    assert failures, "the job went on after its driver had failed"
    assert time.monotonic() - started < 180


@pytest.mark.spark
def test_a_callback_that_raises_ends_the_work_as_in_process_unless_it_is_done(
    spark: Any, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(now: Progress) -> None:
        raise LookupError(f"no place to show {now.job}")

    started = time.monotonic()
    with pytest.raises(LookupError, match="no place to show doomed"), run_job(spark, "doomed", refuse):
        slow_job(spark)
    assert time.monotonic() - started < 180, "the job went on"
    with pytest.raises(LookupError, match="between"), run_job(spark, "between", refuse) as job:  # noqa: PT012
        while job.given_up is None:
            time.sleep(0.05)
        job.step("what would publish")
    with caplog.at_level("WARNING"), run_job(spark, "short", lambda now: refuse(now) if now.finished else None):
        spark.range(1).count()
    assert caplog.messages == [
        "short is done; its progress callback failed: LookupError('no place to show short')",
    ]


@pytest.mark.spark
def test_an_interrupt_in_the_middle_of_a_call_cancels_at_once_and_the_next_call_gets_its_own_answer(spark: Any) -> None:
    context = spark.sparkContext
    context.setLocalProperty("my.own", "kept")

    def press(group: str) -> None:
        while not context.statusTracker().getJobIdsForGroup(group):
            time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGINT)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    started = time.monotonic()
    try:
        with pytest.raises(KeyboardInterrupt), run_job(spark, "interrupted") as job:  # noqa: PT012
            thread = threading.Thread(target=press, args=(job.group,))
            thread.start()
            slow_job(spark)
    finally:
        signal.signal(signal.SIGINT, before)
    thread.join()
    assert time.monotonic() - started < 180, "the cancellation waited for the job"
    assert context.getLocalProperty("my.own") == "kept"
    assert context.getLocalProperty("spark.jobGroup.id") is None
    assert [spark.range(number).count() for number in (3, 5)] == [3, 5]


@pytest.mark.spark
def test_an_interrupt_while_rows_are_fetched_cancels_at_once_too(spark: Any) -> None:
    def slow(batches: Any) -> Any:
        for batch in batches:
            time.sleep(60)
            yield batch

    def press(group: str) -> None:
        while not spark.sparkContext.statusTracker().getJobIdsForGroup(group):
            time.sleep(0.05)
        time.sleep(1)
        os.kill(os.getpid(), signal.SIGINT)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    started = time.monotonic()
    try:
        with pytest.raises(KeyboardInterrupt), run_job(spark, "interrupted") as job:  # noqa: PT012
            thread = threading.Thread(target=press, args=(job.group,))
            thread.start()
            spark.range(2, numPartitions=2).mapInArrow(slow, "id long").toArrow()
    finally:
        signal.signal(signal.SIGINT, before)
    thread.join()
    assert time.monotonic() - started < 40, "PySpark waited for the end of the job"


def test_log_lines_come_now_and_then_and_at_the_end(caplog: pytest.LogCaptureFixture) -> None:
    report = log_lines(every=3600)
    look = Progress("load", "decode", 10, 2_500_000, 1, 4, 2.0)
    with caplog.at_level("INFO"):
        report(look)
        assert caplog.messages == []
        report(Progress("load", "decode", 20, 2_500_000, 4, 4, 2.0, finished=True))
    assert caplog.messages == ["load: done in 2.0 s, 20 records, 2.5 MB, 10 records/s, 1.2 MB/s, tasks 4/4"]


def test_unavailable_is_told_apart_from_a_bad_request() -> None:
    assert SparkUnavailable("x").outcome.exit_code == 1
    assert not isinstance(SparkUnavailable("x"), BadRequest)
