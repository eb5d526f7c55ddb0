"""Many writers at once: throughput and waits as writers are added, combined commits, reads beside them, a far store.

python -m benchmarks.bench_writers [--quick]

Ratios are throughputs against one writer on the same machine in the same run, measured in turns.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from itertools import count
from pathlib import Path

import pyarrow as pa

import omnigraph as og
from benchmarks.bench_mutation import BareCommits
from benchmarks.harness import Row, seconds
from benchmarks.slow_store import SlowStore, slow_store
from omnigraph.config import override
from omnigraph.storage.uri import parse_root

TYPES = 8
SCHEMA = "".join(f"node T{n} {{ slug: String @key age: I32? }}\n" for n in range(TYPES)) + "edge E: T0 -> T1\n"
READ = 'query q() { match { $p: T0 { slug: "first" } } return { $p.age } }'
SET = 'query q($a: I32) { update T0 set { age: $a } where slug = "first" }'
GONE = "query q($s: String) { delete T0 where slug = $s }"
LATENCY = 0.02
LITTLE_LONGER = "a commit longer at most: within 3 times"
GOAL = "at least 0.9 of one writer, p99 at most 2 fair shares"
_numbers = count()


def insert(table: int) -> str:
    """The insert of one row into one of the tables."""
    return f"query q($s: String) {{ insert T{table} {{ slug: $s, age: 7 }} }}"


def put(graph: og.Graph, writer: int, spread: bool) -> None:
    """One write of one of several writers, to the one table or to a table of its own."""
    graph.mutate(insert(writer % TYPES if spread else 0), s=f"{writer}-{next(_numbers)}")


class Figures:
    """How long each of many writes took, and all of them together."""

    def __init__(self, seconds: float, waits: list[float], errors: int = 0) -> None:
        self.rate = len(waits) / seconds
        self.errors = errors
        self.p99 = statistics.quantiles(waits, n=100)[98] if len(waits) > 1 else waits[0]


def threads(writers: int, writes: int, work: Callable[[int], None]) -> Figures:
    """So many threads that write as fast as they can, `writes` in all."""
    waits: list[float] = []
    errors: list[Exception] = []
    start = threading.Barrier(writers + 1)

    def one(number: int) -> None:
        start.wait()
        for _ in range(max(1, writes // writers)):
            began = time.perf_counter()
            try:
                work(number)
            except Exception as error:
                errors.append(error)
            waits.append(time.perf_counter() - began)

    running = [threading.Thread(target=one, args=(number,)) for number in range(writers)]
    for thread in running:
        thread.start()
    start.wait()
    began = time.perf_counter()
    for thread in running:
        thread.join()
    return Figures(time.perf_counter() - began, waits, len(errors))


def processes(uri: str, writers: int, writes: int, spread: bool) -> Figures:
    """So many processes that write as fast as they can."""
    command = [sys.executable, "-m", "benchmarks.bench_writers", uri, str(writes // writers), str(int(spread))]
    with ExitStack() as stack:
        children = [
            stack.enter_context(
                subprocess.Popen([*command, str(n)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            )
            for n in range(writers)
        ]
        for child in children:
            assert child.stdout is not None
            child.stdout.readline()
        began = time.perf_counter()
        for child in children:
            assert child.stdin is not None
            child.stdin.write("go\n")
            child.stdin.flush()
        answers = [json.loads(child.stdout.readline()) for child in children if child.stdout is not None]
        seconds = time.perf_counter() - began
    return Figures(seconds, [wait for waits, _ in answers for wait in waits], sum(errors for _, errors in answers))


def run(writes: int = 192, rounds: int = 3) -> list[Row]:
    """Every row, each the median of some rounds that are run in turns with the single writer."""
    with tempfile.TemporaryDirectory() as directory:
        return [
            *_throughput(Path(directory), writes, rounds),
            *_updates(Path(directory)),
            *_far(),
            *_reads(Path(directory)),
            *_maintenance(Path(directory)),
        ]


def _throughput(directory: Path, writes: int, rounds: int) -> list[Row]:
    uri = str(directory / "writers")
    og.init(uri, schema=SCHEMA).close()
    cases: list[tuple[str, int, Callable[[], Figures], str]] = []
    with og.open(uri) as graph, og.open(uri, combine=True) as combining:

        def single() -> Figures:
            return threads(1, writes // 3, lambda n: put(graph, n, False))

        for spread in (False, True):
            where = "different tables" if spread else "one table"
            cases += [
                (
                    f"{writers} threads, {where}",
                    writers,
                    lambda w=writers, s=spread: threads(w, writes, lambda n: put(graph, n, s)),  # type: ignore[misc]
                    GOAL,
                )
                for writers in (8, 32)
            ]
            four = lambda s=spread: processes(uri, 4, writes, s)  # type: ignore[misc]  # noqa: E731
            cases.append((f"4 processes, {where}", 4, four, GOAL))
        cases.append(
            (
                "32 threads, one table, combined",
                32,
                lambda: threads(32, 4 * writes, lambda n: put(combining, n, False)),
                "at least 10 times one writer",
            )
        )
        single()
        rows = []
        for name, writers, work, goal in cases:
            found, alone = [], []
            for _ in range(rounds):
                alone.append(single())
                found.append(work())
            rows.append(_row(name, writers, found, alone, goal))
        return rows


def _row(name: str, writers: int, found: list[Figures], alone: list[Figures], goal: str) -> Row:
    rates = [figures.rate for figures in found]
    one = statistics.median(figures.rate for figures in alone)
    rate = statistics.median(rates)
    fair = statistics.median(figures.p99 * figures.rate / writers for figures in found)
    errors = sum(figures.errors for figures in found)
    told = f"{name}: p99 {fair:.1f} fair shares, {errors} errors"
    return Row(told, rate, one, rate / one, goal, (max(rates) - min(rates)) / rate, unit="writes/s")


def _updates(directory: Path) -> list[Row]:
    """Eight threads update one row: none is refused, and the last one stands."""
    with og.init(directory / "updates", schema=SCHEMA) as graph:
        graph.mutate(insert(0), s="first")
        before = len(graph.log())
        figures = threads(8, 64, lambda _: None if graph.mutate(SET, a=next(_numbers)).commit else 1 / 0)  # type: ignore[arg-type]
        commits = len([commit for commit in graph.log() if commit.changes_data]) - before
    told = f"updates of one row by 8 threads: {figures.errors} refused, {64 - figures.errors - commits} lost"
    return [Row(told, figures.rate, None, None, "none lost, none refused", unit="writes/s")]


def _reads(directory: Path) -> list[Row]:
    """The slowest point reads beside 32 writers against those alone."""
    with og.init(directory / "reads", schema=SCHEMA) as graph:
        graph.mutate(insert(0), s="first")

        def reads(number: int) -> float:
            times = []
            for _ in range(number):
                began = time.perf_counter()
                graph.query(READ).rows()
                times.append(time.perf_counter() - began)
            return statistics.quantiles(times, n=100)[98]

        reads(50)
        alone = reads(300)
        stop = threading.Event()

        def write(number: int) -> None:
            while not stop.is_set():
                put(graph, number, False)

        writers = [threading.Thread(target=write, args=(number,)) for number in range(32)]
        for writer in writers:
            writer.start()
        beside = reads(300)
        stop.set()
        for writer in writers:
            writer.join()
    return [Row("p99 of a point read beside 32 writers", beside, alone, beside / alone, "within 3 times of alone")]


def _far() -> list[Row]:
    """One-row writes on a store that is 20 ms away against the bare commits there, and the requests that they make."""
    rows = []
    with slow_store(0.0) as store, og.init("s3://graphs/far", schema=SCHEMA) as graph:
        table = pa.table({"id": [f"p{n}" for n in range(10)], "slug": [f"p{n}" for n in range(10)], "age": [7] * 10})
        bare = BareCommits("s3://graphs/bare", table, parse_root("s3://graphs/bare").storage_options())
        graph.mutate(insert(0), s="first")
        graph.branch_create("review", "main")
        for branch in ("main", "review"):
            for number in range(12):
                graph.mutate(insert(0), s=f"warm-{number}", branch=branch)
            graph.mutate(SET, a=1, branch=branch)
            doomed = iter(range(12))
            for name, work, bare_work in (
                ("insert", lambda b: graph.mutate(insert(0), s=f"far-{next(_numbers)}", branch=b), bare.insert),
                ("update by key", lambda b: graph.mutate(SET, a=next(_numbers), branch=b), bare.update),
                ("delete by key", lambda b: graph.mutate(GONE, s=f"warm-{next(doomed)}", branch=b), bare.update),  # noqa: B023
            ):
                rows.append(_far_row(f"{name} on {branch}", store, lambda: work(branch), bare_work))  # noqa: B023
    return rows


def _far_row(name: str, store: SlowStore, work: Callable[[], object], bare: Callable[[], object]) -> Row:
    times, bare_times, requests = [], [], 0
    store.delay = LATENCY
    for _ in range(5):
        store.reset()
        times.append(seconds(work))
        requests += sum(store.requests.values())
        bare_times.append(seconds(bare))
    store.delay = 0.0
    ours, theirs = statistics.median(times), statistics.median(bare_times)
    told = (
        f"{name}, store 20 ms away: {requests / 5:.0f} requests, {ours / LATENCY:.0f} round trips one after another "
        f"(bare commits {theirs / LATENCY:.0f})"
    )
    return Row(told, ours, theirs, ours / theirs, "within 1.3 times the bare commits")


def _maintenance(directory: Path) -> list[Row]:
    """The slowest writes while optimize and cleanup run all the time, against the slowest alone."""
    with override(cleanup_grace=3600.0), og.init(directory / "upkeep", schema=SCHEMA) as graph:
        threads(1, 48, lambda n: put(graph, n, False))
        alone = threads(1, 96, lambda n: put(graph, n, False))
        stop = threading.Event()
        rounds: list[int] = []

        def keep_up() -> None:
            while not stop.is_set():
                graph.optimize("main", engine="local")
                graph.cleanup(keep_versions=20, confirm=True)
                rounds.append(1)

        upkeep = threading.Thread(target=keep_up)
        upkeep.start()
        beside = threads(1, 96, lambda n: put(graph, n, False))
        stop.set()
        upkeep.join()
    told = f"p99 of a write beside optimize and cleanup without end ({len(rounds)} rounds), {beside.errors} errors"
    return [Row(told, beside.p99, alone.p99, beside.p99 / alone.p99, LITTLE_LONGER), _tails(directory)]


def _tails(directory: Path) -> Row:
    """The slowest writes where the tail is compacted every few writes, against those where it never is."""
    found: dict[int, Figures] = {}
    for most in (0, 8):
        # The number of fragments is what differs: no write of either side has many to look through.
        with override(auto_compact_fragments=most), og.init(directory / f"tails-{most}", schema=SCHEMA) as graph:
            threads(1, 16, lambda n: put(graph, n, False))
            found[most] = threads(1, 96, lambda n: put(graph, n, False))
    with_tails, without = found[8], found[0]
    told = f"p99 of a write where every eighth has the tail compacted, {with_tails.errors} errors"
    return Row(told, with_tails.p99, without.p99, with_tails.p99 / without.p99, LITTLE_LONGER)


def _child(uri: str, writes: int, spread: bool, number: int) -> None:
    waits: list[float] = []
    errors = 0
    with og.open(uri) as graph:
        for step in range(3):
            # The first write of a process compiles the schema and its query; this is about those after it.
            graph.mutate(insert(number % TYPES if spread else 0), s=f"warm-{number}-{time.time_ns()}-{step}")
        print("ready", flush=True)
        sys.stdin.readline()
        for step in range(writes):
            began = time.perf_counter()
            try:
                slug = f"process-{number}-{time.time_ns()}-{step}"
                graph.mutate(insert(number % TYPES if spread else 0), s=slug)
            except og.errors.OmniGraphError:
                errors += 1
            waits.append(time.perf_counter() - began)
        print(json.dumps([waits, errors]), flush=True)


if __name__ == "__main__":
    if len(sys.argv) > 2:
        _child(sys.argv[1], int(sys.argv[2]), bool(int(sys.argv[3])), int(sys.argv[4]))
    else:
        from benchmarks.harness import markdown

        print(markdown(run(64, 1) if "--quick" in sys.argv else run()))
