"""Ctrl-C while Spark starts."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

IN_A_CALL = """
import signal
from pyspark import SparkContext
from omnigraph.spark.session.session import spark_session

def interrupted(context, conf):
    jvm = SparkContext._gateway.proc
    signal.setitimer(signal.ITIMER_REAL, 0.5)
    try:
        SparkContext._jvm.java.lang.Thread.sleep(60_000)
    finally:
        print(jvm.pid, jvm.poll())

signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGINT))
whole, SparkContext._initialize_context = SparkContext._initialize_context, interrupted
try:
    spark_session()
except KeyboardInterrupt:
    print("interrupted", SparkContext._gateway)
SparkContext._initialize_context = whole
print(spark_session().range(3).count())
"""
START = "from omnigraph.spark.session.session import spark_session\nspark_session()"


def test_an_interrupt_while_the_jvm_starts_ends_the_jvm_too(tmp_path: Path) -> None:
    noted = tmp_path / "pid"
    submit = tmp_path / "bin" / "spark-submit"
    submit.parent.mkdir()
    submit.write_text(f"#!/bin/sh\necho $$ > {noted}.new\nmv {noted}.new {noted}\nexec sleep 60\n")
    submit.chmod(0o755)
    environment = {**os.environ, "SPARK_HOME": str(tmp_path)}
    process = subprocess.Popen(
        [sys.executable, "-c", START], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        deadline = time.monotonic() + 30
        while not noted.exists() and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.05)
        jvm = int(noted.read_text())
        process.send_signal(signal.SIGINT)
        process.wait(30)
        left = _lives(jvm)
    finally:
        process.kill()
    if left:
        os.kill(jvm, signal.SIGKILL)
    assert not left


def test_an_interrupt_while_the_context_is_made_is_told_by_nobody_else_and_the_next_start_works() -> None:
    environment = {**os.environ, "OMNIGRAPH_SPARK_MASTER": "local[1]"}
    done = subprocess.run(
        [sys.executable, "-c", IN_A_CALL], env=environment, capture_output=True, text=True, timeout=120
    )
    jvm, ended, *after = done.stdout.split()
    assert (ended, after) == ("None", ["interrupted", "None", "3"]), done.stderr
    assert not _lives(int(jvm))
    assert done.stderr == ""


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
