"""`python -m tests.streaming --records 1000000 --batches 100 --kills 20`: a long stream under random kills."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from tests.streaming.run import run


def main() -> None:
    parser = argparse.ArgumentParser(description="Load a stream whose driver is killed at random, and check the graph.")
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--batches", type=int, default=100)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--directory", type=Path, help="where to work; it must be empty (a temporary one by default)")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="omnigraph-streaming-") as temporary:
        found = run(given.directory or Path(temporary), given.records, given.batches, given.kills, given.seed)
    print(
        f"{given.records} records in {found.batches} batches by {found.drivers} drivers, {found.kills} of them killed "
        f"(seed {given.seed}), {found.seconds:.0f} s: every record is there once"
    )


if __name__ == "__main__":
    main()
