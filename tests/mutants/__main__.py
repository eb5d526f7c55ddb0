"""`python -m tests.mutants`: change the product, run the tests, report what they did not notice.

First record which tests run which lines: `python -m tests.mutants --record calls.jsonl`. Then `--calls calls.jsonl`.
"""

from __future__ import annotations

import argparse
import compileall
import json
import os
import py_compile
import random
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from tests.mutants import warm
from tests.mutants.calls import ROOMS
from tests.mutants.changes import Change, changes_of
from tests.mutants.choosing import Recording

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = Path("src", "omnigraph")
TESTS = ("read", "merge", "ledger", "write", "maintain", "model/test_violations.py", "query", "surfaces")
"""Where a fault of the three rooms should show. The random tests are left out: they find much, but take long."""
WATCHED = "not spark and not s3 and not slow"


@dataclass(frozen=True)
class Place:
    """One change of one module."""

    module: Path
    change: Change

    def __str__(self) -> str:
        return f"{self.module}, {self.change}"


@dataclass(frozen=True)
class Verdict:
    """What came of one change: the test that noticed it, or none, of so many that run the line."""

    noticed_by: str | None
    tests: int


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("--rooms", nargs="+", default=list(ROOMS), choices=ROOMS)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--part", default="0/1", help="K/N: every Nth change from the Kth on, for several runs")
    parser.add_argument("--first", type=float, default=6, help="seconds of the quickest tests, which are run first")
    parser.add_argument("--most", type=float, default=60, help="seconds of all tests of one change, by the recording")
    parser.add_argument("--minutes", type=float, default=1e9, help="stop after that long")
    parser.add_argument("--out", type=Path, help="write one JSON line for each change here, and skip those it has")
    parser.add_argument("--record", type=Path, help="write down here which tests run what, and do nothing else")
    parser.add_argument("--tests", nargs="+", default=[f"tests/{each}" for each in TESTS], help="what to record")
    parser.add_argument("--calls", type=Path, help="what `--record` wrote")
    given = parser.parse_args()
    if given.record:
        return record(given.record, given.tests)
    if not given.calls:
        parser.error("--calls FILE is needed; `--record FILE` writes it")
    recording = Recording(given.calls)
    part, parts = (int(number) for number in given.part.split("/"))
    places = chosen(given.rooms, given.count, given.seed)[part::parts]
    done = {}
    if given.out and given.out.exists():
        lines = [json.loads(text) for text in given.out.read_text(encoding="utf-8").splitlines()]
        done = {(line["module"], line["change"]): line["noticed_by"] for line in lines}
    until = time.monotonic() + given.minutes * 60
    warm.warm_up()
    with tempfile.TemporaryDirectory(prefix="mutants-") as directory:
        copy = Path(directory, "src")
        shutil.copytree(ROOT / "src", copy, ignore=shutil.ignore_patterns("__pycache__"))
        mode = py_compile.PycInvalidationMode.CHECKED_HASH  # a changed source is never taken for the one before
        compileall.compile_dir(copy, quiet=2, invalidation_mode=mode)
        for place in places:
            key = (str(place.module), str(place.change))
            if key in done:
                continue
            if time.monotonic() > until:
                break
            started = time.monotonic()
            verdict = tried(place, copy, recording, given.first, given.most)
            done[key] = verdict.noticed_by
            line = {
                "module": key[0],
                "change": key[1],
                "noticed_by": verdict.noticed_by,
                "tests": verdict.tests,
                "seconds": round(time.monotonic() - started, 1),
            }
            print(json.dumps(line, ensure_ascii=False), flush=True)
            if given.out:
                with given.out.open("a", encoding="utf-8") as out:
                    out.write(json.dumps(line, ensure_ascii=False) + "\n")
    unnoticed = [key for key, noticed in done.items() if noticed is None]
    print(f"{len(done) - len(unnoticed)} of {len(done)} changes noticed")
    for module, change in unnoticed:
        print(f"  not noticed: {module}, {change}")
    return 0 if not unnoticed else 1


def record(path: Path, tests: list[str]) -> int:
    """Run tests once, watched; what they run is added to the file."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.mutants.calls", "-m", WATCHED, *tests]
    return subprocess.run(command, cwd=ROOT, env={**os.environ, "MUTANTS_CALLS": str(path.resolve())}).returncode


def chosen(rooms: list[str], count: int, seed: int) -> list[Place]:
    """As many changes of each room, of modules in the measure of their size, the same for one seed."""
    dice = random.Random(seed)
    places = []
    for room in rooms:
        modules = sorted((ROOT / PACKAGE / room).rglob("*.py"))
        here = [
            Place(path.relative_to(ROOT), change)
            for path in modules
            for change in changes_of(path.read_text(encoding="utf-8"))
        ]
        places += dice.sample(here, min(len(here), -(-count // len(rooms))))
    dice.shuffle(places)
    return places[:count]


def tried(place: Place, copy: Path, recording: Recording, first: float, most: float) -> Verdict:
    """Change the copy, run the tests that run the line, put the copy back."""
    target = copy / place.module.relative_to("src")
    before = target.read_text(encoding="utf-8")
    stages = recording.stages(place.module, before, place.change.line, first, most)
    target.write_text(place.change.apply(before), encoding="utf-8")
    number = 0
    try:
        for stage in stages:
            number += len(stage)
            outcome = warm.run(copy, ROOT, stage, 30 + 3 * most)
            if outcome.code is None:
                return Verdict(f"{stage[0]} and others did not end", number)
            if outcome.code not in (0, 5):
                failed = [line for line in outcome.output.splitlines() if line.startswith(("FAILED", "ERROR"))]
                return Verdict((failed or [outcome.output[-200:]])[0][:200], number)
    finally:
        target.write_text(before, encoding="utf-8")
    return Verdict(None, number)


if __name__ == "__main__":
    sys.exit(main())
