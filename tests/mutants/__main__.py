"""`python -m tests.mutants`: change the product, run the tests, report what they did not notice.

First record which tests run which lines: `python -m tests.mutants --record calls.jsonl`. Then `--calls calls.jsonl`.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.mutants.calls import ROOMS
from tests.mutants.choosing import Recording
from tests.mutants.forking import Forking, Trial, collected
from tests.mutants.switched import Place, chosen, write_switches

ROOT = Path(__file__).resolve().parents[2]
TESTS = ("read", "merge", "ledger", "write", "maintain", "model/test_violations.py", "query", "surfaces")
"""Where a fault of the three rooms should show. The random tests are left out: they find much, but take long."""
WATCHED = "not spark and not s3 and not slow"


def main() -> int:
    """Exit code 1 when a change was not noticed."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("--rooms", nargs="+", default=list(ROOMS), choices=ROOMS)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--most", type=float, default=20, help="seconds of the tests of one change, by the recording")
    parser.add_argument("--minutes", type=float, default=1e9, help="stop after that long; `--out` goes on from there")
    parser.add_argument("--out", type=Path, help="write one JSON line for each change here, and skip those it has")
    parser.add_argument("--record", type=Path, help="write down here which tests run what, and do nothing else")
    parser.add_argument("--tests", nargs="+", default=[f"tests/{each}" for each in TESTS], help="what to record")
    parser.add_argument("--calls", type=Path, help="what `--record` wrote")
    given = parser.parse_args()
    if given.record:
        return record(given.record, given.tests)
    if not given.calls:
        parser.error("--calls FILE is needed; `--record FILE` writes it")
    places = chosen(ROOT, given.rooms, given.count, given.seed)
    done = _done(given.out)
    recording = Recording(given.calls)
    until = time.monotonic() + given.minutes * 60

    def told(trial: Trial, noticed: str | None) -> None:
        line = {**_key(places[trial.number]), "noticed_by": noticed, "tests": len(trial.tests)}
        done[line["module"], line["change"]] = line
        print(json.dumps(line, ensure_ascii=False), flush=True)
        if given.out:
            with given.out.open("a", encoding="utf-8") as out:
                out.write(json.dumps(line, ensure_ascii=False) + "\n")

    trials = [
        trial
        for trial in _trials(places, recording, given.most)
        if tuple(_key(places[trial.number]).values()) not in done
    ]
    with tempfile.TemporaryDirectory(prefix="mutants-") as directory:
        copy = Path(directory, "src")
        shutil.copytree(ROOT / "src", copy, ignore=shutil.ignore_patterns("__pycache__"))
        write_switches(copy, places)
        sys.path.insert(0, str(copy))
        os.environ["PYTHONPATH"] = str(copy)
        files = sorted({test.split("::")[0] for trial in trials for test in trial.tests})
        in_time = (trial for trial in trials if time.monotonic() < until)
        if trials:
            collected(ROOT, files, Forking(in_time, told))
    return report(list(done.values()))


def _done(out: Path | None) -> dict[tuple[str, str], dict[str, Any]]:
    if out is None or not out.exists():
        return {}
    lines = [json.loads(text) for text in out.read_text(encoding="utf-8").splitlines()]
    return {(line["module"], line["change"]): line for line in lines}


def _key(place: Place) -> dict[str, Any]:
    return {"module": str(place.module), "change": str(place.change)}


def _trials(places: list[Place], recording: Recording, most: float) -> Iterator[Trial]:
    for number, place in enumerate(places):
        source = (ROOT / place.module).read_text(encoding="utf-8")
        yield Trial(number, recording.tests(place.module, source, place.change.line, most), most)


def report(lines: list[dict[str, Any]]) -> int:
    """Say what was noticed and what was not."""
    unnoticed = [line for line in lines if line["noticed_by"] is None]
    print(f"{len(lines) - len(unnoticed)} of {len(lines)} changes noticed")
    for line in unnoticed:
        print(f"  not noticed by {line['tests']} tests: {line['module']}, {line['change']}")
    return 0 if not unnoticed else 1


def record(path: Path, tests: list[str]) -> int:
    """Run tests once, watched; what they run is added to the file."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.mutants.calls", "-m", WATCHED, *tests]
    return subprocess.run(command, cwd=ROOT, env={**os.environ, "MUTANTS_CALLS": str(path.resolve())}).returncode


if __name__ == "__main__":
    sys.exit(main())
