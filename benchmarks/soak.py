"""A graph that is written for long: 5 000 small commits over several branches with periodic upkeep, as a plot.

python -m benchmarks.soak [--commits 5000] [--plot docs/images/soak.png]
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import omnigraph as og
from benchmarks.harness import seconds
from omnigraph.config import override

SCHEMA = """
node Person { slug: String @key age: I32? }
node City { slug: String @key }
edge LivesIn: Person -> City @card(0..1)
"""

PUT = "query put($s: String, $a: I32) { insert Person { slug: $s, age: $a } }"
MOVE = "query move($s: String, $c: String) { insert LivesIn { from: $s, to: $c } }"
READ = "query one($s: String) { match { $p: Person { slug: $s } } return { $p.age } }"
BRANCHES = ("main", "main", "review/1", "review/2")
UPKEEP_EVERY = 250


@dataclass(frozen=True)
class Sample:
    """What the graph costs after so many commits."""

    commits: int
    read_ms: float
    write_ms: float
    open_ms: float
    megabytes: float
    files: int


def soak(path: Path, commits: int) -> list[Sample]:
    """Write, keep up, and measure after each round of upkeep."""
    samples: list[Sample] = []
    with override(cleanup_grace=0.0), og.init(path, schema=SCHEMA) as graph:
        graph.load([{"type": "City", "data": {"slug": f"c{i}"}} for i in range(50)], mode="append")
        for branch in sorted(set(BRANCHES) - {"main"}):
            graph.branch_create(branch)
        writes: list[float] = []
        for number in range(commits):
            branch = BRANCHES[number % len(BRANCHES)]
            writes.append(seconds(lambda n=number, b=branch: graph.mutate(PUT, s=f"p{n}", a=n, branch=b)))  # type: ignore[misc]
            if number % 10 == 0:
                graph.mutate(MOVE, s=f"p{number}", c=f"c{number % 50}", branch=branch)
            if number % UPKEEP_EVERY == UPKEEP_EVERY - 1:
                for branch in sorted(set(BRANCHES)):
                    graph.optimize(branch, engine="local")
                graph.cleanup(keep_versions=20, confirm=True)
                samples.append(_sample(graph, path, number + 1, writes))
                writes.clear()
        assert graph.verify().ok
    return samples


def _sample(graph: og.Graph, path: Path, commits: int, writes: list[float]) -> Sample:
    reads = [seconds(lambda: graph.query(READ, s="p0").rows()) for _ in range(15)]
    opens = [seconds(lambda: og.open(path, read_only=True).close()) for _ in range(5)]
    sizes = [os.path.getsize(Path(folder) / name) for folder, _, names in os.walk(path) for name in names]
    return Sample(
        commits,
        statistics.median(reads) * 1000,
        statistics.median(writes) * 1000,
        statistics.median(opens) * 1000,
        sum(sizes) / 1e6,
        len(sizes),
    )


def plot(samples: list[Sample], path: Path) -> None:
    """The samples as small multiples."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    shown = (
        ("point read, ms", "read_ms"),
        ("one-row write, ms", "write_ms"),
        ("open, ms", "open_ms"),
        ("disk, MB", "megabytes"),
        ("files", "files"),
    )
    figure, axes = plt.subplots(1, len(shown), figsize=(15, 2.8), constrained_layout=True)
    for axis, (title, name) in zip(axes, shown, strict=True):
        axis.plot([s.commits for s in samples], [getattr(s, name) for s in samples], color="#2a6f97")
        axis.set_title(title, fontsize=10)
        axis.set_xlabel("commits", fontsize=8)
        axis.set_ylim(bottom=0)
        axis.grid(alpha=0.3)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)


def main() -> None:
    """Run the soak and write the plot."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.soak")
    parser.add_argument("--commits", type=int, default=5000)
    parser.add_argument("--plot", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        started = time.perf_counter()
        samples = soak(Path(directory) / "soak.omni", options.commits)
    print("| commits | read ms | write ms | open ms | MB | files |\n|---:|---:|---:|---:|---:|---:|")
    for s in samples:
        print(f"| {s.commits} | {s.read_ms:.1f} | {s.write_ms:.1f} | {s.open_ms:.1f} | {s.megabytes:.1f} | {s.files} |")
    print(f"\n{time.perf_counter() - started:.0f} s in all")
    if options.plot:
        plot(samples, options.plot)


if __name__ == "__main__":
    main()
