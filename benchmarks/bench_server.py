"""A graph over HTTP on loopback against the same graph in process: reads, many clients, writers, results, loads.

python -m benchmarks.bench_server [--quick]

The server is a process of its own. Clients are processes too where there are many: one that waits for others of its own
process would measure itself.
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
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

import omnigraph as og
from benchmarks.harness import Row, measure

SCHEMA = "node Person { slug: String @key age: I32? note: String? }\n"
READ = "query q($s: String) { match { $p: Person { slug: $s } } return { $p.slug, $p.age } }"
ALL = "query q() { match { $p: Person } return { $p.slug, $p.age } }"
INSERT = "query m($s: String) { insert Person { slug: $s } }"
_CLIENT = """
import sys, time, httpx
url, seconds, start, body = sys.argv[1], float(sys.argv[2]), float(sys.argv[3]), sys.argv[4]
done = 0
with httpx.Client(base_url=url, timeout=60) as http:
    headers = {"Content-Type": "application/json"}
    http.post("/query", content=body, headers=headers)
    while time.time() < start:
        time.sleep(0.001)
    while time.time() < start + seconds:
        assert http.post("/query", content=body, headers=headers).status_code == 200
        done += 1
print(done)
"""


@contextmanager
def served(uri: str, workers: int = 1) -> Iterator[str]:
    """A server process on a free port."""
    code = "from omnigraph.server.launch import run; run()"
    words = [uri, "--unauthenticated", "--bind", "127.0.0.1:0", "--workers", str(workers)]
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


def run(quick: bool = False) -> list[Row]:
    """The rows of this suite."""
    rows = 100_000 if quick else 1_000_000
    with tempfile.TemporaryDirectory() as folder:
        uri = str(Path(folder) / "g.omni")
        lines = Path(folder) / "people.jsonl"
        with lines.open("w") as file:
            for n in range(rows):
                file.write(json.dumps({"type": "Person", "data": {"slug": f"p{n}", "age": n % 90}}) + "\n")
        with og.init(uri, schema=SCHEMA) as graph:
            graph.load(lines, mode="append")
            graph.optimize()
            found = [*_one_client(uri, graph, rows), *_loads(folder, lines, rows)]
            found += _writers(uri, graph)
        return [*found, *_many_clients(uri, 2.0 if quick else 8.0)]


def _one_client(uri: str, graph: og.Graph, rows: int) -> list[Row]:
    with served(uri) as url, og.connect(url) as far, httpx.Client(base_url=url, timeout=60) as http:
        body = {"query": READ, "params": {"s": "p77"}}
        here = _median(lambda: graph.query(READ, s="p77").rows(), 300)
        there = _median(lambda: http.post("/query", json=body).json(), 300)
        extra = (there - here) * 1000
        point = Row(
            f"point read over HTTP, p50 (+{extra:.2f} ms)", there, here, there / here, "at most 1.5 ms more than here"
        )
        arrow = measure(
            f"{rows:,} rows over HTTP as Arrow",
            lambda: far.query(ALL).to_arrow(),
            lambda: graph.query(ALL).to_arrow(),
            "at most 1.5 times the same in process",
            repeats=5,
            warm_up=2,
        )
        return [point, arrow]


def _loads(folder: str, lines: Path, rows: int) -> list[Row]:
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
    return [Row(f"streamed load of {rows:,} records", ours, other, ours / other, "at most 1.3 times in process")]


def _writers(uri: str, graph: og.Graph) -> list[Row]:
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

    here = rate(lambda slug: graph.mutate(INSERT, s=slug))
    with served(uri) as url, httpx.Client(base_url=url, timeout=120, limits=httpx.Limits(max_connections=64)) as http:

        def write(slug: str) -> None:
            answer = http.post("/mutate", json={"query": INSERT, "params": {"s": slug}})
            assert answer.status_code == 200, answer.text

        there = rate(write)
    return [Row("32 writers over HTTP, writes/s", there, here, there / here, "at least 0.8 of 32 threads", unit="1/s")]


def _many_clients(uri: str, seconds: float) -> list[Row]:
    body = json.dumps({"query": READ, "params": {"s": "p77"}})

    def rate(url: str, clients: int) -> float:
        start = time.time() + 3 + clients * 0.4
        words = [sys.executable, "-c", _CLIENT, url, str(seconds), str(start), body]
        running = [subprocess.Popen(words, stdout=subprocess.PIPE, text=True) for _ in range(clients)]
        return sum(int(one.communicate()[0]) for one in running) / seconds

    with served(uri, workers=2) as url:
        one, many = rate(url, 1), rate(url, 32)
    goal = "at least 3 times one client, with 2 workers"
    return [Row("32 clients reading, requests/s", many, one, many / one, goal, unit="1/s")]


def _median(action: object, times: int) -> float:
    assert callable(action)
    for _ in range(20):
        action()
    return statistics.median(_seconds(action) for _ in range(times))


def _seconds(action: object) -> float:
    assert callable(action)
    started = time.perf_counter()
    action()
    return time.perf_counter() - started


if __name__ == "__main__":
    from benchmarks.harness import markdown

    print(markdown(run("--quick" in sys.argv)))
