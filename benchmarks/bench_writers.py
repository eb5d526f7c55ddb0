"""Many writers at once: throughput and waits as writers are added, combined commits, reads beside them, a far store.

python -m benchmarks.bench_writers [--quick]

The speed of a machine changes within seconds. So every row is measured in many short rounds, in turns with what it is
compared with, and compared with the rounds right beside it: a throughput with that of one writer just before and just
after, the slowest in a hundred in the times of its own round.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from itertools import count, pairwise
from pathlib import Path

import pyarrow as pa

import omnigraph as og
from benchmarks.bench_mutation import BareCommits
from benchmarks.crowds import TYPES, Round, insert, percentile99, processes, put, threads
from benchmarks.harness import Row, seconds
from benchmarks.slow_store import SlowStore, slow_store
from omnigraph.config import override
from omnigraph.storage.uri import parse_root

SCHEMA = "".join(f"node T{n} {{ slug: String @key age: I32? }}\n" for n in range(TYPES)) + "edge E: T0 -> T1\n"
READ = 'query q() { match { $p: T0 { slug: "first" } } return { $p.age } }'
SET = 'query q($a: I32) { update T0 set { age: $a } where slug = "first" }'
GONE = "query q($s: String) { delete T0 where slug = $s }"
LATENCY = 0.02
LITTLE_LONGER = "a commit longer at most: within 3 times"
GOAL = "at least 0.9 of one writer, p99 at most 2 fair shares"
COMBINED = "at least 10 times one writer"
WRITES = 128
"""In a round, by one writer or by many."""
_numbers = count()


def run(rounds: int = 7) -> list[Row]:
    """Every row."""
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        return [
            *_throughput(place, rounds),
            *_updates(place),
            *_far(),
            _reads(place, rounds),
            _upkeep(place, rounds),
            _tails(place, rounds),
        ]


def _throughput(place: Path, rounds: int) -> list[Row]:
    cases = [
        (f"{many}, {where}", writers, WRITES, partial(make, writers=writers, spread=spread), GOAL)
        for spread, where in ((False, "one table"), (True, "different tables"))
        for many, writers, make in (
            ("8 threads", 8, _in_threads),
            ("32 threads", 32, _in_threads),
            ("4 processes", 4, processes),
        )
    ]
    combining = partial(_in_threads, writers=32, spread=False, combine=True)
    cases.append(("32 threads, one table, combined", 32, 768, combining, COMBINED))
    return [_crowd(place, name, writers, writes, rounds, make, goal) for name, writers, writes, make, goal in cases]


def _crowd(
    place: Path,
    name: str,
    writers: int,
    writes: int,
    rounds: int,
    make: Callable[[str], AbstractContextManager[Callable[[int], Round]]],
    goal: str,
) -> Row:
    """Many writers of one graph, in turns with one writer of another one that nobody else has ever written to."""
    uris = [str(place / f"{name} {which}") for which in ("many", "one")]
    for uri in uris:
        og.init(uri, schema=SCHEMA).close()
    with make(uris[0]) as many, og.open(uris[1]) as graph:

        def single() -> Round:
            # As many as the crowd writes, so that what is logged and compacted later falls into the rounds of both.
            return threads(1, WRITES, lambda number: put(graph, number, False))

        single()
        many(writes)
        alone, found = [single()], []
        for _ in range(rounds):
            found.append(many(writes))
            alone.append(single())
    beside = [statistics.mean((before.rate, after.rate)) for before, after in pairwise(alone)]
    ratios = [each.rate / rate for each, rate in zip(found, beside)]
    shares = percentile99([share for each in found for share in each.shares(writers)])
    own = percentile99([share for each in alone for share in each.shares(1)])
    errors = sum(each.errors for each in found)
    told = f"{name}: p99 {shares:.1f} fair shares (of one writer alone {own:.1f}), {errors} errors"
    rate = statistics.median(each.rate for each in found)
    return Row(told, rate, statistics.median(beside), statistics.median(ratios), goal, _spread(ratios), "writes/s")


@contextmanager
def _in_threads(uri: str, writers: int, spread: bool, combine: bool = False) -> Iterator[Callable[[int], Round]]:
    """So many threads of this process, like `processes`."""
    with og.open(uri, combine=combine) as graph:
        yield lambda writes: threads(writers, writes, lambda number: put(graph, number, spread))


def _spread(ratios: Sequence[float]) -> float:
    """How far apart the middle half lies, as a part of the median."""
    quartiles = statistics.quantiles(ratios, n=4)
    return (quartiles[2] - quartiles[0]) / quartiles[1]


def _slowest(name: str, alone: Sequence[Sequence[float]], beside: Sequence[Sequence[float]], goal: str) -> Row:
    """The slowest in a hundred beside something against those alone, over all rounds: each round in times of what is
    usual alone in it. The spread is that of the rounds."""
    usual = [statistics.median(times) for times in alone]
    ours, theirs = (
        percentile99([value / unit for times, unit in zip(side, usual) for value in times]) for side in (beside, alone)
    )
    typical = statistics.median(usual)
    each = [percentile99(times) / unit for times, unit in zip(beside, usual)]
    return Row(name, ours * typical, theirs * typical, ours / theirs, goal, _spread(each))


def _updates(place: Path) -> list[Row]:
    """Eight threads update one row: none is refused, and the last one stands."""
    with og.init(place / "updates", schema=SCHEMA) as graph:
        graph.mutate(insert(0), s="first")
        before = len(graph.log())
        figures = threads(8, 64, lambda _: None if graph.mutate(SET, a=next(_numbers)).commit else 1 / 0)
        commits = len([commit for commit in graph.log() if commit.changes_data]) - before
    told = f"updates of one row by 8 threads: {figures.errors} refused, {64 - figures.errors - commits} lost"
    return [Row(told, figures.rate, None, None, "none lost, none refused", unit="writes/s")]


class _Meanwhile:
    """Threads that do something again and again, while they are let."""

    def __init__(self, number: int, work: Callable[[int], object]) -> None:
        self.done = 0
        self._work = work
        self._go = threading.Event()
        self._over = False
        self._idle = threading.Semaphore(0)
        self._threads = [threading.Thread(target=self._run, args=(one,)) for one in range(number)]
        for thread in self._threads:
            thread.start()

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Let them; afterwards they have all stopped."""
        self._go.set()
        try:
            yield
        finally:
            self._go.clear()
            for _ in self._threads:
                self._idle.acquire()

    def end(self) -> None:
        """Let the threads end."""
        self._over = True
        self._go.set()
        for thread in self._threads:
            thread.join()

    def _run(self, number: int) -> None:
        while self._go.wait() and not self._over:
            while self._go.is_set() and not self._over:
                self._work(number)
                self.done += 1
            self._idle.release()


def _reads(place: Path, rounds: int) -> Row:
    """The slowest point reads beside 32 writers against those alone."""
    with og.init(place / "reads", schema=SCHEMA) as graph:
        graph.mutate(insert(0), s="first")

        def reads(number: int) -> list[float]:
            return [seconds(lambda: graph.query(READ).rows()) for _ in range(number)]

        writers = _Meanwhile(32, lambda number: put(graph, number, False))
        alone, beside = [], []
        try:
            reads(50)
            for _ in range(rounds):
                with writers.at_work():
                    time.sleep(0.2)
                    beside.append(reads(400))
                # What writers leave to be done after them, logging and compacting, is no part of reading alone.
                time.sleep(0.5)
                reads(50)
                alone.append(reads(400))
        finally:
            writers.end()
    return _slowest("p99 of a point read beside 32 writers", alone, beside, "within 3 times of alone")


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


def _upkeep(place: Path, rounds: int) -> Row:
    """The slowest writes while optimize and cleanup run all the time, against the slowest alone."""
    with override(cleanup_grace=3600.0), og.init(place / "upkeep", schema=SCHEMA) as graph:

        def keep_up(_: int) -> None:
            graph.optimize("main", engine="local")
            graph.cleanup(keep_versions=20, confirm=True)

        def write(writes: int) -> Round:
            return threads(1, writes, lambda number: put(graph, number, False))

        upkeep = _Meanwhile(1, keep_up)
        alone, beside = [], []
        try:
            write(48)
            for _ in range(rounds):
                with upkeep.at_work():
                    beside.append(write(60))
                alone.append(write(60))
        finally:
            upkeep.end()
    errors = sum(each.errors for each in beside)
    told = f"p99 of a write beside optimize and cleanup without end ({upkeep.done} rounds), {errors} errors"
    return _slowest(told, [each.waits for each in alone], [each.waits for each in beside], LITTLE_LONGER)


def _tails(place: Path, rounds: int) -> Row:
    """The slowest writes where the tail is compacted every few writes, against those where it never is."""
    found: dict[int, list[Round]] = {0: [], 8: []}
    with og.init(place / "no tails", schema=SCHEMA) as without, og.init(place / "tails", schema=SCHEMA) as often:
        for _ in range(rounds + 1):
            for most, graph in ((0, without), (8, often)):
                # The number of fragments is what differs: no write of either side has many to look through.
                with override(auto_compact_fragments=most):
                    found[most].append(threads(1, 48, lambda number: put(graph, number, False)))  # noqa: B023
            without.optimize("main", engine="local")
    with_tails, never = found[8][1:], found[0][1:]
    told = f"p99 of a write where every eighth has the tail compacted, {sum(each.errors for each in with_tails)} errors"
    return _slowest(told, [each.waits for each in never], [each.waits for each in with_tails], LITTLE_LONGER)


if __name__ == "__main__":
    from benchmarks.harness import markdown

    print(markdown(run(2) if "--quick" in sys.argv else run()))
