"""Page by page what the pipeline on Spark must reach, each against its alternative in the same session and run."""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

from benchmarks.bench_load import SCHEMA, write_input
from benchmarks.harness import Row, measure
from omnigraph.ledger.snapshots import table_of
from omnigraph.ledger.store import GraphStore, create_store
from omnigraph.spark.session import spark_session
from omnigraph.storage.compaction import CompactionOptions, plan_compaction, run_compaction_task
from omnigraph.storage.tables import TableStore
from omnigraph.storage.uri import parse_root
from omnigraph.storage.values import TableVersion
from omnigraph.write.load import load as load_in_process


def run(nodes: int = 1_000_000, repeats: int = 3) -> list[Row]:
    """Load, memory, upsert, read and compaction on `local[*]`. The start of the session is left out of all."""
    session = spark_session()
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        source = write_input(place / "input.jsonl", nodes)
        graph = place / "graph"
        rows.append(
            measure(
                f"load on Spark of {nodes:,} nodes and {3 * nodes:,} edges, against parsing to Parquet",
                lambda: load_on_spark(session, source, graph),
                lambda: parse_to_parquet(session, source, place / "parquet"),
                "2.5 times as fast (ratio 0.4)",
                repeats=repeats,
                warm_up=1,
            )
        )
        rows.append(_memory(session, source, place, nodes))
        rows += _upserts(session, place, nodes, repeats)
        rows.append(_reading(session, graph, place, repeats))
        rows.append(_compaction(session, place, repeats))
    session.stop()
    return rows


def load_on_spark(session: Any, source: Path, graph: Path) -> GraphStore:
    """One load into an empty graph, all checks on."""
    from omnigraph.spark.load import load

    shutil.rmtree(graph, ignore_errors=True)
    store = create_store(str(graph), SCHEMA)
    load(session, store, str(source), mode="append")
    return store


def parse_to_parquet(session: Any, source: Path, target: Path) -> None:
    """What people write by hand: `from_json` for each type, Parquet as the result, nothing checked."""
    from pyspark.sql import functions

    schemas = {
        "type": "type string, data struct<slug: string, name: string, age: int, score: double>",
        "edge": "edge string, from string, to string, data struct<since: date>",
    }
    for key, schema in schemas.items():
        parsed = session.read.text(str(source)).select(functions.from_json("value", schema).alias("r")).select("r.*")
        parsed.where(functions.col(key).isNotNull()).write.mode("overwrite").parquet(f"{target}/{key}")


def _memory(session: Any, source: Path, place: Path, nodes: int) -> Row:
    small_source = write_input(place / "small.jsonl", max(1, nodes // 10))
    small = _peak(lambda: load_on_spark(session, small_source, place / "small"))
    large = _peak(lambda: load_on_spark(session, source, place / "large"))
    name = "peak memory of the driver's Python and all workers, against a tenth of the input"
    return Row(name, large, small, large / small, "flat", unit="MB")


def _peak(action: Callable[[], Any]) -> float:
    """Megabytes that this process and its Python descendants held at most, above what they held before.

    The heap of the JVM is fixed when it starts and is left out.
    """
    before = _held()
    peak = before
    done = threading.Event()

    def watch() -> None:
        nonlocal peak
        while not done.wait(0.05):
            peak = max(peak, _held())

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        action()
    finally:
        done.set()
        watcher.join()
    return max(peak - before, 1.0)


def _held() -> float:
    parents: dict[int, int] = {}
    sizes: dict[int, float] = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
            is_python = "python" in (entry / "comm").read_text()
            resident = int((entry / "statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20
        except (OSError, IndexError):
            continue
        parents[int(entry.name)] = int(fields[1])
        sizes[int(entry.name)] = resident if is_python else 0.0
    mine = {os.getpid()}
    grew = True
    while grew:
        more = {child for child, parent in parents.items() if parent in mine} - mine
        mine |= more
        grew = bool(more)
    return sum(sizes.get(process, 0.0) for process in mine)


def _upserts(session: Any, place: Path, nodes: int, repeats: int) -> list[Row]:
    """The same thousand rows merged into a table and into one a tenth of its size."""
    from omnigraph.spark.load import load

    stores = {}
    for size in (nodes // 10, nodes):
        stores[size] = create_store(str(place / f"upsert-{size}"), SCHEMA)
        people = pa.table({"slug": [f"person-{n}" for n in range(size)], "name": ["x"] * size})
        load_in_process(stores[size], people, mode="append", type="Person")
    turn = 0

    def upsert(size: int) -> None:
        nonlocal turn
        turn += 1
        chosen = [f"person-{n * (size // 1000)}" for n in range(1000)]
        changed = pa.table({"slug": chosen, "name": [f"turn {turn}"] * 1000})
        load(session, stores[size], changed, mode="merge", type="Person")

    large, small = nodes, nodes // 10
    return [
        measure(
            f"merging load of 1,000 rows into {large:,}, against into {small:,}",
            lambda: upsert(large),
            lambda: upsert(small),
            "within 1.5 times",
            repeats=repeats,
            warm_up=2,
        )
    ]


def _reading(session: Any, graph: Path, place: Path, repeats: int) -> Row:
    from pyspark.sql import functions

    from omnigraph.ledger.store import open_store
    from omnigraph.spark.datasource import to_spark

    store = open_store(str(graph), read_only=True)
    parquet = str(place / "edges.parquet")
    to_spark(session, store, "Knows").write.mode("overwrite").parquet(parquet)

    def consume(frame: Any) -> None:
        frame.agg(*[functions.max(name) for name in frame.columns]).collect()

    return measure(
        "reading a type through the data source, against reading Parquet of it",
        lambda: consume(to_spark(session, store, "Knows")),
        lambda: consume(session.read.parquet(parquet)),
        "within 1.5 times",
        repeats=repeats,
        warm_up=2,
    )


def _compaction(session: Any, place: Path, repeats: int, fragments: int = 1000) -> Row:
    from omnigraph.spark.compact import run_compaction_tasks

    tables, version = _scattered(place / "scattered", fragments)
    work = plan_compaction(tables.handles, version, CompactionOptions(target_rows=200_000))
    return measure(
        f"compaction of {fragments:,} small fragments in {len(work)} tasks, against one process",
        lambda: run_compaction_tasks(session, work),
        lambda: [run_compaction_task(task) for task in work],
        "faster",
        repeats=repeats,
        warm_up=1,
    )


def _scattered(root: Path, fragments: int) -> tuple[TableStore, TableVersion]:
    store = create_store(str(root), SCHEMA)
    tables = TableStore(parse_root(str(root)))
    table = table_of(store.snapshot().pin("node:Person"))
    schema = tables.schema(table)
    names = [field.name for field in schema]
    texts: list[str] = []
    for number in range(fragments):
        ids = [f"p{number}-{row}" for row in range(1000)]
        rows = pa.table({"id": ids, "slug": ids, "name": ids}, schema=pa.schema([schema.field(n) for n in names[:3]]))
        full = rows.append_column("age", pa.nulls(1000, pa.int32())).append_column(
            "score", pa.nulls(1000, pa.float64())
        )
        from omnigraph.storage.distributed import write_fragments

        texts += write_fragments(tables.write_target(table), full, schema)
    return tables, tables.commit_staged(tables.stage_fragments(table, texts), "benchmark")


if __name__ == "__main__":
    import sys

    from benchmarks.harness import markdown

    print(markdown(run(*(int(argument) for argument in sys.argv[1:]))))
