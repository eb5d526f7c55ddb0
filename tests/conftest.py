"""Fixtures for every package: an S3 server on loopback, a real process started once per test worker."""

from __future__ import annotations

import functools
import os
import re
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

_ROOT = Path(__file__).resolve().parents[1]

sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
"""The tests start hundreds of processes, commands and workers of Spark, and each would compile the product again."""

os.environ.setdefault("SPARK_CONF_DIR", str(_ROOT / "tests" / "quick_java"))
"""Every JVM of Spark (drivers, clusters, executors) starts with the options of the file there: no JVM of a test lives
long enough for the second compiler and the parallel collector to give back what they cost."""

settings.register_profile("same-each-time", derandomize=True)
settings.register_profile("explore", print_blob=True)
settings.load_profile("explore" if os.environ.get("OMNIGRAPH_EXPLORE") else "same-each-time")
"""What passed once passes again; `make explore` draws new examples."""

os.environ.setdefault("OMNIGRAPH_COMMIT_LOG_DELAY", "0")
"""Each commit is logged before it is acknowledged, so that tests can tell what one write does to the disk and where a
crash hits it. Those that ask for `logged_soon` run as users do."""


@pytest.fixture
def logged_soon(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Commits of `main` are logged together, some time after they were acknowledged, here and in child processes."""
    from omnigraph.config import override

    with override(commit_log_delay=0.1):
        # Not before: settings are read from the environment when they are first asked for.
        monkeypatch.setenv("OMNIGRAPH_COMMIT_LOG_DELAY", "100ms")
        yield


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """What is made once for many tests is made on one worker: the Spark session, since one JVM is enough for the
    machine, and whatever a file makes for all its tests. Such groups come first, the largest before the others.

    Groups by a mark would say the same, but their plugin names them in the ids of tests, which pytest 9.2 ignores.
    """
    if config.getvalue("dist") != "loadgroup":
        return None
    from xdist.scheduler import LoadGroupScheduling

    class SharedOnOneWorker(LoadGroupScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return _shared(nodeid.split("::", 1)[0]) or str(super()._split_scope(nodeid))

    return SharedOnOneWorker(config, log)


@functools.cache
def _shared(file: str) -> str | None:
    text = (_ROOT / file).read_text()
    if re.search(r"\bspark: (Any|object)\b", text):
        return "spark"
    return file if 'scope="module"' in text else None


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Seconds of the workers by folder, so that every run of the suite tells where its time goes."""
    seconds: Counter[str] = Counter()
    for reports in terminalreporter.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport):
                seconds["/".join(Path(report.nodeid.split("::")[0]).parent.parts[:2])] += report.duration
    if len(seconds) > 1:
        terminalreporter.section("seconds by folder")
        for folder, spent in seconds.most_common():
            terminalreporter.write_line(f"{spent:7.1f}  {folder}")
        terminalreporter.write_line(f"{seconds.total():7.1f}  together")


@pytest.fixture(scope="session")
def s3_server() -> Iterator[str]:
    """The address of an S3 server; the usual AWS_* variables point to it while the tests run."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    endpoint = f"http://127.0.0.1:{port}"
    server = subprocess.Popen(
        [sys.executable, "-m", "tests.s3_server", str(port)],
        cwd=_ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    settings = {
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_ALLOW_HTTP": "true",
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true",
    }
    before = {name: os.environ.get(name) for name in settings}
    os.environ.update(settings)
    try:
        _wait_until_it_answers(endpoint, server)
        yield endpoint
    finally:
        server.terminate()
        server.wait(timeout=60)
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@pytest.fixture(scope="session")
def s3_uri(s3_server: str) -> Callable[[], str]:
    """Makes fresh places on the S3 server: each call gives an empty bucket with a prefix."""

    def fresh() -> str:
        bucket = f"graphs-{uuid.uuid4().hex[:12]}"
        urllib.request.urlopen(urllib.request.Request(f"{s3_server}/{bucket}", method="PUT"), timeout=10).close()
        return f"s3://{bucket}/some/graph"

    return fresh


@pytest.fixture(params=["local", pytest.param("s3", marks=pytest.mark.s3)])
def anywhere(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A fresh place for a graph on each kind of store."""
    if request.param == "local":
        return str(tmp_path / "graph")
    fresh: Callable[[], str] = request.getfixturevalue("s3_uri")
    return fresh()


def _wait_until_it_answers(endpoint: str, server: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if server.poll() is not None:
            raise RuntimeError(f"the S3 server ended with code {server.returncode}")
        try:
            urllib.request.urlopen(endpoint, timeout=2).close()
            return
        except (urllib.error.URLError, OSError):
            time.sleep(0.1)
    raise RuntimeError("the S3 server did not answer within 60 s")
