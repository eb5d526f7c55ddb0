"""Queries and whole-graph measures on Spark, against what an engineer writes by hand over Parquet of the same rows.

Queries against Spark SQL; PageRank, components, degrees and lengths of shortest paths against jobs of plain frames.
`python -m benchmarks.bench_spark_queries 200000 3 measures` runs the measures only, or the queries with another text in
their names.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import omnigraph as og
from benchmarks.bench_columnar import write_parquet
from benchmarks.bench_load import SCHEMA
from benchmarks.harness import Row, measure, shown
from omnigraph.ledger.store import open_store
from omnigraph.spark.session.session import spark_session

GOAL = "within 1.5 times"
ROUNDS = 5
HOPS = 3
SOURCES = 10
_PAIRS = "(SELECT DISTINCT src, dst FROM knows)"
QUERIES = {
    "count of 2-hop walks": (
        "query q() { match { $a: Person  $a $e:knows $b  $b $f:knows $c } return { count($f) as n } }",
        "SELECT count(*) AS n FROM knows k JOIN knows l ON k.dst = l.src",
    ),
    "count of 2-hop walks over different pairs": (
        "query q() { match { $a: Person  $a knows $b  $b knows $c } return { count($c) as n } }",
        f"SELECT count(*) AS n FROM {_PAIRS} k JOIN {_PAIRS} l ON k.dst = l.src",
    ),
    "count of 2-hop walks from a ninetieth of the nodes": (
        "query q() { match { $a: Person  $a.age = 30  $a $e:knows $b  $b $f:knows $c } return { count($f) as n } }",
        """SELECT count(*) AS n FROM people p JOIN knows k ON k.src = p.id JOIN knows l ON k.dst = l.src
        WHERE p.age = 30""",
    ),
    "group-by: count and extremes of texts": (
        """query q() {
            match { $p: Person }
            return { $p.age, count($p) as n, max($p.slug) as most, min($p.name) as first }
            order { $p.age }
        }""",
        """SELECT age, count(*) AS n, max(slug) AS most, min(name) AS first FROM people
        GROUP BY age ORDER BY age""",
    ),
    "group-by: mean and maximum of floats": (
        """query q() {
            match { $p: Person }
            return { $p.age, avg($p.score) as mean, max($p.score) as most }
            order { $p.age }
        }""",
        "SELECT age, avg(score) AS mean, max(score) AS most FROM people GROUP BY age ORDER BY age",
    ),
    "group-by over a walk: edges by age of their source": (
        """query q() {
            match { $p: Person  $p $e:knows $q }
            return { $p.age, count($e) as n }
            order { $p.age }
        }""",
        "SELECT p.age, count(*) AS n FROM people p JOIN knows k ON k.src = p.id GROUP BY p.age ORDER BY p.age",
    ),
}


def run(nodes: int = 500_000, repeats: int = 3, only: str = "") -> list[Row]:
    """Nodes and four times as many edges for the queries, a fifth of that for the measures."""
    session = spark_session()
    try:
        with tempfile.TemporaryDirectory() as directory:
            place = Path(directory)
            graph = _graph(session, place / "large", nodes)
            asked = {name: texts for name, texts in QUERIES.items() if only in name}
            rows = [shown(_query(session, graph, name, *texts, repeats)) for name, texts in asked.items()]
            if only in "measures":
                rows += _measures(session, place / "small", nodes // 5, repeats)
    finally:
        session.stop()
    return rows


def _graph(session: Any, place: Path, nodes: int) -> og.Graph:
    """A graph, and Parquet of its tables under the names that the statements use."""
    place.mkdir()
    write_parquet(place, nodes)
    graph = og.init(place / "graph", schema=SCHEMA)
    graph.load(str(place / "people.parquet"), mode="append", type="Person", engine="local")
    graph.load(str(place / "knows.parquet"), mode="append", type="Knows", engine="local")
    for name, type_ in (("people", "Person"), ("knows", "Knows")):
        copy = str(place / f"{name}-of-graph")
        graph.to_spark(type_).write.parquet(copy)
        session.read.parquet(copy).createOrReplaceTempView(name)
    return graph


def _query(session: Any, graph: og.Graph, name: str, ours: str, theirs: str, repeats: int) -> Row:
    def by_us() -> list[Any]:
        return [tuple(row.values()) for row in graph.query(ours, engine="spark").to_arrow().to_pylist()]

    def by_hand() -> list[Any]:
        return [tuple(row) for row in session.sql(theirs).collect()]

    found, expected = by_us(), by_hand()
    assert len(found) == len(expected), name
    for one, other in zip(found, expected, strict=True):
        assert all(map(_same, one, other)), (name, one, other)
    return measure(f"{name}, against Spark SQL over Parquet", by_us, by_hand, GOAL, repeats=repeats, warm_up=2)


def _same(one: Any, other: Any) -> bool:
    return bool(one == other) or (isinstance(one, float) and abs(one - other) < 1e-9)


def _measures(session: Any, place: Path, nodes: int, repeats: int) -> list[Row]:
    from omnigraph.spark.jobs.analytics import connected_components, degrees, pagerank, shortest_path_lengths
    from omnigraph.spark.source.datasource import to_spark

    graph = _graph(session, place, nodes)
    copy = session.table("knows").select("src", "dst")
    sources = session.table("people").select("id").orderBy("id").limit(SOURCES).localCheckpoint()
    with open_store(graph.uri, read_only=True) as store:
        edges = to_spark(session, store, "Knows", columns=["src", "dst"])
        pairs: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
            "degrees": (lambda: _all(degrees(edges)), lambda: _all(_degrees_by_hand(copy))),
            f"PageRank, {ROUNDS} rounds": (
                lambda: _all(pagerank(edges, tolerance=0.0, max_rounds=ROUNDS)),
                lambda: _all(_pagerank_by_hand(copy)),
            ),
            "connected components": (
                lambda: _all(connected_components(edges)),
                lambda: _all(_components_by_hand(copy)),
            ),
            f"lengths of shortest paths from {SOURCES} nodes, up to {HOPS} hops": (
                lambda: _all(shortest_path_lengths(edges, sources, max_hops=HOPS)),
                lambda: _all(_lengths_by_hand(copy, sources)),
            ),
        }
        return [
            shown(
                measure(f"{name}, against frames by hand over Parquet", ours, theirs, GOAL, repeats=repeats, warm_up=1)
            )
            for name, (ours, theirs) in pairs.items()
        ]


def _all(frame: Any) -> None:
    """Have every row made, and keep none."""
    frame.write.format("noop").mode("overwrite").save()


def _degrees_by_hand(edges: Any) -> Any:
    out = edges.groupBy("src").count().withColumnsRenamed({"src": "id", "count": "out_degree"})
    into = edges.groupBy("dst").count().withColumnsRenamed({"dst": "id", "count": "in_degree"})
    return out.join(into, "id", "full").fillna(0)


def _pagerank_by_hand(edges: Any) -> Any:
    """As in every tutorial: without the ranks of nodes that have no way out, and without a look at how far it is."""
    from pyspark.sql import functions as f

    everybody = edges.select(f.col("src").alias("id")).union(edges.select("dst")).distinct().cache()
    count = everybody.count()
    links = edges.join(edges.groupBy("src").agg(f.count("*").alias("out")), "src").cache()
    ranks = everybody.withColumn("rank", f.lit(1.0 / count))
    for _ in range(ROUNDS):
        given = (
            links.join(ranks, links["src"] == ranks["id"])
            .groupBy("dst")
            .agg(f.sum(f.col("rank") / f.col("out")).alias("given"))
        )
        ranks = (
            everybody.join(given, everybody["id"] == given["dst"], "left")
            .select("id", (f.lit(0.15 / count) + 0.85 * f.coalesce("given", f.lit(0.0))).alias("rank"))
            .localCheckpoint()
        )
    everybody.unpersist()
    links.unpersist()
    return ranks


def _components_by_hand(edges: Any) -> Any:
    """Every node takes the least label among its neighbours, until none changes."""
    from pyspark.sql import functions as f

    both = edges.union(edges.select("dst", "src")).distinct().cache()
    labels = both.select(f.col("src").alias("id"), f.col("src").alias("label")).distinct().localCheckpoint()
    while True:
        near = both.join(labels, both["dst"] == labels["id"]).groupBy("src").agg(f.min("label").alias("near"))
        following = (
            labels.join(near, labels["id"] == near["src"])
            .select("id", f.least("label", "near").alias("label"), (f.col("near") < f.col("label")).alias("moved"))
            .localCheckpoint()
        )
        labels = following.select("id", "label")
        if following.where("moved").isEmpty():
            both.unpersist()
            return labels


def _lengths_by_hand(edges: Any, sources: Any) -> Any:
    """Every walk of so many hops, and of those that end at one node the shortest."""
    from pyspark.sql import functions as f

    walks = sources.select(f.col("id").alias("source"), "id", f.lit(0).alias("distance"))
    found = walks
    for hop in range(1, HOPS + 1):
        walks = (
            walks.join(edges, walks["id"] == edges["src"])
            .select("source", f.col("dst").alias("id"), f.lit(hop).alias("distance"))
            .distinct()
            .localCheckpoint()
        )
        found = found.union(walks)
    return found.groupBy("source", "id").agg(f.min("distance").alias("distance"))


if __name__ == "__main__":
    from benchmarks.harness import markdown

    numbers = [int(argument) for argument in sys.argv[1:3]]
    print(markdown(run(*numbers, *sys.argv[3:4])))
