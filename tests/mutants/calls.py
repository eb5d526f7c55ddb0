"""A pytest plugin that writes down which lines of the product each test runs, and how long the test takes.

`pytest -p tests.mutants.calls …` with `MUTANTS_CALLS` naming the file to write. Threads are seen too, child processes
are not. Only tests that pass are written down: the others say nothing about a change.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest

PACKAGE = str(Path("src", "omnigraph")) + os.sep
ROOMS = ("read", "merge", "ledger")
ENOUGH = 20
"""Calls of one function in one test whose lines are looked at; a later one seldom takes a new way, and each costs."""


class Lines:
    """What ran since the last look."""

    def __init__(self) -> None:
        self.seen: dict[str, set[int]] = defaultdict(set)
        self.calls: Counter[CodeType] = Counter()

    def __call__(self, frame: FrameType, event: str, argument: Any) -> Any:
        path = _path_in_rooms(frame.f_code.co_filename)
        if path is None:
            return None
        self.calls[frame.f_code] += 1
        if self.calls[frame.f_code] > ENOUGH:
            return None
        add = self.seen[path].add
        add(frame.f_lineno)

        def line(frame: FrameType, event: str, argument: Any) -> Any:
            add(frame.f_lineno)
            return line

        return line


_known: dict[str, str | None] = {}


def _path_in_rooms(file: str) -> str | None:
    if file not in _known:
        _, found, path = file.rpartition(PACKAGE)
        _known[file] = PACKAGE + path if found and path.split(os.sep)[0] in ROOMS else None
    return _known[file]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[Any]:
    """Watch one test with its set-up; fixtures that are shared count for the test that made them."""
    lines = Lines()
    started = time.perf_counter()
    threading.settrace(lines)
    sys.settrace(lines)
    try:
        return (yield)
    finally:
        sys.settrace(None)
        threading.settrace(None)  # type: ignore[arg-type]
        if item.stash.get(PASSED, False):
            seen = {path: sorted(numbers) for path, numbers in sorted(lines.seen.items())}
            line = {"test": item.nodeid, "seconds": time.perf_counter() - started, "lines": seen}
            with Path(os.environ["MUTANTS_CALLS"]).open("a", encoding="utf-8") as out:
                out.write(json.dumps(line) + "\n")


PASSED = pytest.StashKey[bool]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[Any]:
    report = yield
    if report.when == "call":
        item.stash[PASSED] = report.passed
    return report
