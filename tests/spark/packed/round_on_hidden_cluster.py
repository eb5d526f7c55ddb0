"""Pack this Python by the documented recipe, ship it to a cluster that has none of it, and work there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.spark.packed import round_of_work
from tests.spark.packed.hidden_cluster import hidden_cluster, private_places
from tests.spark.packed.round_of_work import MORE, PEOPLE, STREAMED

_ROOT = Path(__file__).parents[3]


@dataclass(frozen=True)
class Told:
    """What the driver printed of its steps, and what came of them."""

    steps: str
    results: dict[str, Any]


def packed_round(place: Path) -> Told:
    """All steps, in a folder that may take some gigabytes."""
    archive = place / "environment.tar.gz"
    started = time.monotonic()
    subprocess.run(
        [sys.executable, "-m", "omnigraph.spark.session.pack_environment", str(archive)],
        stdout=subprocess.DEVNULL,
        check=True,
    )
    (place / "environment").mkdir()
    subprocess.run(["tar", "-xzf", str(archive), "-C", str(place / "environment")], check=True)
    packing = f"{time.monotonic() - started:6.1f} s  packing, and unpacking for the driver\n"
    with hidden_cluster(place) as cluster:
        ran = subprocess.run(
            [
                *(sys.executable, "-m", round_of_work.__name__, cluster.master, str(archive), str(place)),
                str(cluster.workers[0].pid),
            ],
            cwd=place,
            env=_environment(),
            capture_output=True,
            text=True,
            timeout=400,
            check=False,
        )
    assert ran.returncode == 0, ran.stdout + ran.stderr[-3000:]
    return Told(packing + ran.stdout, json.loads(ran.stdout.splitlines()[-1]))


def _environment() -> dict[str, str]:
    """Nothing in it says which Python the workers run: the settings do."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYSPARK_", "SPARK_"))}
    return {**kept, "PYTHONPATH": str(_ROOT)}


def judge(told: Told) -> None:
    """Every step gave what it should: nothing is there twice, and nothing is left of the load that lost a worker."""
    results = dict(told.results)
    workers = results.pop("workers")
    assert len(workers) == 2, workers
    for hidden in private_places():
        assert not any(f" {hidden}/" in f" {path}" for worker in workers for path in worker.split(" with ")), workers
    everybody = PEOPLE + MORE + 2 * STREAMED
    assert results == {
        "load": 2 * PEOPLE,
        "query as in process": True,
        "export": 2 * PEOPLE,
        "merge": 1000,
        "optimize, query as in process": True,
        "stream": STREAMED,
        "load while a worker is killed": 2 * MORE,
        "left by that": [],
        "stream on what is left": 2 * STREAMED,
        "rows at the end": [everybody, everybody],
    }, told.steps
