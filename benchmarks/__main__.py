"""`make bench`: runs what is asked for (everything by default) and writes one Markdown table.

python -m benchmarks [SUITE ...] [--out FILE]

`scale`, `search_scale`, `columnar` and `shapes` take minutes and gigabytes of disk: they run only when they are named.

python -m benchmarks soak_writers [--minutes 10]   runs many writers for long and says whether all went well
"""

from __future__ import annotations

import argparse
import importlib
import sys
from pathlib import Path

from benchmarks.harness import Row, markdown

SUITES = (
    "languages",
    "open",
    "mutation",
    "writers",
    "read",
    "search_texts",
    "search_vectors",
    "search_recall",
    "adjacency",
    "merge",
    "undo",
    "load",
    "server",
    "spark",
    "spark_sessions",
    "spark_queries",
    "large",
)
ONLY_WHEN_NAMED = ("scale", "search_scale", "columnar", "shapes")


def main() -> None:
    """Run the suites that were named."""
    if sys.argv[1:2] == ["soak_writers"]:
        importlib.import_module("benchmarks.soak_writers").main(sys.argv[2:])
    parser = argparse.ArgumentParser(prog="python -m benchmarks")
    parser.add_argument(
        "suites", nargs="*", choices=[*SUITES, *ONLY_WHEN_NAMED, []], help="which to run; all but scale by default"
    )
    parser.add_argument("--out", type=Path, help="also write the table to this file")
    options = parser.parse_args()
    rows: list[Row] = []
    for suite in options.suites or SUITES:
        print(f"running {suite} ...", file=sys.stderr, flush=True)
        rows += importlib.import_module(f"benchmarks.bench_{suite}").run()
    table = markdown(rows)
    print(table)
    if options.out:
        options.out.write_text(table, encoding="utf-8")


if __name__ == "__main__":
    main()
