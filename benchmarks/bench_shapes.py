"""Loads on Spark of inputs with a shape that hurts, against plain PySpark that does the same reading and writing.

Many rows, one node with all edges, thousands of small files, a hundred columns, long vectors, a merge of very many
rows. Each side in a process of its own, after a run on a hundredth of the input; time, processor time of all processes
together, and memory by process.

python -m benchmarks.bench_shapes [SHAPE …] [--scale 1.0]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks import bench_columnar, bench_load, bench_scale
from benchmarks.bench_spark import parse_to_parquet
from benchmarks.harness import Row, shown
from omnigraph.ledger.store import GraphStore, create_store

DIMENSIONS = 768
COLUMNS = 100
_WIDE = "".join(f"  c{n}: {('String', 'I64', 'F64', 'Date')[n % 4]}?" for n in range(COLUMNS))
PEOPLE_AND_EDGES = {"people": "Person", "knows": "Knows"}
GOAL = "within 1.3 times"


@dataclass(frozen=True)
class Shape:
    """What is written at full scale, and how it is loaded by both sides."""

    name: str
    schema: str
    write: Callable[[Path, float], None]
    load: Callable[[Any, GraphStore, Path], None]
    plain: Callable[[Any, Path, Path], None]
    goal: str = GOAL
    before: Callable[[GraphStore, Path], None] | None = None
    """What is in the graph already."""


def run(names: Sequence[str] = (), scale: float = 1.0) -> list[Row]:
    """Every shape, or those that are named."""
    rows: list[Row] = []
    for key in names or SHAPES:
        with tempfile.TemporaryDirectory() as directory:
            place = Path(directory)
            for part, of_it in (("small", scale / 100), ("large", scale)):
                (place / part).mkdir()
                SHAPES[key].write(place / part, of_it)
            ours, plain = (_in_a_process(key, side, place) for side in ("ours", "plain"))
        name = f"{SHAPES[key].name}{'' if scale == 1 else f', scale {scale:g}'}"
        seconds = [told["seconds"] for told in (ours, plain)]
        time_row = Row(f"{name}, against plain PySpark", *seconds, seconds[0] / seconds[1], SHAPES[key].goal)
        rows.append(shown(time_row))
        used = [told["cpu"] for told in (ours, plain)]
        rows.append(shown(Row("… processor time", *used, used[0] / used[1], SHAPES[key].goal)))
        for kind in (*bench_scale.KINDS, "all together"):
            here, there = ours["peak"][kind], plain["peak"][kind]
            rows.append(Row(f"… peak memory: {kind}", here, there, here / there if there else None, "", unit="MB"))
    return rows


def _in_a_process(key: str, side: str, place: Path) -> dict[str, Any]:
    ran = subprocess.run(
        [sys.executable, "-m", __spec__.name, key, "--side", side, "--place", str(place)],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    told: dict[str, Any] = json.loads(ran.stdout.splitlines()[-1])
    return told


def one_side(shape: Shape, side: str, place: Path) -> dict[str, Any]:
    """A session, a run on the small input, and the one that counts."""
    from omnigraph.spark.session.session import spark_session

    session = spark_session()
    told: dict[str, Any] = {}
    for part in ("small", "large"):
        target = place / f"{side}-{part}"
        prepared = _by_us if side == "ours" else _by_hand
        action = prepared(session, shape, place / part, target)
        started, used = time.perf_counter(), bench_columnar.cpu_of_tree()
        _, peak = bench_scale.watched(action)
        seconds, cpu = time.perf_counter() - started, bench_columnar.cpu_of_tree() - used
        told = {"seconds": seconds, "cpu": cpu, "peak": peak}
    session.stop()
    return told


def _by_us(session: Any, shape: Shape, source: Path, target: Path) -> Callable[[], None]:
    store = create_store(str(target), shape.schema)
    if shape.before is not None:
        shape.before(store, source)
    return lambda: shape.load(session, store, source)


def _by_hand(session: Any, shape: Shape, source: Path, target: Path) -> Callable[[], None]:
    return lambda: shape.plain(session, source, target)


# --- loading -------------------------------------------------------------------------------------------------------


def _load_parquet(session: Any, store: GraphStore, source: Path) -> None:
    from omnigraph.spark.load.load import load

    for name, type_ in PEOPLE_AND_EDGES.items():
        load(session, store, str(source / f"{name}.parquet"), mode="append", type=type_)


def _load_frames(session: Any, store: GraphStore, source: Path) -> None:
    from omnigraph.spark.load.load import load

    for name, type_ in PEOPLE_AND_EDGES.items():
        load(session, store, session.read.parquet(str(source / f"{name}.parquet")), mode="append", type=type_)


def _load_computed(session: Any, store: GraphStore, source: Path) -> None:
    from omnigraph.spark.load.load import load

    for name, type_ in PEOPLE_AND_EDGES.items():
        frame = session.read.parquet(str(source / f"{name}.parquet"))
        load(session, store, bench_columnar.with_computed_column(frame, name), mode="append", type=type_)


def _load_lines(session: Any, store: GraphStore, source: Path) -> None:
    from omnigraph.spark.load.load import load

    load(session, store, str(source), mode="append")


def _load_type(type_: str, mode: str = "append") -> Callable[[Any, GraphStore, Path], None]:
    def run_it(session: Any, store: GraphStore, source: Path) -> None:
        from omnigraph.spark.load.load import load

        load(session, store, str(source / "rows.parquet"), mode=mode, type=type_)

    return run_it


def _copy(*names: str) -> Callable[[Any, Path, Path], None]:
    def run_it(session: Any, source: Path, target: Path) -> None:
        for name in names:
            session.read.parquet(str(source / f"{name}.parquet")).write.parquet(str(target / name))

    return run_it


def _copy_computed(session: Any, source: Path, target: Path) -> None:
    for name in PEOPLE_AND_EDGES:
        frame = session.read.parquet(str(source / f"{name}.parquet"))
        bench_columnar.with_computed_column(frame, name).write.parquet(str(target / name))


def _upsert_by_hand(session: Any, source: Path, target: Path) -> None:
    """The table without the rows that change, and those."""
    old = session.read.parquet(str(source / "people.parquet"))
    new = session.read.parquet(str(source / "rows.parquet"))
    old.join(new, "slug", "left_anti").unionByName(new).write.parquet(str(target))


def _people_before(store: GraphStore, source: Path) -> None:
    from omnigraph.maintain.optimize.optimize import ensure_indices
    from omnigraph.write.load.load import load

    load(store, str(source / "people.parquet"), mode="append", type="Person")
    ensure_indices(store)


def _hub_before(store: GraphStore, source: Path) -> None:
    from omnigraph.write.load.load import load

    load(store, str(source / "people.parquet"), mode="append", type="Person")


# --- inputs --------------------------------------------------------------------------------------------------------


def _write_lines(place: Path, scale: float) -> None:
    bench_scale.write_input(place / "input.jsonl", int(20_000_000 * scale), int(5_000_000 * scale))


def _write_hub(place: Path, scale: float) -> None:
    edges = int(5_000_000 * scale)
    bench_columnar.write_parquet(place, max(1, edges // 4))
    (place / "knows.parquet").rename(place / "rows.parquet")
    rows = pq.read_table(place / "rows.parquet")
    hub = pa.array(["person-0"]).take(pa.array(np.zeros(rows.num_rows, dtype=np.int64)))
    pq.write_table(rows.set_column(0, "src", hub), place / "rows.parquet", row_group_size=250_000)


def _write_files(place: Path, scale: float) -> None:
    bench_load.write_input(place / "all", 500)
    lines = (place / "all").read_text()
    (place / "all").unlink()
    for number in range(max(1, int(2000 * scale))):
        (place / f"{number:05d}.jsonl").write_text(lines.replace("person-", f"person-{number}-"))


def _write_wide(place: Path, scale: float) -> None:
    rows = int(300_000 * scale)
    numbers = np.arange(rows)
    texts = pa.array(numbers).cast(pa.string())
    kinds = (texts, pa.array(numbers), pa.array(numbers / 7), pa.array(numbers % 9000, pa.int32()).cast(pa.date32()))
    columns = {"slug": texts, **{f"c{n}": kinds[n % 4] for n in range(COLUMNS)}}
    pq.write_table(pa.table(columns), place / "rows.parquet", row_group_size=50_000)


def _write_vectors(place: Path, scale: float) -> None:
    rows = int(200_000 * scale)
    values = np.random.default_rng(1).random(rows * DIMENSIONS, dtype=np.float32)
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(values), DIMENSIONS).cast(pa.list_(pa.float32()))
    slugs = pa.array(np.arange(rows)).cast(pa.string())
    pq.write_table(pa.table({"slug": slugs, "vector": vectors}), place / "rows.parquet", row_group_size=20_000)


def _write_changes(place: Path, scale: float) -> None:
    people = int(5_000_000 * scale)
    bench_columnar.write_parquet(place, people)
    (place / "knows.parquet").unlink()
    rows = pq.read_table(place / "people.parquet")
    chosen = rows.take(pa.array(np.random.default_rng(2).choice(people, max(1, people // 5), replace=False)))
    changed = chosen.set_column(1, "name", pa.array(["changed"]).take(pa.array(np.zeros(len(chosen), dtype=np.int64))))
    pq.write_table(changed, place / "rows.parquet", row_group_size=250_000)


SHAPES = {
    "parquet": Shape(
        "5 M nodes and 20 M edges from Parquet",
        bench_load.SCHEMA,
        lambda place, scale: bench_columnar.write_parquet(place, int(5_000_000 * scale)),
        _load_parquet,
        _copy(*PEOPLE_AND_EDGES),
    ),
    "frames": Shape(
        "5 M nodes and 20 M edges from DataFrames of Parquet",
        bench_load.SCHEMA,
        lambda place, scale: bench_columnar.write_parquet(place, int(5_000_000 * scale)),
        _load_frames,
        _copy(*PEOPLE_AND_EDGES),
    ),
    "computed": Shape(
        "5 M nodes and 20 M edges from DataFrames that compute a column",
        bench_load.SCHEMA,
        lambda place, scale: bench_columnar.write_parquet(place, int(5_000_000 * scale)),
        _load_computed,
        _copy_computed,
    ),
    "lines": Shape(
        "5 M nodes and 20 M edges from JSON lines",
        bench_load.SCHEMA,
        _write_lines,
        _load_lines,
        parse_to_parquet,
        goal="2.5 times as fast (ratio 0.4)",
    ),
    "hub": Shape(
        "5 M edges of one node, from Parquet",
        bench_load.SCHEMA,
        _write_hub,
        _load_type("Knows"),
        _copy("rows"),
        before=_hub_before,
    ),
    "files": Shape(
        "2 000 files of 2 000 JSON lines each", bench_load.SCHEMA, _write_files, _load_lines, parse_to_parquet
    ),
    "wide": Shape(
        f"300 000 nodes of {COLUMNS} columns, from Parquet",
        f"node Wide {{ slug: String @key {_WIDE} }}",
        _write_wide,
        _load_type("Wide"),
        _copy("rows"),
    ),
    "vectors": Shape(
        f"200 000 nodes with vectors of {DIMENSIONS}, from Parquet",
        f"node Item {{ slug: String @key  vector: Vector({DIMENSIONS})? }}",
        _write_vectors,
        _load_type("Item"),
        _copy("rows"),
    ),
    "merge": Shape(
        "merge of 1 M changed rows into 5 M",
        bench_load.SCHEMA,
        _write_changes,
        _load_type("Person", mode="merge"),
        _upsert_by_hand,
        before=_people_before,
    ),
}


def main() -> None:
    """The shapes that are named, or one side of one of them."""
    from benchmarks.harness import markdown

    parser = argparse.ArgumentParser(prog="python -m benchmarks.bench_shapes")
    parser.add_argument("shapes", nargs="*", choices=[*SHAPES, []], help="which; all by default")
    parser.add_argument("--scale", type=float, default=1.0, help="a part of the size that is said")
    parser.add_argument("--side", choices=["ours", "plain"], help=argparse.SUPPRESS)
    parser.add_argument("--place", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.side:
        print(json.dumps(one_side(SHAPES[options.shapes[0]], options.side, options.place)))
    else:
        print(markdown(run(options.shapes, options.scale)))


if __name__ == "__main__":
    main()
