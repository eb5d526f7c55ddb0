"""`python -m tests.mutants`: change the product, run the tests, report what they did not notice.

First record which tests call what: `python -m tests.mutants --record calls.jsonl`. Then `--calls calls.jsonl`. Without
a recording the tests that lie beside a module are run, then those of the whole room, which takes long.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from tests.mutants.changes import Change, changes_of
from tests.mutants.choosing import Recording

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = Path("src", "omnigraph")

WIDER = {
    "read": ["tests/read", "tests/differential"],
    "merge": ["tests/merge", "tests/model"],
    "ledger": ["tests/ledger", "tests/merge", "tests/model", "tests/write/test_concurrency.py", "tests/maintain"],
}
"""Where else a fault of a room should show, after the tests that lie beside the module."""


QUICK_SECONDS = 12.0
"""How long the first tests of a change may take together, by the recording."""


@dataclass(frozen=True)
class Place:
    """One change of one module."""

    module: Path
    change: Change

    @property
    def room(self) -> str:
        return self.module.relative_to(PACKAGE).parts[0]

    def stages(self, recording: Recording | None) -> list[list[str]]:
        """Tests to run, nearest first: each stage only if the one before noticed nothing."""
        if recording is not None:
            source = (ROOT / self.module).read_text(encoding="utf-8")
            recorded = recording.stages(self.module, source, self.change.line, QUICK_SECONDS)
            if recorded:
                return recorded
        beside = ROOT / "tests" / self.module.relative_to(PACKAGE).parent
        own = beside / f"test_{self.module.stem}.py"
        stages = [[str(own.relative_to(ROOT))]] if own.exists() else []
        if beside.is_dir() and beside.name not in WIDER:
            stages.append([str(beside.relative_to(ROOT))])
        stages.append([path for path in WIDER[self.room] if (ROOT / path).exists()])
        return stages


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("--rooms", nargs="+", default=sorted(WIDER), choices=sorted(WIDER))
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--part", default="0/1", help="K/N: every Nth change from the Kth on, for several runs")
    parser.add_argument("--seconds", type=float, default=600, help="the most that the tests of one stage may take")
    parser.add_argument("--minutes", type=float, default=1e9, help="stop after that long")
    parser.add_argument("--out", type=Path, help="write one JSON line for each change here")
    parser.add_argument("--record", type=Path, help="write down here which tests call what, and do nothing else")
    parser.add_argument("--calls", type=Path, help="what `--record` wrote")
    given = parser.parse_args()
    if given.record:
        return record(given.record, given.rooms)
    recording = Recording(given.calls) if given.calls else None
    part, parts = (int(number) for number in given.part.split("/"))
    places = chosen(given.rooms, given.count, given.seed)[part::parts]
    until = time.monotonic() + given.minutes * 60
    unnoticed, done = [], 0
    with tempfile.TemporaryDirectory(prefix="mutants-") as directory:
        copy = Path(directory, "src")
        shutil.copytree(ROOT / "src", copy, ignore=shutil.ignore_patterns("__pycache__"))
        for place in places:
            if time.monotonic() > until:
                break
            started = time.monotonic()
            noticed = noticed_by(place, copy, recording, given.seconds)
            done += 1
            if noticed is None:
                unnoticed.append(place)
            line = {
                "module": str(place.module),
                "change": str(place.change),
                "noticed_by": noticed,
                "seconds": round(time.monotonic() - started),
            }
            print(json.dumps(line, ensure_ascii=False), flush=True)
            if given.out:
                with given.out.open("a", encoding="utf-8") as out:
                    out.write(json.dumps(line, ensure_ascii=False) + "\n")
    print(f"{done - len(unnoticed)} of {done} changes noticed")
    for place in unnoticed:
        print(f"  not noticed: {place.module}, {place.change}")
    return 0 if not unnoticed else 1


def record(path: Path, rooms: list[str]) -> int:
    """Run the tests of the rooms once, watched."""
    tests = [test for test in dict.fromkeys(test for room in rooms for test in WIDER[room]) if (ROOT / test).exists()]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.mutants.calls", "-m", "not spark", *tests]
    path.unlink(missing_ok=True)
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


def noticed_by(place: Place, copy: Path, recording: Recording | None, seconds: float) -> str | None:
    """Change the copy, run the tests stage by stage, put the copy back; the first stage that failed, if one did."""
    target = copy / place.module.relative_to("src")
    before = target.read_text(encoding="utf-8")
    target.write_text(place.change.apply(before), encoding="utf-8")
    try:
        for stage in place.stages(recording):
            command = [sys.executable, "-m", "pytest", "-x", "-q", "-m", "not spark", "-p", "no:cacheprovider", *stage]
            environment = {**os.environ, "PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}
            try:
                ran = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, timeout=seconds)
            except subprocess.TimeoutExpired:
                return f"{stage[0]} and others did not end"
            if ran.returncode not in (0, 5):
                failed = [line for line in ran.stdout.decode().splitlines() if line.startswith(("FAILED", "ERROR"))]
                return failed[0][:200] if failed else " ".join(stage)[:200]
    finally:
        target.write_text(before, encoding="utf-8")
    return None


if __name__ == "__main__":
    sys.exit(main())
