"""Tests run in a child of a process that has the libraries loaded already: most of what a small test takes is that.

The product itself is not loaded before the fork, so that each child loads the source it is to try.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import signal
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

LIBRARIES = (
    "pytest", "_pytest.assertion.rewrite", "xdist", "hypothesis", "lance", "pyarrow.compute", "pyarrow.dataset",
    "pyarrow.parquet", "duckdb", "pandas", "polars", "numpy", "obstore", "orjson", "lark", "typer", "rich", "ulid",
)  # fmt: skip


@dataclass(frozen=True)
class Outcome:
    """How a run ended: pytest's exit code, or None when it had to be ended, and what it wrote."""

    code: int | None
    output: str


def warm_up() -> None:
    """Load what every test needs and no change touches."""
    for name in LIBRARIES:
        importlib.import_module(name)
    assert "omnigraph" not in sys.modules


def run(source: Path, root: Path, tests: list[str], seconds: float) -> Outcome:
    """Run tests in a child that takes the product from `source`; it and its own children end after `seconds`."""
    with tempfile.TemporaryFile() as out:
        child = os.fork()
        if child == 0:
            _become_pytest(source, root, tests, out.fileno())
        until = time.monotonic() + seconds
        code: int | None = None
        while time.monotonic() < until:
            ended, status = os.waitpid(child, os.WNOHANG)
            if ended:
                code = os.waitstatus_to_exitcode(status)
                break
            time.sleep(0.02)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(child, signal.SIGKILL)  # the session of the child: its own children too
        if code is None:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(child, 0)
        out.seek(0)
        return Outcome(code, out.read().decode(errors="replace"))


def _become_pytest(source: Path, root: Path, tests: list[str], out: int) -> None:
    code = 70
    try:
        os.setsid()
        os.dup2(out, 1)
        os.dup2(out, 2)
        os.chdir(root)
        sys.path.insert(0, str(source))
        os.environ["PYTHONPATH"] = str(source)
        os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
        sys.dont_write_bytecode = True
        import pytest

        code = int(pytest.main(["-x", "-q", "--no-header", "-p", "no:cacheprovider", "--tb=line", *tests]))
    finally:
        sys.stdout.flush()
        os._exit(code)
