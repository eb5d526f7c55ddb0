"""How many partitions are probed: enough for the answer, and no more where the answer lies together."""

from __future__ import annotations

import lance
import numpy as np
import pyarrow as pa
import pytest

import omnigraph as og
from omnigraph.read.search.probing import ladder, lies_early
from omnigraph.schema.search_settings import Metric
from omnigraph.storage.layout import indexes

DIM = 16


def clustered(count: int, centres: int, seed: int) -> np.ndarray:
    random = np.random.default_rng(seed)
    places = np.random.default_rng(1).normal(size=(centres, DIM))
    return (places[random.integers(0, centres, count)] + 0.05 * random.normal(size=(count, DIM))).astype(np.float32)


def column(vectors: np.ndarray) -> pa.FixedSizeListArray:
    return pa.FixedSizeListArray.from_arrays(pa.array(vectors.reshape(-1)), DIM)


def test_probing_grows_to_all_partitions():
    assert ladder(20, with_centres=True) == [20]
    assert ladder(1000, with_centres=True) == [32, 128, 512, 1000]
    assert ladder(1000, with_centres=False) == [16, 32, 1000]
    assert ladder(10, with_centres=False) == [10]


def test_an_answer_that_is_spread_over_the_probed_partitions_does_not_stand():
    centres = np.eye(DIM, dtype=np.float32)[:8] * np.arange(1, 9, dtype=np.float32)[:, None]
    query = centres[0]
    assert lies_early(centres[:1], query, centres, Metric.L2, 8)
    assert not lies_early(centres[:2], query, centres, Metric.L2, 8)
    assert lies_early(centres[:2], query, centres, Metric.L2, 16)


@pytest.mark.parametrize("metric", ["cosine", "l2"])
def test_guard_rows_lie_in_the_partition_of_their_nearest_centre(tmp_path, metric):
    """Lance probes partitions in the order of their centres from the query, and rows lie with their nearest centre."""
    made = clustered(4000, 300, seed=2) * np.random.default_rng(3).uniform(0.5, 2, (4000, 1)).astype(np.float32)
    data = lance.write_dataset(pa.table({"n": range(4000), "v": column(made)}), tmp_path / "t")
    data = data.create_index("v", "IVF_FLAT", name="v_vector", metric=metric, num_partitions=64)
    centres = data.centroids(index_name="v_vector").values.to_numpy().reshape(64, DIM)
    for query in clustered(20, 300, seed=4):
        nearest = {"column": "v", "q": query, "k": 10, "metric": metric, "nprobes": 3}
        found = data.scanner(columns=["n"], nearest=nearest, fast_search=True).to_table()["n"].to_numpy()
        assert len(found)
        # Eight parts of 24 are 3 partitions: all that were probed.
        assert lies_early(made[found], query, centres, Metric(metric), 24)


@pytest.mark.parametrize("metric", ["cosine", "l2", "dot"])
def test_many_partitions_are_probed_only_where_the_answer_is_spread(tmp_path, monkeypatch, metric):
    monkeypatch.setattr(indexes, "ROWS_PER_PARTITION", 16)
    near = clustered(2000, 100, seed=5)
    anywhere = np.random.default_rng(6).uniform(-1, 1, (2000, DIM)).astype(np.float32)
    graph = og.init(
        tmp_path / "graph",
        schema=f"""
        node Near {{ name: String @key  v: Vector({DIM}) @index(metric="{metric}") }}
        node Anywhere {{ name: String @key  v: Vector({DIM}) @index(metric="{metric}") }}
        """,
    )
    for type_, vectors in (("Near", near), ("Anywhere", anywhere)):
        names = [f"n{number:04d}" for number in range(len(vectors))]
        graph.load(pa.table({"name": names, "v": column(vectors)}), mode="append", type=type_)
    graph.optimize()
    for type_, queries in (("Near", clustered(10, 100, seed=7)), ("Anywhere", anywhere[:10] * np.float32(1.5))):
        text = (
            f"query q($v: Vector({DIM})) {{ match {{ $x: {type_} }} return {{ $x.name }} "
            "order { nearest($x.v, $v) } limit 5 }"
        )
        hits = few = 0
        for query in queries:
            params = {"v": query.tolist()}
            ours = {row["x.name"] for row in graph.query(text, params=params).rows()}
            exact = graph.query(text.replace("$v) }", "$v, exact: true) }"), params=params)
            hits += len(ours & {row["x.name"] for row in exact.rows()})
            few += "32 of 125 partitions probed" in graph.explain(text, params=params, analyze=True).to_text()
        assert hits >= 49, type_
        # The centres of an index are begun at random, so some of the queries may go either way.
        assert metric == "dot" or (few >= 9) == (type_ == "Near"), few
