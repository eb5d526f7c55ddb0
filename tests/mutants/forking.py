"""A pytest plugin that tries one change after the other: a child for each, with the tests loaded and its switch set."""

from __future__ import annotations

import builtins
import contextlib
import os
import resource
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

WALL_SECONDS = 90.0
"""A change that makes a test wait for ever is noticed after so long."""


@dataclass(frozen=True)
class Trial:
    """A change by its number, the tests to run in their order, and the seconds of processor that they may take."""

    number: int
    tests: list[str]
    seconds: float


class Forking:
    """Runs trials instead of the tests that were collected. `told` gets each trial and the test that noticed it."""

    def __init__(self, trials: Iterator[Trial], told: Callable[[Trial, str | None], None]) -> None:
        self.trials = trials
        self.told = told

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Take the place of pytest's own loop."""
        items = {item.nodeid: item for item in session.items}
        for planned in self.trials:
            # A test that was recorded and is not there any more, or does not load, tells nothing.
            trial = replace(planned, tests=[name for name in planned.tests if name in items])
            self.told(trial, _tried([items[name] for name in trial.tests], trial))
        return True


def _tried(items: list[pytest.Item], trial: Trial) -> str | None:
    """The name of the first test that fails with the change, or None."""
    if not items:
        return None
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _try(items, trial, writing)
    os.close(writing)
    until = time.monotonic() + WALL_SECONDS
    ended = 0
    while not ended and time.monotonic() < until:
        ended, _ = os.waitpid(child, os.WNOHANG)
        time.sleep(0.01)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child, signal.SIGKILL)  # the session of the child, and so what its tests have started
    if not ended:
        os.waitpid(child, 0)
    with os.fdopen(reading, "rb") as told:
        lines = told.read().decode(errors="replace").splitlines()
    if not lines:
        return "no test began"
    return None if lines[-1] == "all passed" else lines[-1]


def _try(items: list[pytest.Item], trial: Trial, writing: int) -> None:
    os.setsid()
    os.environ["MUTANT"] = str(trial.number)
    vars(builtins)["MUTANT"] = trial.number
    limit = int(30 + 3 * trial.seconds)
    resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 5))
    silence = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(silence, stream)
    try:
        for item, after in zip(items, [*items[1:], None], strict=True):
            os.write(writing, f"{item.nodeid} did not end\n".encode())
            failed = [_last_line(report) for report in _reports(item, after) if report.failed]
            if failed:
                os.write(writing, f"{item.nodeid}: {failed[0][:200]}\n".encode())
                os._exit(1)
        os.write(writing, b"all passed\n")
    finally:
        os._exit(0)


def _reports(item: pytest.Item, after: pytest.Item | None) -> list[pytest.TestReport]:
    from _pytest.runner import runtestprotocol

    return runtestprotocol(item, log=False, nextitem=after)


def _last_line(report: pytest.TestReport) -> str:
    crash = getattr(report.longrepr, "reprcrash", None)
    return str(crash.message).splitlines()[0] if crash is not None and crash.message else "failed"


def collected(root: Path, tests: list[str], plugin: Forking) -> int:
    """Collect the tests once and go through the trials."""
    os.chdir(root)
    return int(pytest.main(["-q", "--no-header", "-p", "no:cacheprovider", "--tb=no", *tests], plugins=[plugin]))
