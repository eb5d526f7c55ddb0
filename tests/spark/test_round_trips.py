"""Every value of every type at its edges through Spark: loaded, read, written, exported, it stays the same."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import omnigraph as og
from tests.strategies import edge_values
from tests.strategies.edge_values import READ, SCHEMA, WHOLE, check, same

pytestmark = pytest.mark.spark

WITHOUT_BLOBS = [{**row, "blob": None} for row in WHOLE]


@pytest.fixture(scope="module")
def graph(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[og.Graph]:
    with og.init(str(tmp_path_factory.mktemp("round") / "graph.omni"), schema=SCHEMA) as made:
        yield made


def test_what_spark_loads_is_stored_as_it_is(graph: og.Graph, tmp_path: Path) -> None:
    (tmp_path / "v.jsonl").write_text("".join(json.dumps(record) + "\n" for record in edge_values.records()))
    pq.write_table(edge_values.table(), tmp_path / "v.parquet")
    for way, data, named in (
        ("records", tmp_path / "v.jsonl", {}),
        ("parquet", tmp_path / "v.parquet", {"type": "V"}),
        ("rows", [{name: value for name, value in row.items() if value is not None} for row in WHOLE], {"type": "V"}),
    ):
        graph.load(data, mode="overwrite", engine="spark", **named)
        check(graph, WHOLE, way)


def test_what_spark_reads_is_what_is_stored(graph: og.Graph) -> None:
    graph.load(WHOLE, mode="overwrite", type="V")
    found = graph.query(READ, engine="spark")
    for one, other in zip(found.rows(), graph.query(READ, engine="local").rows(), strict=True):
        assert all(same(one[name], other[name]) for name in other), (one, other)
    for way, frame in (
        ("result", found.to_spark()),
        ("local result", graph.query(READ, engine="local").to_spark()),
        ("frame", graph.to_spark("V")),
    ):
        columns = [name for name in frame.columns if not name.startswith("@") and name != "blob"]
        kept = frame.select(*columns).cache()
        kept.count()
        graph.load(kept, mode="overwrite", type="V", engine="spark")
        check(graph, WITHOUT_BLOBS, way)
        kept.unpersist()


def test_what_the_data_source_writes_is_stored_as_it_is(spark: Any, graph: og.Graph) -> None:
    graph.load(WHOLE, mode="overwrite", type="V")
    source = spark.read.format("omnigraph").option("type", "V").load(graph.uri)
    kept = source.select(*[name for name in source.columns if not name.startswith("@") and name != "blob"]).cache()
    kept.count()
    kept.write.format("omnigraph").option("type", "V").mode("overwrite").save(graph.uri)
    graph.refresh()
    check(graph, WITHOUT_BLOBS, "data source")
    kept.unpersist()


@pytest.mark.parametrize("format", ["jsonl", "parquet"])
def test_what_spark_exports_loads_back(graph: og.Graph, tmp_path: Path, format: Any) -> None:
    graph.load(WHOLE, mode="overwrite", type="V")
    graph.export(str(tmp_path / "out"), format=format, engine="spark")
    with og.init(str(tmp_path / "back.omni"), schema=SCHEMA) as back:
        if format == "jsonl":
            back.load(tmp_path / "out", mode="append")
        else:
            back.load(tmp_path / "out" / "node-V", mode="append", type="V")
        check(back, WHOLE, format)
