"""Every value of every type at its edges through the server: sent in every way, read in every way, the same."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import omnigraph as og
from omnigraph.server.server_settings import GraphSettings
from tests.server.running import Running, serving
from tests.strategies import edge_values
from tests.strategies.edge_values import INSERT, READ, SCHEMA, WHOLE, as_json, check, same

MANNERS = """
node P { k: String @key  x: I32?  f: F64?  at: DateTime? }
edge K: P -> P { x: I32? }
"""
WITHOUT_BLOBS = [{**row, "blob": None} for row in WHOLE]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Running, og.Graph]]:
    uri = str(tmp_path_factory.mktemp("served") / "graph.omni")
    og.init(uri, schema=SCHEMA).close()
    with serving(GraphSettings("default", uri)) as running, og.open(uri, read_only=True) as looked_at:
        yield running, looked_at


def test_what_is_sent_is_stored_as_it_is(place: tuple[Running, og.Graph], tmp_path: Path) -> None:
    running, looked_at = place
    table, records = edge_values.table(), edge_values.records()
    ways: dict[str, Any] = {
        "records": records,
        "rows": [{name: value for name, value in row.items() if value is not None} for row in WHOLE],
        "arrow": table,
        "pandas": table.to_pandas(types_mapper=pd.ArrowDtype),
        "polars": pl.from_arrow(table),
    }
    with og.connect(running.url) as client:
        for way, data in ways.items():
            client.load(data, mode="overwrite", **({} if way == "records" else {"type": "V"}))
            looked_at.refresh()
            check(looked_at, WHOLE, way)
        client.export(str(tmp_path / "one.jsonl"))
        client.load(tmp_path / "one.jsonl", mode="overwrite")
        looked_at.refresh()
        check(looked_at, WHOLE, "export")
    with running.client() as http:
        lines = "".join(json.dumps(record) + "\n" for record in records)
        sent = http.post("/load/ndjson?mode=overwrite", content=lines.encode())
        assert sent.status_code == 200, sent.text
        looked_at.refresh()
        check(looked_at, WHOLE, "ndjson")
        exported = http.post("/export", json={}).text
        sent = http.post("/load", json={"data": exported, "mode": "overwrite"})
        assert sent.status_code == 200, sent.text
        looked_at.refresh()
        check(looked_at, WHOLE, "load of an export")


def test_what_is_set_by_parameters_is_stored_as_it_is(place: tuple[Running, og.Graph]) -> None:
    running, looked_at = place
    everything = [WHOLE[0], *(row for row in WHOLE if row["k"].endswith(("1", "all")))]
    with og.connect(running.url) as client, running.client() as http:
        for way in ("client", "json"):
            client.load(pa.table({"k": pa.array([], pa.string())}), mode="overwrite", type="V")
            for row in everything:
                if way == "client":
                    client.mutate(INSERT, params=row)
                else:
                    params = {name: as_json(value) for name, value in row.items()}
                    assert http.post("/mutate", json={"query": INSERT, "params": params}).status_code == 200
            looked_at.refresh()
            check(looked_at, everything, way)


def test_what_is_read_loads_back(place: tuple[Running, og.Graph]) -> None:
    running, looked_at = place
    with og.connect(running.url) as client, running.client() as http:
        client.load(WHOLE, mode="overwrite", type="V")
        result = client.query(READ)
        answer = http.post("/query", json={"query": READ})
        frames = {
            "rows": result.rows(),
            "arrow": result.to_arrow(),
            "pandas": result.to_pandas(),
            "polars": result.to_polars(),
            "json": json.loads(answer.text)["rows"],
        }
        looked_at.refresh()
        for one, other in zip(frames["rows"], looked_at.query(READ).rows(), strict=True):
            assert all(same(one[name], other[name]) for name in other)
        for way, data in frames.items():
            client.load(data, mode="overwrite", type="V")
            looked_at.refresh()
            check(looked_at, WITHOUT_BLOBS, way)


@pytest.fixture(params=["store", "server"])
def small(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    """A graph of a few properties, held in process or through a server."""
    graph = og.init(str(tmp_path / "small.omni"), schema=MANNERS)
    if request.param == "store":
        with graph:
            yield graph
        return
    graph.close()
    with serving(GraphSettings("default", graph.uri)) as running, og.connect(running.url) as client:
        yield client


def test_rows_of_a_type_mean_the_same_to_a_server(small: Any) -> None:
    seen = "query q() { match { $p: P } return { $p.k as k, $p.x as x } }"
    edges = "query q() { match { $a $e:k $b } return { $a.k as a, $b.k as b, $e.x as x } }"
    small.load(pa.table({"k": ["a", "b"], "x": [1, 2]}), mode="append", type="P")
    small.load([{"k": "a", "x": None}, {"k": "b"}], mode="merge", type="P")
    assert small.query(seen).rows() == [{"k": "a", "x": None}, {"k": "b", "x": 2}], "null is set, nothing is kept"
    small.load(pa.table({"k": ["b"], "x": pa.array([None], pa.int32())}), mode="merge", type="P")
    assert small.query(seen).rows() == [{"k": "a", "x": None}, {"k": "b", "x": None}]
    small.load(pd.DataFrame({"src": ["a"], "dst": ["b"], "x": [1]}, index=[7]), mode="append", type="K")
    small.load([{"from": "b", "to": "a"}], mode="append", type="K")
    small.load(
        pd.DataFrame({"s": ["b"], "t": ["b"], "n": [3]}), mode="append", type="K", src="s", dst="t", columns={"n": "x"}
    )
    found = [(row["a"], row["b"], row["x"]) for row in small.query(edges).rows()]
    assert sorted(found, key=str) == [("a", "b", 1), ("b", "a", None), ("b", "b", 3)]
    small.load(pd.DataFrame({"src": [], "dst": []}), mode="overwrite", type="K")
    assert small.query(edges).rows() == []


@pytest.mark.parametrize(
    "row",
    [
        {"f": float("nan")},
        {"f": np.float64("inf")},
        {"f": np.float32("nan")},
        {"f": 2**70 + 1},
        {"at": pd.Timestamp("2026-01-02T03:04:05.123456789Z")},
        {"x": 1.5},
    ],
)
def test_what_cannot_be_kept_is_refused_and_not_changed(small: Any, row: dict[str, Any]) -> None:
    with pytest.raises(og.errors.OmniGraphError):
        small.load([{"k": "a", **row}], mode="append", type="P")
    ((name, value),) = row.items()
    declared = {"f": "F64", "at": "DateTime", "x": "I32"}[name]
    with pytest.raises(og.errors.OmniGraphError):
        small.mutate(f'query q($v: {declared}) {{ insert P {{ k: "a", {name}: $v }} }}', params={"v": value})
    assert small.query("query q() { match { $p: P } return { $p } }").rows() == []
