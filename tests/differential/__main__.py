"""`python -m tests.differential --minutes 60`: hunts for differences, makes them small, prints a script for each."""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter

from tests.differential.hunt import NOT_YET, WHEN_ASKED, Coverage, Options, hunt
from tests.differential.mutating import hunt_mutations
from tests.differential.product import WAYS
from tests.differential.script import script
from tests.differential.shrink import shrink


def main() -> int:
    """Exit code 1 when there was a difference."""
    ask = argparse.ArgumentParser(prog="python -m tests.differential", description=__doc__)
    ask.add_argument("--minutes", type=float, default=1.0)
    ask.add_argument("--seed", type=int, default=None, help="the first seed; by default the time of day")
    ask.add_argument("--queries", type=int, default=30, help="queries on each state of a graph")
    ask.add_argument("--spark", action="store_true", help="ask a few of them on Spark too")
    ask.add_argument("--without", default="", help="constructs to leave out, with commas between")
    ask.add_argument("--groups", action="store_true", help="every query groups rows, or aggregates all of them")
    ask.add_argument("--most", type=int, default=5, help="stop after so many differences")
    ask.add_argument("--shrink-seconds", type=float, default=90.0)
    ask.add_argument("--mutations", action="store_true", help="compare mutations instead of reads")
    given = ask.parse_args()
    start = time.monotonic()
    until = start + 60 * given.minutes
    without = NOT_YET | frozenset(filter(None, given.without.split(",")))
    without |= {"plain_result"} if given.groups else WHEN_ASKED
    asked = 3 if given.spark else 0
    options = Options(given.queries, without, (*WAYS, "auto"), spark_per_state=asked, until=until)
    coverage = Coverage()
    seed = int(time.time()) if given.seed is None else given.seed
    if given.mutations:
        return mutations(seed, until, given.most)
    differences = 0
    while time.monotonic() < until and differences < given.most:
        for found in hunt(seed, options, coverage):
            differences += 1
            after = time.monotonic() - start
            print(f"\n# ---- difference {differences}, after {after:.0f} s: seed {found.seed}, query {found.number}")
            print(script(shrink(found, given.shrink_seconds)), flush=True)
            if differences >= given.most:
                break
        seed += 1
    print(coverage.report())
    print(f"{differences} differences, seeds up to {seed - 1}")
    return 1 if differences else 0


def mutations(seed: int, until: float, most: int) -> int:
    """The same for mutations: each difference with the rows before it."""
    made: Counter[str] = Counter()
    differences = 0
    while time.monotonic() < until and differences < most:
        for found in hunt_mutations(seed, 25, frozenset(), made):
            differences += 1
            print(f"\n# ---- difference {differences}\n{found}", flush=True)
        seed += 1
    print("\n".join(f"{count:7} {name}" for name, count in made.most_common()))
    print(f"{differences} differences, seeds up to {seed - 1}")
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
