"""A graph over HTTP on loopback against the same graph in process: reads, many clients, writers, results, loads.

python -m benchmarks.bench_server [--rows N] [PART ...]     parts: reads, results, loads, writers, clients

The server is a process of its own, and so are the clients where there are many of them.
"""

from __future__ import annotations

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


PARTS = ("reads", "results", "loads", "writers", "clients")


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
                        row = _reads(uri, graph)
                    case "results":
                        row = _results(uri, graph, rows)
                    case "loads":
                        row = _loads(folder, lines, rows)
                    case "writers":
                        row = _writers(uri, graph)
                    case _:
                        row = _many_clients(uri, 8.0)
                print(markdown([row]), file=sys.stderr, flush=True)
                found.append(row)
    return found


def _reads(uri: str, graph: og.Graph) -> Row:
    """Both sides in turns, so that a busy machine is as busy for one as for the other."""
    with served(uri) as url, httpx.Client(base_url=url, timeout=60) as http:
        body = {"query": READ, "params": {"s": "p77"}}
        here: list[float] = []
        there: list[float] = []
        for turn in range(320):
            one, other = (
                _seconds(lambda: graph.query(READ, s="p77").rows()),
                _seconds(lambda: http.post("/query", json=body).json()),
            )
            if turn >= 20:
                here.append(one)
                there.append(other)
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

    here, there = [], []
    for turn in range(3):
        with og.open(empty(f"here{turn}")) as graph:
            here.append(_seconds(lambda: graph.load(lines, mode="append")))
        with served(empty(f"there{turn}")) as url, og.connect(url) as far:
            there.append(_seconds(lambda: far.load(lines, mode="append")))
    ours, other = statistics.median(there), statistics.median(here)
    return Row(f"streamed load of {rows:,} records", ours, other, ours / other, "at most 1.3 times in process")


def _writers(uri: str, graph: og.Graph) -> Row:
    def rate(write: object, writers: int = 32, each: int = 4) -> float:
        assert callable(write)
        threads = [
            threading.Thread(target=lambda n=n: [write(f"{time.time_ns()}-{n}-{k}") for k in range(each)])
            for n in range(writers)
        ]
        started = time.perf_counter()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return writers * each / (time.perf_counter() - started)

    here: list[float] = []
    there: list[float] = []
    with served(uri) as url, httpx.Client(base_url=url, timeout=120, limits=httpx.Limits(max_connections=64)) as http:

        def write(slug: str) -> None:
            answer = http.post("/mutate", json={"query": INSERT, "params": {"s": slug}})
            assert answer.status_code == 200, answer.text

        for _ in range(3):
            graph.mutate(INSERT, s=str(time.time_ns()))
            here.append(rate(lambda slug: graph.mutate(INSERT, s=slug)))
            write(str(time.time_ns()))
            there.append(rate(write))
    ours, other = statistics.median(there), statistics.median(here)
    return Row("32 writers over HTTP, writes/s", ours, other, ours / other, "at least 0.8 of 32 threads", unit="1/s")


def _many_clients(uri: str, seconds: float) -> Row:
    """Answers per second; and what one costs the processor, which says what is left to win with more cores."""
    body = json.dumps({"query": READ, "params": {"s": "p77"}})

    def asked(url: str, clients: int, seconds: float) -> tuple[float, float]:
        words = [sys.executable, "-m", "benchmarks.http_clients", url, str(clients), str(seconds), body]
        before = _processor_seconds()
        told = json.loads(subprocess.run(words, capture_output=True, text=True, check=True).stdout)
        spent = _processor_seconds() - before + told["cpu_seconds"]
        return told["answers"] / seconds, spent / max(told["answers"], 1)

    with served(uri, workers=2) as url:
        for _ in range(3):  # until both workers are there and have met the query
            time.sleep(2)
            asked(url, 32, 2.0)
        one, one_costs = asked(url, 1, seconds)
        many, many_cost = asked(url, 32, seconds)
    name = f"32 clients reading, requests/s ({many_cost * 1000:.2f} ms of processor each, {one_costs * 1000:.2f} alone)"
    goal = "at least 3 times one client, with 2 workers"
    return Row(name, many, one, many / max(one, 1e-9), goal, unit="1/s")


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
