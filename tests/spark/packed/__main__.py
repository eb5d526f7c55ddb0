"""Pack this Python, ship it to a cluster that has none of it, and work there (`python -m tests.spark.packed`).

Takes minutes, some gigabytes below the temporary directory, and the right to mount; so it is no part of the tests.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.spark.packed import round_of_work
from tests.spark.packed.hidden_cluster import hidden_cluster, private_places
from tests.spark.packed.round_of_work import MORE, PEOPLE, STREAMED


def main() -> None:
    """Everything, step by step; fails if one step gives what it should not. Whoever ends it ends the cluster too."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended from outside"))
    with tempfile.TemporaryDirectory(prefix="omnigraph-packed-") as directory:
        place = Path(directory)
        archive = place / "environment.tar.gz"
        started = time.monotonic()
        subprocess.run([sys.executable, "-m", "omnigraph.spark.session.pack_environment", str(archive)], check=True)
        (place / "environment").mkdir()
        subprocess.run(["tar", "-xzf", str(archive), "-C", str(place / "environment")], check=True)
        print(f"{time.monotonic() - started:6.1f} s  packing, and unpacking for the driver", flush=True)
        with hidden_cluster(place) as cluster:
            ran = subprocess.run(
                [
                    *(sys.executable, "-m", round_of_work.__name__, cluster.master, str(archive), str(place)),
                    str(cluster.workers[0].pid),
                ],
                cwd=place,
                env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])},
                stdout=subprocess.PIPE,
                text=True,
                timeout=900,
                check=True,
            )
        print(ran.stdout)
        _judge(json.loads(ran.stdout.splitlines()[-1]))
    print("all as it should be")


def _judge(told: dict[str, object]) -> None:
    workers = told.pop("workers")
    assert isinstance(workers, list)
    assert len(workers) == 2, workers
    for hidden in private_places():
        assert not any(f" {hidden}/" in f" {path}" for told in workers for path in told.split(" with ")), workers
    everybody = PEOPLE + MORE + 2 * STREAMED
    assert told == {
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
    }, told


if __name__ == "__main__":
    main()
