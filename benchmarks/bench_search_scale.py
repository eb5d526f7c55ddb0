"""Two million texts and a million vectors of 384 numbers: load, index, query cold and warm, append 1 %, query again.

`OMNIGRAPH_BENCH_SHARE` takes a part of that (0.1 for a tenth). Each step is a process of its own, so its peak memory is
its own too. Indexes are built twice, in process and by Spark (`OMNIGRAPH_BENCH_ENGINES`), each on a copy of the loaded
graph, and questions are put to both. Takes minutes and gigabytes of disk: it runs only when it is named.

With `OMNIGRAPH_BENCH_GRAPHS=DIRECTORY` graphs and figures stay there: a run that was ended goes on with the step that
it was at, and `OMNIGRAPH_BENCH_STEPS=n` does no more than the next n steps that are not done yet.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
import time
from pathlib import Path

import omnigraph as og

from .harness import Row
from .searched_graphs import item_blocks, items, kept_graphs, texts, vectors

SHARE = float(os.environ.get("OMNIGRAPH_BENCH_SHARE", 1))
TEXTS, VECTORS, DIM = int(2_000_000 * SHARE), int(1_000_000 * SHARE), 384
ENGINES = os.environ.get("OMNIGRAPH_BENCH_ENGINES", "local spark").split()
STEPS = int(os.environ.get("OMNIGRAPH_BENCH_STEPS", 100))
SCHEMA = f"""
node Doc {{ name: String @key  kind: I32 @index  text: String @index }}
node Item {{ name: String @key  kind: I32 @index  spot: Vector({DIM}) @index }}
"""
BM25 = "query q($w: String) { match { $d: Doc } return { $d.name } order { bm25($d.text, $w) } limit 10 }"
SEARCH = "query q($w: String) { match { $d: Doc  search($d.text, $w)  $d.kind = 7 } return { count($d) as n } }"
NEAREST = (
    f"query q($v: Vector({DIM})) {{ match {{ $i: Item }} return {{ $i.name }} "
    "order { nearest($i.spot, $v) } limit 10 }"
)
FILTERED = (
    f"query q($v: Vector({DIM})) {{ match {{ $i: Item  $i.kind = 7 }} return {{ $i.name }} "
    "order { nearest($i.spot, $v) } limit 10 }"
)
ASKED = 10

Told = list[tuple[str, float, str]]


def run() -> list[Row]:
    """Each step in turn, each in a process of its own."""
    rows: list[Row] = []
    with kept_graphs() as directory:
        left = STEPS
        loaded = directory / f"scale-{TEXTS}"
        steps: list[tuple[str, Path, Path, Path | None]] = [("load", loaded, loaded, None)]
        for engine in ENGINES:
            indexed = directory / f"scale-{TEXTS}-{engine}"
            steps.append((f"index ({engine})", indexed, indexed, loaded))
            steps += [
                (f"{step} ({engine})", directory / f"{indexed.name}-{step.replace(' ', '-')}", indexed, None)
                for step in ("ask", "append", "ask after the append")
            ]
        for step, done, path, start in steps:
            figures = Path(f"{done}.json")
            if not figures.exists():
                if left == 0:
                    break
                left -= 1
                _do(step, figures, path, start)
            told = json.loads(figures.read_text(encoding="utf-8"))
            rows += [Row(f"{step}: {name}", value, None, None, "", unit=unit) for name, value, unit in told]
    return rows


def _do(step: str, figures: Path, path: Path, start: Path | None) -> None:
    """One step; what an ended run has left of a graph that this step makes is removed first."""
    if step == "load" or start is not None:
        shutil.rmtree(path, ignore_errors=True)
    if start is not None:
        shutil.copytree(start, path)
    command = [sys.executable, "-m", "benchmarks.bench_search_scale", str(path), step]
    told = subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout
    figures.write_bytes(told.splitlines()[-1])


def step_of(path: str, name: str) -> Told:
    """One step in this process: what took how long, and the memory it needed."""
    if name == "load":
        told = _loaded(path)
    elif name.startswith("index"):
        began = time.perf_counter()
        og.open(path).optimize(engine="spark" if "spark" in name else "local")
        told = [("optimize", time.perf_counter() - began, "s")]
    elif name.startswith("append"):
        told = _appended(path)
    else:
        told = _asked(path)
    return [*told, ("peak memory", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, "MB")]


def _loaded(path: str) -> Told:
    graph = og.init(path, schema=SCHEMA)
    told: Told = []
    for type_, count, blocks in (
        ("Doc", TEXTS, texts(TEXTS)),
        ("Item", VECTORS, item_blocks(VECTORS, DIM, "clustered")),
    ):
        spent = 0.0
        for block in blocks:
            began = time.perf_counter()
            graph.load(block, mode="append", type=type_, engine="local")
            spent += time.perf_counter() - began
        told.append((f"{count:,} {'texts' if type_ == 'Doc' else 'vectors'}", spent, "s"))
    return told


def _appended(path: str) -> Told:
    graph = og.open(path)
    count = max(1, TEXTS // 100)
    table = next(iter(texts(count)))
    fresh = table.set_column(0, "name", [[f"n{number:08d}" for number in range(count)]])
    more = items(vectors(max(1, VECTORS // 100), DIM, "clustered", 5), VECTORS)
    began = time.perf_counter()
    graph.load(fresh, mode="append", type="Doc", engine="local")
    graph.load(more, mode="append", type="Item", engine="local")
    return [(f"{fresh.num_rows:,} texts, {more.num_rows:,} vectors", time.perf_counter() - began, "s")]


def _asked(path: str) -> Told:
    told: Told = []
    graph = og.open(path, read_only=True)
    wanted = {"v": [float(value) for value in vectors(1, DIM, "clustered", 9)[0]]}
    words = {"w": "w40 w700"}
    for kind, query, params in (
        ("bm25 top 10", BM25, words),
        ("search with a filter, counted", SEARCH, words),
        ("nearest top 10", NEAREST, wanted),
        ("nearest top 10 of 4 %", FILTERED, wanted),
    ):
        spent = []
        for _ in range(ASKED):
            began = time.perf_counter()
            graph.query(query, params=params).to_arrow()
            spent.append(time.perf_counter() - began)
        told.append((f"{kind}, first of the process", spent[0], "s"))
        told.append((f"{kind}, warm", sorted(spent[1:])[len(spent) // 2], "s"))
    return told


if __name__ == "__main__":
    print(json.dumps(step_of(*sys.argv[1:3])))
