"""One load of twenty million edges on Spark, as one commit, and one of a tenth: time, and memory process by process.

Takes minutes and a few gigabytes of disk, so it is not among the suites that run by default.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.bench_load import SCHEMA
from benchmarks.harness import Row

KINDS = ("driver JVM", "driver Python", "Python workers")


def run(edges: int = 20_000_000) -> list[Row]:
    """The load of `edges` edges and a tenth as many nodes, against one of a tenth of that, each in its own process."""
    with tempfile.TemporaryDirectory() as directory:
        told = {}
        for count in (edges // 10, edges):
            source = write_input(Path(directory, "input.jsonl"), count)
            told[count] = load_in_a_process(source, Path(directory, f"graph-{count}"))
            source.unlink()
    small, large = told[edges // 10], told[edges]
    name = f"load on Spark of {edges:,} edges and {edges // 10:,} nodes in one commit"
    return [
        _row(f"{name}, against a tenth", large["seconds"], small["seconds"], "10 times, not more", "s"),
        *(
            _row(f"peak memory of that: {kind}", large["peak"][kind], small["peak"][kind], "flat", "MB")
            for kind in (*KINDS, "all together")
        ),
    ]


def _row(name: str, ours: float, other: float, goal: str, unit: str) -> Row:
    return Row(name, ours, other, ours / other, goal, unit=unit)


def write_input(path: Path, edges: int, nodes: int | None = None) -> Path:
    """JSON lines of nodes and (ten times as many) edges between them, by DuckDB: Python would take minutes."""
    import duckdb

    nodes = nodes or max(1, edges // 10)
    people = f"""select '{{"type": "Person", "data": {{"slug": "person-' || n || '", "name": "Person Number ' || n
        || '", "age": ' || n % 90 || ', "score": ' || (n % 1000) / 1000.0 || '}}}}' from range({nodes}) t(n)"""
    knows = f"""select '{{"edge": "Knows", "from": "person-' || n % {nodes} || '", "to": "person-'
        || (hash(n) % {nodes})::bigint || '", "data": {{"since": "20' || lpad((n % 30)::varchar, 2, '0')
        || '-01-0' || 1 + n % 9 || '"}}}}' from range({edges}) t(n)"""
    connection = duckdb.connect()
    connection.execute("set preserve_insertion_order = false")
    with path.open("wb") as together:
        for query in (people, knows):
            part = path.with_suffix(".part")
            connection.execute(f"copy ({query}) to '{part}' (format csv, header false, quote '', escape '')")
            with part.open("rb") as file:
                while block := file.read(64 << 20):
                    together.write(block)
            part.unlink()
    connection.close()
    return path


def load_in_a_process(source: Path, graph: Path) -> dict[str, Any]:
    """What a fresh process that does nothing but this load tells about itself."""
    ran = subprocess.run(
        [sys.executable, "-m", "benchmarks.bench_scale", str(source), str(graph)],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).resolve().parents[1],
    )
    if ran.returncode:
        raise RuntimeError(ran.stderr[-3000:])
    told: dict[str, Any] = json.loads(ran.stdout.splitlines()[-1])
    return told


def load_here(source: str, graph: str) -> dict[str, Any]:
    """Load on Spark in this process. The session is started before; its memory counts."""
    from omnigraph.ledger.store import create_store
    from omnigraph.spark.load.load import load
    from omnigraph.spark.session.session import spark_session

    session = spark_session()
    with create_store(graph, SCHEMA) as store:
        before = store.snapshot().head
        started = time.perf_counter()
        steps: list[tuple[str, float]] = []

        def note(progress: Any) -> None:
            if not steps or steps[-1][0] != progress.step:
                steps.append((progress.step, round(progress.seconds, 1)))

        result, peak = watched(lambda: load(session, store, source, mode="append", progress=note))
        seconds = time.perf_counter() - started
        tables = {table.table_key: table.rows_loaded for table in result.tables}
        if store.snapshot().head.parent_commit_id != before.graph_commit_id:
            raise RuntimeError("the load made more than one commit")
    session.stop()
    size = os.path.getsize(source)
    return {"seconds": seconds, "bytes": size, "rows": tables, "steps": steps, "peak": peak}


def watched(action: Callable[[], Any]) -> tuple[Any, dict[str, float]]:
    """The outcome of an action and the peaks, in megabytes, of the resident memory that this process and its
    descendants had meanwhile, by kind. Pages that forked workers share count once for each."""
    peak = dict.fromkeys((*KINDS, "all together"), 0.0)
    done = threading.Event()

    def watch() -> None:
        while not done.wait(0.1):
            now = resident()
            for kind in peak:
                peak[kind] = max(peak[kind], sum(now.values()) if kind == "all together" else now[kind])

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        outcome = action()
    finally:
        done.set()
        watcher.join()
    return outcome, peak


def resident() -> dict[str, float]:
    """Megabytes of resident memory of this process and its descendants, by kind."""
    parents: dict[int, int] = {}
    known: dict[int, tuple[str, float]] = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            number = int(entry.name)
            parents[number] = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
            size = int((entry / "statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20
            known[number] = ((entry / "comm").read_text().strip(), size)
        except (OSError, IndexError):
            continue
    found = dict.fromkeys(KINDS, 0.0)
    waiting = [os.getpid()]
    while waiting:
        number = waiting.pop()
        waiting += [child for child, parent in parents.items() if parent == number]
        name, size = known.get(number, ("", 0.0))
        kind = KINDS[0] if name == "java" else KINDS[1] if number == os.getpid() else KINDS[2]
        found[kind] += size
    return found


if __name__ == "__main__":
    print(json.dumps(load_here(*sys.argv[1:3])))
