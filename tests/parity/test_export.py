"""Export, init, load: the graph that comes back is the graph that went out, whichever engine did which part."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from omnigraph.errors import BadRequest, SparkJobFailed
from omnigraph.ledger.snapshots import table_of
from omnigraph.ledger.store import GraphStore, create_store
from omnigraph.read.export import export_graph, export_lines
from omnigraph.write.load.load import load
from tests.parity.graphs import SCHEMA, make_graph

WITH_BLOBS = "node Photo { pixels: Blob?  size: F32? }"


def content(store: GraphStore) -> dict[str, list[Any]]:
    return {
        key: sorted(store.tables.scan_table(table_of(pin), blobs="bytes").to_pylist(), key=lambda row: row["id"])
        for key, pin in store.snapshot().tables.items()
    }


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> GraphStore:
    return make_graph(tmp_path_factory.mktemp("export") / "graph.omni")


def test_json_lines_load_back_to_an_equal_graph(graph: GraphStore, tmp_path: Path) -> None:
    summary = export_graph(graph, str(tmp_path / "out.jsonl"))
    back = create_store(str(tmp_path / "back.omni"), SCHEMA)
    load(back, str(tmp_path / "out.jsonl"), mode="append")
    assert content(back) == content(graph)
    assert summary.rows == sum(pin.row_count for pin in graph.snapshot().tables.values())
    assert b"".join(export_lines(graph, graph.snapshot())) == (tmp_path / "out.jsonl").read_bytes()


def test_parquet_loads_back_type_by_type(graph: GraphStore, tmp_path: Path) -> None:
    export_graph(graph, str(tmp_path / "out"), format="parquet")
    back = create_store(str(tmp_path / "back.omni"), SCHEMA)
    for folder in ("node-City", "node-Person", "edge-Knows", "edge-LivesIn"):
        load(back, str(tmp_path / "out" / folder), mode="append", type=folder.split("-")[1])
    assert content(back) == content(graph)


def test_blobs_and_made_up_ids_come_back(tmp_path: Path) -> None:
    store = create_store(str(tmp_path / "a.omni"), WITH_BLOBS)
    load(store, [{"pixels": b"\x00\xff:data", "size": 0.1}, {"size": 0.99}], mode="append", type="Photo")
    export_graph(store, str(tmp_path / "out.jsonl"))
    assert '"size":0.1}' in (tmp_path / "out.jsonl").read_text()
    back = create_store(str(tmp_path / "b.omni"), WITH_BLOBS)
    load(back, str(tmp_path / "out.jsonl"), mode="append")
    assert content(back) == content(store)


def test_only_the_named_types_and_formats_that_exist(graph: GraphStore, tmp_path: Path) -> None:
    summary = export_graph(graph, str(tmp_path / "cities.jsonl"), types=["City"])
    assert [key for key, _ in summary.tables] == ["node:City"]
    with pytest.raises(BadRequest, match="`xml` is not an export format"):
        export_graph(graph, str(tmp_path / "x"), format="xml")


@pytest.mark.spark
@pytest.mark.parametrize("format", ["jsonl", "parquet"])
def test_spark_writes_the_same_rows_in_many_files(spark: Any, graph: GraphStore, tmp_path: Path, format: str) -> None:
    from omnigraph.spark.jobs.export import export_graph as export_on_spark

    out = tmp_path / "out"
    summary = export_on_spark(spark, graph, str(out), format=format, rows_per_file=15)
    assert summary.engine == "spark"
    assert len(list((out / "node-Person").iterdir())) == 2
    back = create_store(str(tmp_path / "back.omni"), SCHEMA)
    if format == "jsonl":
        load(back, str(out), mode="append")
        with pytest.raises(BadRequest, match="standard output"):
            export_on_spark(spark, graph, "-")
    else:
        for folder in ("node-City", "node-Person", "edge-Knows", "edge-LivesIn"):
            load(back, str(out / folder), mode="append", type=folder.split("-")[1])
    assert content(back) == content(graph)


@pytest.mark.spark
def test_a_directory_holds_one_export_on_spark_or_nothing_of_one_that_failed(
    spark: Any, graph: GraphStore, tmp_path: Path
) -> None:
    from omnigraph.spark.jobs.export import export_graph as export_on_spark

    out = tmp_path / "out"
    export_on_spark(spark, graph, str(out), rows_per_file=1)
    parts = len(list(out.rglob("part-*")))
    summary = export_on_spark(spark, graph, str(out))
    assert len(list(out.rglob("part-*"))) < parts
    assert sum(len(part.read_bytes().splitlines()) for part in out.rglob("part-*")) == summary.rows
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "edge-Knows").write_text("a file in the way of one of the types")
    with pytest.raises(SparkJobFailed, match="edge-Knows"):
        export_on_spark(spark, graph, str(broken))
    assert [path.name for path in broken.rglob("*")] == ["edge-Knows"]
