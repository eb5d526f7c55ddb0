"""Exact search over a table without an index, kept in memory or read as a stream, against brute force."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import omnigraph as og
from omnigraph.read.matching import ranked_scan
from omnigraph.read.search import best_rows, kept_rows

DIM = 4
COUNT = 300


@pytest.fixture(scope="module")
def vectors() -> list[list[float] | None]:
    random = np.random.default_rng(3)
    made: list[list[float] | None] = [row.tolist() for row in random.integers(-2, 3, (COUNT, DIM)).astype(np.float32)]
    for place in range(0, COUNT, 17):
        made[place] = None
    return made


@pytest.fixture(scope="module")
def graph(tmp_path_factory, vectors):
    schema = "\n".join(
        f'node {metric.title()} {{ name: String @key  kind: I32?  v: Vector({DIM})? @index(metric="{metric}") }}'
        for metric in ("cosine", "l2", "dot")
    )
    made = og.init(tmp_path_factory.mktemp("exact") / "graph", schema=schema)
    column = pa.array(vectors, pa.list_(pa.float32(), DIM))
    names = [f"n{number:03d}" for number in range(COUNT)]
    kinds = pa.array([None if number % 5 == 0 else number % 3 for number in range(COUNT)], pa.int32())
    for metric in ("Cosine", "L2", "Dot"):
        made.load(pa.table({"name": names, "kind": kinds, "v": column}), mode="append", type=metric)
    return made


def expected(vectors, query, metric: str, kind: int | None, limit: int) -> list[str]:
    found = []
    for number, vector in enumerate(vectors):
        if vector is None or (kind is not None and (number % 5 == 0 or number % 3 != kind)):
            continue
        a, b = np.array(vector, np.float64), np.array(query, np.float64)
        if metric == "Cosine":
            if not a.any():
                continue
            distance = 1 - a @ b / np.sqrt(a @ a) / np.sqrt(b @ b)
        else:
            distance = np.sqrt((a - b) @ (a - b)) if metric == "L2" else 1 - a @ b
        found.append((round(float(distance), 6), f"n{number:03d}"))
    return [name for _, name in sorted(found)[:limit]]


@pytest.mark.parametrize("metric", ["Cosine", "L2", "Dot"])
@pytest.mark.parametrize("kept", [True, False])
def test_exact_search_without_an_index_is_brute_force(graph, vectors, monkeypatch, metric, kept):
    monkeypatch.setattr(ranked_scan, "SMALL_TABLE", 0)
    monkeypatch.setattr(kept_rows, "STRETCH", 64)
    if not kept:
        monkeypatch.setattr(best_rows, "kept_rows", lambda run, searched, predicate: None)
    for query in ([1.0, 0.5, -1.0, 2.0], [0.0, 0.0, 0.0, 1.0]):
        for kind in (None, 1):
            for limit in (1, 10, 100):
                condition = "" if kind is None else f"  $x.kind = {kind}"
                text = (
                    f"query q($v: Vector({DIM})) {{ match {{ $x: {metric}{condition} }} return {{ $x.name }} "
                    f"order {{ nearest($x.v, $v) }} limit {limit} }}"
                )
                found = [row["x.name"] for row in graph.query(text, params={"v": query}).rows()]
                assert found == expected(vectors, query, metric, kind, limit), (query, kind, limit)
