"""Page by page what the pipeline on Spark must reach, each against its alternative in the same session and run."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.bench_load import SCHEMA, write_input
from benchmarks.bench_scale import load_in_a_process
from benchmarks.harness import Row, measure
from omnigraph.ledger.snapshots import table_of
from omnigraph.ledger.store import GraphStore, create_store
from omnigraph.maintain.optimize.optimize import ensure_indices
from omnigraph.maintain.optimize.workers import local_workers
from omnigraph.spark.session.session import spark_session
from omnigraph.storage.layout.compaction import plan_compaction
from omnigraph.storage.staging.distributed import write_fragments
from omnigraph.storage.tables import TableStore
from omnigraph.storage.uri import parse_root
from omnigraph.storage.values import TableVersion
from omnigraph.write.load.load import load as load_in_process

ROWS_PER_SMALL_FRAGMENT = 5_000


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
        rows.append(_memory(source, place, nodes))
        rows += _upserts(session, place, nodes, repeats)
        rows += _reading(session, graph, place, repeats)
        rows.append(_compaction(session, place, repeats))
    session.stop()
    return rows


def load_on_spark(session: Any, source: Path, graph: Path) -> GraphStore:
    """One load into an empty graph, all checks on."""
    from omnigraph.spark.load.load import load

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


def _memory(source: Path, place: Path, nodes: int) -> Row:
    """Each load in a fresh process, so that what another one left behind does not count."""
    small_source = write_input(place / "small.jsonl", max(1, nodes // 10))
    small = load_in_a_process(small_source, place / "small")["peak"]["all together"]
    large = load_in_a_process(source, place / "large")["peak"]["all together"]
    name = "peak memory of that load: JVM, driver and all workers together, against a tenth of the input"
    return Row(name, large, small, large / small, "flat", unit="MB")


def _upserts(session: Any, place: Path, nodes: int, repeats: int) -> list[Row]:
    """The same thousand rows merged into a table and into one ten times as large, both with their indexes built."""
    from omnigraph.spark.load.load import load

    small, large = nodes, 10 * nodes
    stores = {}
    for size in (small, large):
        stores[size] = create_store(str(place / f"upsert-{size}"), SCHEMA)
        numbers = pc.cast(pa.array(np.arange(size)), pa.string())
        slugs = pc.binary_join_element_wise(pa.scalar("person"), numbers, pa.scalar("-"))
        people = pa.table({"slug": slugs, "name": slugs})
        load_in_process(stores[size], people, mode="append", type="Person")
        ensure_indices(stores[size])
    turn = 0

    def upsert(size: int) -> None:
        nonlocal turn
        turn += 1
        chosen = [f"person-{n * (size // 1000)}" for n in range(1000)]
        changed = pa.table({"slug": chosen, "name": [f"turn {turn}"] * 1000})
        load(session, stores[size], changed, mode="merge", type="Person")

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


def _reading(session: Any, graph: Path, place: Path, repeats: int) -> list[Row]:
    """Every column of every row is looked at, whichever way the rows came."""
    from pyspark.sql import functions

    from omnigraph.ledger.store import open_store
    from omnigraph.spark.source.datasource import to_spark

    store = open_store(str(graph), read_only=True)
    parquet = str(place / "edges.parquet")
    to_spark(session, store, "Knows").write.mode("overwrite").parquet(parquet)

    def consume(frame: Any) -> None:
        frame.agg(*[functions.max(name) for name in frame.columns]).collect()

    ways = {
        "to_spark": lambda: to_spark(session, store, "Knows"),
        'read.format("omnigraph")': lambda: session.read.format("omnigraph").option("type", "Knows").load(str(graph)),
    }
    return [
        measure(
            f"reading a type by {name}, against reading Parquet of it",
            lambda frame=frame: consume(frame()),
            lambda: consume(session.read.parquet(parquet)),
            "within 1.3 times",
            repeats=repeats,
            warm_up=2,
        )
        for name, frame in ways.items()
    ]


def _compaction(session: Any, place: Path, repeats: int, fragments: int = 1000) -> Row:
    """The tasks that `optimize` plans for each engine, run again and again on one table version."""
    from omnigraph.spark.jobs.compact import spark_workers

    tables, version = _scattered(place / "scattered", fragments)
    workers = [spark_workers(session), local_workers()]
    rows = fragments * ROWS_PER_SMALL_FRAGMENT
    there, here = (plan_compaction(tables.handles, version, one.options_for(rows)) for one in workers)
    return measure(
        f"compaction of {fragments:,} fragments of {ROWS_PER_SMALL_FRAGMENT:,} rows on Spark, in {len(there)} tasks, "
        f"against one process, in {len(here)}",
        lambda: workers[0].compact(there),
        lambda: workers[1].compact(here),
        "faster",
        repeats=repeats,
        warm_up=2,
    )


def _scattered(root: Path, fragments: int) -> tuple[TableStore, TableVersion]:
    store = create_store(str(root), SCHEMA)
    tables = TableStore(parse_root(str(root)))
    table = table_of(store.snapshot().pin("node:Person"))
    schema = tables.schema(table)
    texts: list[str] = []
    for number in range(fragments):
        ids = [f"p{number}-{row}" for row in range(ROWS_PER_SMALL_FRAGMENT)]
        ages = [row % 90 for row in range(ROWS_PER_SMALL_FRAGMENT)]
        scores = [row / 7 for row in range(ROWS_PER_SMALL_FRAGMENT)]
        rows = pa.table({"id": ids, "slug": ids, "name": ids, "age": ages, "score": scores}, schema=schema)
        texts += write_fragments(tables.write_target(table), rows, schema)
    return tables, tables.commit_staged(tables.stage_fragments(table, texts), "benchmark")


if __name__ == "__main__":
    import sys

    from benchmarks.harness import markdown

    print(markdown(run(*(int(argument) for argument in sys.argv[1:]))))
