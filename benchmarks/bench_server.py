"""A graph over HTTP on loopback against the same graph in process: reads, many clients, writers, results, loads.

python -m benchmarks.bench_server [--rows N] [PART ...]     parts: reads, results, loads, clients, writers, written

The server is a process of its own, and so are the clients where there are many of them.
"""

from __future__ import annotations

import http.client
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx

import omnigraph as og
from benchmarks.harness import Row, markdown, measure
from benchmarks.http_clients import KEY, STRIDE, UNIQUE
from omnigraph.client.remote_graph import RemoteGraph

SCHEMA = "node Person { slug: String @key age: I32? note: String? }\n"
READ = "query q($s: String) { match { $p: Person { slug: $s } } return { $p.slug, $p.age } }"
ALL = "query q() { match { $p: Person } return { $p.slug, $p.age } }"
INSERT = "query m($s: String) { insert Person { slug: $s } }"


@contextmanager
def served(uri: str, workers: int = 1, *more: str) -> Iterator[str]:
    """A server process on a free port."""
    code = "from omnigraph.server.launch import run; run()"
    words = [uri, "--unauthenticated", "--bind", "127.0.0.1:0", "--workers", str(workers), *more]
    env = {**os.environ, "OMNIGRAPH_PER_ACTOR_INFLIGHT_MAX": "1000", "OMNIGRAPH_LOG": "ERROR"}
    server = subprocess.Popen(
        [sys.executable, "-c", code, *words], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=env
    )
    assert server.stdout is not None
    url = "http://" + server.stdout.readline().strip().partition("=")[2]
    try:
        while True:
            try:
                if httpx.get(f"{url}/readyz", timeout=5).status_code == 200:
                    break
            except httpx.HTTPError:
                time.sleep(0.1)
        yield url
    finally:
        server.terminate()
        server.wait()


PARTS = ("reads", "results", "loads", "clients", "writers", "written")
"""`written` is `clients` once more: after single writes a look-up goes another way than where all rows are indexed."""


def run(rows: int = 1_000_000, parts: Sequence[str] = PARTS) -> list[Row]:
    """The rows of this suite, each told as soon as it is known."""
    found: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        uri = str(Path(folder) / "g.omni")
        lines = Path(folder) / "people.jsonl"
        with lines.open("w") as file:
            for n in range(rows):
                file.write(json.dumps({"type": "Person", "data": {"slug": f"p{n}", "age": n % 90}}) + "\n")
        with og.init(uri, schema=SCHEMA) as graph:
            graph.load(lines, mode="append")
            graph.optimize()
            for part in parts:
                match part:
                    case "reads":
                        row = _reads(uri, graph, rows)
                    case "results":
                        row = _results(uri, graph, rows)
                    case "loads":
                        row = _loads(folder, lines, rows)
                    case "writers":
                        row = _writers(uri, graph)
                    case "clients":
                        row = _many_clients(uri, rows)
                    case _:
                        row = _many_clients(uri, rows, ", after single writes")
                print(markdown([row]), file=sys.stderr, flush=True)
                found.append(row)
    return found


def _reads(uri: str, graph: og.Graph, rows: int) -> Row:
    """Twenty at a time on each side in turns: both are warm, and a busy machine is as busy for one as for the other.

    The client is the one of Python's library, which costs little. Every read asks for another key.
    """
    keys = (f"p{number * STRIDE % rows}" for number in itertools.count())
    here: list[float] = []
    there: list[float] = []
    with served(uri) as url:
        connection = http.client.HTTPConnection(url.removeprefix("http://"))

        def ask() -> object:
            body = json.dumps({"query": READ, "params": {"s": next(keys)}})
            connection.request("POST", "/query", body, {"Content-Type": "application/json"})
            return json.loads(connection.getresponse().read())["rows"]

        for turn in range(16):
            for times, read in ((here, lambda: graph.query(READ, s=next(keys)).rows()), (there, ask)):
                found = [_seconds(read) for _ in range(20)]
                times += found if turn else []  # the first turn is for getting warm
        connection.close()
    inside, outside = statistics.median(here), statistics.median(there)
    extra = (outside - inside) * 1000
    goal = "at most 1.5 ms more than in process"
    return Row(f"point read over HTTP, p50 (+{extra:.2f} ms)", outside, inside, outside / inside, goal)


def _results(uri: str, graph: og.Graph, rows: int) -> Row:
    with served(uri) as url, og.connect(url) as far:
        return measure(
            f"{rows:,} rows over HTTP as Arrow",
            lambda: far.query(ALL).to_arrow(),
            lambda: graph.query(ALL).to_arrow(),
            "at most 1.5 times the same in process",
            repeats=5,
            warm_up=2,
        )


def _loads(folder: str, lines: Path, rows: int) -> Row:
    def empty(name: str) -> str:
        place = str(Path(folder) / name)
        og.init(place, schema=SCHEMA).close()
        return place

    def loaded(graph: og.Graph | RemoteGraph) -> float:
        graph.load(b'{"type": "Person", "data": {"slug": "first"}}', mode="append")  # a process that has loaded before
        return _seconds(lambda: graph.load(lines, mode="append"))

    here, there = [], []
    for turn in range(3):
        with og.open(empty(f"here{turn}")) as graph:
            here.append(loaded(graph))
        with served(empty(f"there{turn}")) as url, og.connect(url) as far:
            there.append(loaded(far))
    ours, other = statistics.median(there), statistics.median(here)
    return Row(f"streamed load of {rows:,} records", ours, other, ours / other, "at most 1.3 times in process")


def _writers(uri: str, graph: og.Graph, seconds: float = 6.0) -> Row:
    """Both sides in turns, each writing for a while with 32 writes under way."""

    def inside() -> float:
        done = 0
        counting = threading.Lock()
        end = time.perf_counter() + seconds

        def write(number: int) -> None:
            nonlocal done
            for turn in itertools.count():
                graph.mutate(INSERT, s=f"{end}-{number}-{turn}")
                if time.perf_counter() >= end:
                    return
                with counting:
                    done += 1

        threads = [threading.Thread(target=write, args=(number,)) for number in range(32)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return done / seconds

    body = json.dumps({"query": INSERT, "params": {"s": UNIQUE.decode()}})
    here: list[float] = []
    there: list[float] = []
    with served(uri) as url:
        for turn in range(4):
            one, other = inside(), _asked(url, "/mutate", 32, seconds, body)[0]
            if turn:  # the first is for getting warm
                here.append(one)
                there.append(other)
    ours, other = statistics.median(there), statistics.median(here)
    return Row("32 writers over HTTP, writes/s", ours, other, ours / other, "at least 0.8 of 32 threads", unit="1/s")


def _asked(url: str, path: str, clients: int, seconds: float, body: str, keys: int = 1) -> tuple[float, float]:
    """Answers per second, and seconds of processor that one costs, the client's part of it too."""
    words = [sys.executable, "-m", "benchmarks.http_clients", url, path, str(clients), str(seconds), body, str(keys)]
    before = _processor_seconds()
    told = json.loads(subprocess.run(words, capture_output=True, text=True, check=True).stdout)
    spent = _processor_seconds() - before + told["cpu_seconds"]
    return told["answers"] / seconds, spent / max(told["answers"], 1)


def _many_clients(uri: str, rows: int, state: str = "", turns: int = 7, seconds: float = 2.0) -> Row:
    """Answers per second; and what one costs the processor, which says what is left to win with more cores.

    One client and many in turns of few seconds: the speed of a machine changes within less than a minute, so only
    neighbours are compared, and what is told is the median of their ratios.
    """
    body = json.dumps({"query": READ, "params": {"s": f"p{KEY.decode()}"}})
    with served(uri, workers=2) as url:
        for _ in range(3):  # until both workers are there and have met the query
            time.sleep(2)
            _asked(url, "/query", 32, 2.0, body, rows)
        pairs = [[_asked(url, "/query", clients, seconds, body, rows) for clients in (1, 32)] for _ in range(turns)]
    ratio = statistics.median(many / max(one, 1e-9) for (one, _), (many, _) in pairs)
    (one, alone), (many, together) = (
        [statistics.median(found) for found in zip(*side, strict=True)] for side in zip(*pairs, strict=True)
    )
    costs = f"{together * 1000:.2f} ms of processor each, {alone * 1000:.2f} alone"
    name = f"32 clients reading{state}, requests/s ({costs})"
    return Row(name, many, one, ratio, "at least 3 times one client, with 2 workers", unit="1/s")


def _processor_seconds() -> float:
    """What the processes below this one have used of the processor."""
    table: dict[int, tuple[int, int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                table[int(entry.name)] = (int(fields[1]), int(fields[11]) + int(fields[12]))
    below = {os.getpid()}
    for _ in range(3):
        below |= {process for process, (above, _) in table.items() if above in below}
    return sum(table[process][1] for process in below - {os.getpid()}) / os.sysconf("SC_CLK_TCK")


def _seconds(action: object) -> float:
    assert callable(action)
    started = time.perf_counter()
    action()
    return time.perf_counter() - started


if __name__ == "__main__":
    import argparse

    parser = argparse.ArgumentParser(prog="python -m benchmarks.bench_server")
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []])
    parser.add_argument("--rows", type=int, default=1_000_000)
    options = parser.parse_args()
    print(markdown(run(options.rows, options.parts or PARTS)))
