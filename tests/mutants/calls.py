"""A pytest plugin that writes down which functions of the product each test calls, and how long the test takes.

`pytest -p tests.mutants.calls …` with `MUTANTS_CALLS` naming the file to write. Threads are seen too, child processes
are not.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest

PACKAGE = str(Path("src", "omnigraph")) + os.sep


class Calls:
    """What was called since the last look."""

    def __init__(self) -> None:
        self.codes: set[CodeType] = set()

    def __call__(self, frame: FrameType, event: str, argument: Any) -> None:
        if event == "call":
            self.codes.add(frame.f_code)

    def taken(self) -> list[str]:
        """Functions of the product as `path:line`, and a fresh start."""
        codes, self.codes = self.codes, set()
        places = set()
        for code in codes:
            _, found, path = code.co_filename.rpartition(PACKAGE)
            if found:
                places.add(f"{PACKAGE}{path}:{code.co_firstlineno}")
        return sorted(places)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[Any]:
    """Watch one test with its set-up; fixtures that are shared count for the test that made them."""
    calls = Calls()
    started = time.perf_counter()
    threading.setprofile(calls)
    sys.setprofile(calls)
    try:
        return (yield)
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]
        line = {"test": item.nodeid, "seconds": time.perf_counter() - started, "calls": calls.taken()}
        with Path(os.environ["MUTANTS_CALLS"]).open("a", encoding="utf-8") as out:
            out.write(json.dumps(line) + "\n")
