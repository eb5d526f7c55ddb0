"""The round on a cluster that has nothing of the driver, with what each step took (`python -m tests.spark.packed`)."""

from __future__ import annotations

import signal
import sys
import tempfile
from pathlib import Path

from tests.spark.packed.round_on_hidden_cluster import judge, packed_round


def main() -> None:
    """Everything, step by step; fails if one step gives what it should not. Whoever ends it ends the cluster too."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended from outside"))
    with tempfile.TemporaryDirectory(prefix="omnigraph-packed-") as directory:
        told = packed_round(Path(directory))
    print(told.steps)
    judge(told)
    print("all as it should be")


if __name__ == "__main__":
    main()
