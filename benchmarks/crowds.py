"""Many writers at once, for one round: threads of this process, or other processes that wait between rounds.

python -m benchmarks.crowds URI SPREAD NUMBER is one of these processes.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import count
from typing import IO

import omnigraph as og

TYPES = 8
_numbers = count()


def insert(table: int) -> str:
    """The insert of one row into one of the tables."""
    return f"query q($s: String) {{ insert T{table} {{ slug: $s, age: 7 }} }}"


def put(graph: og.Graph, writer: int, spread: bool) -> None:
    """One write of one of several writers, to the one table or to a table of its own."""
    graph.mutate(insert(writer % TYPES if spread else 0), s=f"{writer}-{next(_numbers)}-{time.time_ns()}")


@dataclass(frozen=True, slots=True)
class Round:
    """How long each write of one round took, and all of them together."""

    seconds: float
    waits: Sequence[float]
    errors: int = 0

    @property
    def rate(self) -> float:
        """Writes per second."""
        return len(self.waits) / self.seconds

    def shares(self, writers: int) -> list[float]:
        """The waits in fair shares: in times of one write of this round, for each writer."""
        return [wait * self.rate / writers for wait in self.waits]


def percentile99(values: Sequence[float]) -> float:
    """The time that one in a hundred is slower than."""
    return statistics.quantiles(values, n=100)[98]


def threads(writers: int, writes: int, work: Callable[[int], object]) -> Round:
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
    return Round(time.perf_counter() - began, waits, len(errors))


@contextmanager
def processes(uri: str, writers: int, spread: bool) -> Iterator[Callable[[int], Round]]:
    """So many processes; each call is a round of so many writes in all, as fast as they can."""
    command = [sys.executable, "-m", "benchmarks.crowds", uri, str(int(spread))]
    with ExitStack() as stack:
        children = [
            stack.enter_context(
                subprocess.Popen([*command, str(n)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            )
            for n in range(writers)
        ]
        pipes = [(_there(child.stdin), _there(child.stdout)) for child in children]
        for _, answers in pipes:
            answers.readline()

        def go(writes: int) -> Round:
            began = time.perf_counter()
            for orders, _ in pipes:
                print(writes // writers, file=orders, flush=True)
            found = [json.loads(answers.readline()) for _, answers in pipes]
            seconds = time.perf_counter() - began
            return Round(seconds, [wait for waits, _ in found for wait in waits], sum(errors for _, errors in found))

        yield go


def _there(pipe: IO[str] | None) -> IO[str]:
    assert pipe is not None
    return pipe


def _write_when_told(uri: str, spread: bool, number: int) -> None:
    with og.open(uri) as graph:
        for _ in range(3):
            # The first write of a process compiles the schema and its query; this is about those after it.
            put(graph, number, spread)
        print("ready", flush=True)
        for order in sys.stdin:
            waits: list[float] = []
            errors = 0
            for _ in range(int(order)):
                began = time.perf_counter()
                try:
                    put(graph, number, spread)
                except og.errors.OmniGraphError:
                    errors += 1
                waits.append(time.perf_counter() - began)
            print(json.dumps([waits, errors]), flush=True)


if __name__ == "__main__":
    _write_when_told(sys.argv[1], bool(int(sys.argv[2])), int(sys.argv[3]))
