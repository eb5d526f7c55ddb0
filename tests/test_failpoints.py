"""Failpoints: off by default, named, and doing what they say."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from omnigraph import failpoints
from omnigraph.failpoints import FailpointError, FailpointMisuse, active, declare, failpoint, hits

declare("test.here", "in this test")


def test_nothing_happens_when_off() -> None:
    assert not failpoints._enabled
    failpoint("test.here")
    failpoint("no such name")


def test_an_unused_failpoint_costs_next_to_nothing() -> None:
    spent = []
    for _ in range(20):
        started = time.perf_counter()
        for _ in range(10_000):
            failpoint("test.here")
        spent.append(time.perf_counter() - started)
    assert min(spent) < 0.05


def test_raise() -> None:
    with active("test.here", "raise"):
        with pytest.raises(FailpointError, match=r"test\.here"):
            failpoint("test.here")
        failpoint("test.other")
    failpoint("test.here")


def test_raise_at_the_nth_hit_only() -> None:
    with active("test.here", "raise:3"):
        failpoint("test.here")
        failpoint("test.here")
        with pytest.raises(FailpointError):
            failpoint("test.here")
        failpoint("test.here")
        assert hits("test.here") == 4


def test_pause_until_the_file_exists(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    with active("test.here", f"pause:{gate}"):
        thread = threading.Thread(target=failpoint, args=("test.here",))
        thread.start()
        deadline = time.monotonic() + 60
        while not Path(f"{gate}.reached").exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        assert thread.is_alive()
        gate.touch()
        thread.join(60)
        assert not thread.is_alive()


def test_sleep() -> None:
    with active("test.here", "sleep:0.05"):
        started = time.monotonic()
        failpoint("test.here")
        assert time.monotonic() - started >= 0.05


def test_unknown_names_and_actions_are_refused_with_the_near_ones() -> None:
    with pytest.raises(FailpointMisuse, match=r"did you mean test\.here"), active("test.hre", "raise"):
        pass
    for action in ("explode", "raise:0", "kill:x", "pause:", "sleep:soon"):
        with pytest.raises(FailpointMisuse, match="is not a failpoint action"), active("test.here", action):
            pass
    with pytest.raises(FailpointMisuse, match="name=action"):
        failpoints.parse("nonsense")


def _run(environment: str, code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", f"from omnigraph.failpoints import declare, failpoint\ndeclare('a.b', '')\n{code}"],
        env={**os.environ, failpoints.ENVIRONMENT_VARIABLE: environment},
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_kill_from_the_environment() -> None:
    done = _run("a.b=kill:2", "failpoint('a.b'); print('once', flush=True); failpoint('a.b'); print('twice')")
    assert done.returncode == -9
    assert done.stdout == "once\n"


def test_an_unknown_name_in_the_environment_is_an_error_when_the_first_failpoint_is_reached() -> None:
    done = _run("a.c=raise", "print('imported', flush=True); failpoint('a.b')")
    assert done.stdout == "imported\n"
    assert "no failpoint is called `a.c` (did you mean a.b?)" in done.stderr


def test_importing_failpoints_imports_nothing_heavy() -> None:
    done = _run("", "import sys; print([m for m in ('lance', 'pyarrow', 'pyspark', 'duckdb') if m in sys.modules])")
    assert done.stdout == "[]\n"


def test_a_failpoint_of_a_module_that_is_not_imported_yet_can_be_switched_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(failpoints, "KNOWN", {})
    monkeypatch.setattr(failpoints, "_import_every_module", lambda: declare("test.later", "In a module of its own"))
    with active("test.later", "raise"), pytest.raises(FailpointError):
        failpoint("test.later")
