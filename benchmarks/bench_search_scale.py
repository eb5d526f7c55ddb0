"""Two million texts and a million vectors of 384 numbers: load, index, query cold and warm, append 1 %, query again.

`OMNIGRAPH_BENCH_SHARE` takes a part of that (0.1 for a tenth). Each step is a process of its own, so its peak memory is
its own too. Indexes are built twice, in process and by Spark (`OMNIGRAPH_BENCH_ENGINES`), each on a copy of the loaded
graph. Takes minutes and gigabytes of disk: it runs only when it is named. `OMNIGRAPH_BENCH_GRAPHS` keeps the loaded and
the indexed graphs with what they took, so that questions can be asked another time.
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
from .searched_graphs import items, kept_graphs, load_vectors, texts, vectors

SHARE = float(os.environ.get("OMNIGRAPH_BENCH_SHARE", 1))
TEXTS, VECTORS, DIM = int(2_000_000 * SHARE), int(1_000_000 * SHARE), 384
ENGINES = os.environ.get("OMNIGRAPH_BENCH_ENGINES", "local spark").split()
SCHEMA = f"""
node Doc {{ name: String @key  kind: I32 @index  text: String @index }}
node Item {{ name: String @key  kind: I32 @index  spot: Vector({DIM}) }}
"""
BM25 = "query q($w: String) { match { $d: Doc } return { $d.name } order { bm25($d.text, $w) } limit 10 }"
NEAREST = (
    f"query q($v: Vector({DIM})) {{ match {{ $i: Item }} return {{ $i.name }} "
    "order { nearest($i.spot, $v) } limit 10 }"
)

Told = list[tuple[str, float, str]]


def run() -> list[Row]:
    """Each step in turn, each in a process of its own."""
    rows: list[Row] = []
    with kept_graphs() as directory:
        loaded = directory / f"scale-{TEXTS}"
        rows += _rows("load", _kept_step(loaded, "load"))
        for engine in ENGINES:
            indexed = directory / f"scale-{TEXTS}-{engine}"
            rows += _rows(f"index ({engine})", _kept_step(indexed, f"index {engine}", loaded))
        asked = directory / "scale-asked"
        shutil.rmtree(asked, ignore_errors=True)
        shutil.copytree(directory / f"scale-{TEXTS}-{ENGINES[0]}", asked)
        for step in ("ask", "append", "ask after the append"):
            rows += _rows(step, _in_a_process(asked, step))
        shutil.rmtree(asked)
    return rows


def _rows(step: str, told: Told) -> list[Row]:
    return [Row(f"{step}: {name}", value, None, None, "", unit=unit) for name, value, unit in told]


def _kept_step(path: Path, step: str, start: Path | None = None) -> Told:
    """A step whose graph and figures may be there from an earlier run."""
    figures = Path(f"{path}.json")
    if not figures.exists():
        shutil.rmtree(path, ignore_errors=True)
        if start is not None:
            shutil.copytree(start, path)
        figures.write_text(json.dumps(_in_a_process(path, step)), encoding="utf-8")
    told: Told = [tuple(each) for each in json.loads(figures.read_text(encoding="utf-8"))]
    return told


def _in_a_process(path: Path, step: str) -> Told:
    command = [sys.executable, "-m", "benchmarks.bench_search_scale", str(path), step]
    told: Told = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
    return told


def step_of(path: str, name: str) -> Told:
    """One step in this process: what took how long, and the memory it needed."""
    told: Told = []
    started = time.perf_counter()
    if name == "load":
        graph = og.init(path, schema=SCHEMA)
        for table in texts(TEXTS):
            graph.load(table, mode="append", type="Doc", engine="local")
        load_vectors(graph, VECTORS, DIM, "clustered")
    elif name.startswith("index"):
        og.open(path).optimize(engine="spark" if name.endswith("spark") else "local")
    elif name == "append":
        _append(path)
    else:
        told += _asked(path)
    told.append((f"{TEXTS:,} texts, {VECTORS:,} vectors, all together", time.perf_counter() - started, "s"))
    told.append(("peak memory", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, "MB"))
    return told


def _append(path: str) -> None:
    graph = og.open(path)
    count = max(1, TEXTS // 100)
    table = next(iter(texts(count)))
    fresh = table.set_column(0, "name", [[f"n{number:08d}" for number in range(count)]])
    graph.load(fresh, mode="append", type="Doc", engine="local")
    more = vectors(max(1, VECTORS // 100), DIM, "clustered", 5)
    graph.load(items(more, VECTORS), mode="append", type="Item", engine="local")


def _asked(path: str) -> Told:
    told: Told = []
    graph = og.open(path, read_only=True)
    wanted = {"v": [float(value) for value in vectors(1, DIM, "clustered", 9)[0]]}
    for query, params in ((BM25, {"w": "w40 w700"}), (NEAREST, wanted)):
        kind = "bm25" if query is BM25 else "nearest"
        spent = []
        for _ in range(10):
            began = time.perf_counter()
            graph.query(query, params=params).to_arrow()
            spent.append(time.perf_counter() - began)
        told.append((f"{kind} top 10, first of the process", spent[0], "s"))
        told.append((f"{kind} top 10, warm", sorted(spent[1:])[4], "s"))
    return told


if __name__ == "__main__":
    print(json.dumps(step_of(*sys.argv[1:3])))
