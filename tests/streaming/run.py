"""A stream under random kills, and what must be there afterwards, known from the records alone."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import omnigraph as og
from omnigraph.ledger.commit.staging_marks import MARKS

ROOT = Path(__file__).resolve().parents[2]
SCHEMA = "node Person { slug: String @key  age: I32? }\nedge Knows: Person -> Person { weight: I32? }"
START_SECONDS = 400.0
"""How long a driver may take to its first commit before it counts as stuck."""


@dataclass(frozen=True)
class Outcome:
    """How a run went: drivers that were started, kills among them, batches that Spark made, seconds."""

    drivers: int
    kills: int
    batches: int
    seconds: float


def write_records(source: Path, records: int, batches: int) -> None:
    """Two people and two edges in four records. Edges have no id, so a batch that came twice would show."""
    source.mkdir(parents=True)
    for batch in range(batches):
        lines = []
        for n in range(records // batches // 4):
            one, two = f"p{batch}-{2 * n}", f"p{batch}-{2 * n + 1}"
            lines += [{"type": "Person", "data": {"slug": slug, "age": n % 100}} for slug in (one, two)]
            lines += [{"edge": "Knows", "from": one, "to": two, "data": {"weight": w}} for w in (1, 2)]
        path = source / f"{batch:05d}.jsonl"
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        # Spark reads files in the order of their times.
        os.utime(path, (1_700_000_000 + batch, 1_700_000_000 + batch))


def run(directory: Path, records: int, batches: int, kills: int, seed: int) -> Outcome:
    """Load all records by drivers that are killed at random, the last one excepted, and check the graph."""
    chance = random.Random(seed)
    uri, source, checkpoint = directory / "g.omni", directory / "in", directory / "checkpoint"
    write_records(source, records, batches)
    og.init(uri, schema=SCHEMA).close()
    started = time.monotonic()
    drivers = killed = 0
    while True:
        drivers += 1
        # Some commits later than where this driver begins, and then at any moment of a batch.
        until = _commits(uri) + chance.randint(1, max(1, batches // (kills + 1)))
        driver = _start(uri, source, checkpoint, directory / f"driver-{drivers}.log")
        try:
            if killed < kills and _reaches(uri, driver, until):
                time.sleep(chance.uniform(0.0, 1.5))
            else:
                driver.wait(3600)
            if driver.poll() == 0:
                break
            if driver.poll() is not None:
                raise AssertionError(f"a driver failed by itself:\n{(directory / f'driver-{drivers}.log').read_text()}")
            killed += 1
        finally:
            _kill(driver)
    seconds = time.monotonic() - started
    planned = _planned(checkpoint)
    assert batches - killed <= planned <= batches, planned
    check(uri, source, planned)
    return Outcome(drivers, killed, planned, seconds)


def _planned(checkpoint: Path) -> int:
    """The batches that Spark made. One fewer than there are files for each driver that was killed when Spark had chosen
    a file and not yet written down for which batch: the next driver puts it into a batch together with another one."""
    return 1 + max(int(file.name) for file in (checkpoint / "offsets").iterdir() if file.name.isdigit())


def check(uri: Path, source: Path, batches: int) -> None:
    """Every record is there once, every batch is one commit, and nothing is left about."""
    people: Counter[str] = Counter()
    edges: Counter[tuple[str, str, int]] = Counter()
    for file in source.iterdir():
        for line in file.read_text().splitlines():
            record = json.loads(line)
            if "type" in record:
                people[record["data"]["slug"]] += 1
            else:
                edges[record["from"], record["to"], record["data"]["weight"]] += 1
    with og.open(uri) as graph:
        for piece in graph.export_lines():
            for line in piece.splitlines():
                record = json.loads(line)
                if "type" in record:
                    people[record["data"]["slug"]] -= 1
                else:
                    edges[record["from"], record["to"], record["data"]["weight"]] -= 1
        assert not any(people.values()), "people are missing, or there twice"
        assert not any(edges.values()), "edges are missing, or there twice"
        told = [commit.about for commit in graph.log() if commit.about is not None]
        assert [about.split(" of ")[0] for about in reversed(told)] == [f"batch {n}" for n in range(batches)]
        left = [entry.path for entry in graph._store.objects.list(MARKS)]
        assert all(f"/{batches - 1:09d}/" in path for path in left), "more is left than by a kill in the last batch"
        assert graph.verify().ok


def _start(uri: Path, source: Path, checkpoint: Path, log: Path) -> subprocess.Popen[bytes]:
    with log.open("wb") as out:
        return subprocess.Popen(
            [sys.executable, "-m", "tests.streaming.driver", str(uri), str(source), str(checkpoint)],
            cwd=ROOT,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def _kill(driver: subprocess.Popen[bytes]) -> None:
    """The driver, its JVM and all workers, at once."""
    try:
        os.killpg(driver.pid, signal.SIGKILL)
    except ProcessLookupError:
        return
    finally:
        driver.wait()


def _commits(uri: Path) -> int:
    with og.open(uri, read_only=True) as graph:
        return len(graph.log())


def _reaches(uri: Path, driver: subprocess.Popen[bytes], commits: int) -> bool:
    """Wait until the graph has so many commits; False when the driver ended before."""
    deadline = time.monotonic() + START_SECONDS
    with og.open(uri, read_only=True) as graph:
        while len(graph.log()) < commits:
            if driver.poll() is not None:
                return False
            assert time.monotonic() < deadline, "no commit came"
            time.sleep(0.2)
    return True
