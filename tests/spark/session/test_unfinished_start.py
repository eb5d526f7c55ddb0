"""Ctrl-C while Spark starts."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

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


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
