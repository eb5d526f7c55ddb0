"""Searches give the same rows and scores on both engines, whatever the indexes cover."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from tests.parity.test_query import both

pytestmark = pytest.mark.spark

SCHEMA = """
node Doc {
  name: String @key
  kind: I32 @index
  text: String? @index
  stemmed: String? @index @search(stem=true)
  spot: Vector(4)? @index(metric="l2")
}
"""
WORDS = ["graph", "graphs", "grape", "école", "日本", "Straße", "night", "a"]
SEARCHES = [
    *(f"match {{ $d: Doc  {name}($d.text, $q) }}" for name in ("search", "match_all", "match_text", "fuzzy")),
    "match { $d: Doc  $d.kind = 1  search($d.stemmed, $q) }",
]
RANKINGS = ["bm25($d.text, $q)", "nearest($d.spot, $v)", "rrf(nearest($d.spot, $v), bm25($d.text, $q))"]


def rows(start: int, stop: int) -> list[dict[str, Any]]:
    def text(number: int) -> str | None:
        return None if number % 11 == 0 else " ".join(WORDS[number * step % 8] for step in (1, 3, 5)[: number % 3 + 1])

    return [
        {
            "type": "Doc",
            "data": {
                "name": f"d{number:03d}",
                "kind": number % 3,
                "text": text(number),
                "stemmed": text(number + 1),
                "spot": [float(number % 7), float(number % 5), 0.0, 1.0],
            },
        }
        for number in range(start, stop)
    ]


def test_searches_agree_without_an_index_with_a_lagging_one_and_with_two_segments(spark: Any, tmp_path: Path) -> None:
    graph = og.init(tmp_path / "graph", schema=SCHEMA)
    graph.load(rows(0, 300), mode="append")
    agree(spark, graph, "graph night")
    graph.optimize()
    graph.load(rows(290, 330), mode="merge")
    graph.mutate('query m() { update Doc set { text: "night 日本" } where kind = 1 }')
    agree(spark, graph, "straße graphs")
    graph.optimize()
    agree(spark, graph, "graph night")


def agree(spark: Any, graph: og.Graph, query: str) -> None:
    values = {"q": query, "v": [1.0, 2.0, 0.0, 1.0]}
    texts = [f"{search} return {{ $d.name }}" for search in SEARCHES]
    texts += [
        f"match {{ $d: Doc  $d.kind < 2 }} return {{ $d.name }} order {{ {ranking} }} limit 7" for ranking in RANKINGS
    ]
    for text in texts:
        used = {name: value for name, value in values.items() if f"${name}" in text}
        kinds = {"q": "String", "v": "Vector(4)"}
        declared = ", ".join(f"${name}: {kinds[name]}" for name in used)
        in_process, on_spark = both(spark, graph._store, f"({declared}) {{ {text} }}", used)
        assert on_spark.rows() == in_process.rows(), text
