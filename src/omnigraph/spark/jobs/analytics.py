"""Whole-graph measures over an edge type, as DataFrames in and out.

Edges are a DataFrame with `src` and `dst` (what `to_spark` gives for an edge type); vertices, where given, one with
`id`: nodes without an edge then get their value too. Parallel edges count as often as they are there. Every round cuts
its lineage by a local checkpoint, so that plans stay small however many rounds it takes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnigraph.errors import BadRequest, ResourceLimit

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

MOST_ROUNDS = 100
FEW_NODES = 100_000
"""So many nodes are sent to where the edges are, instead of edges to where the nodes are."""


def degrees(edges: DataFrame, vertices: DataFrame | None = None) -> DataFrame:
    """`id, in_degree, out_degree, degree` (their sum: a self-loop counts twice)."""
    from pyspark.sql import functions as f

    def end(name: str, into: int) -> Column:
        return f.struct(f.col(name).alias("id"), f.lit(into).alias("i"), f.lit(1 - into).alias("o"))

    # Each edge is read once for both of its ends.
    ends = edges.select(f.explode(f.array(end("src", 0), end("dst", 1))).alias("end")).select("end.*")
    if vertices is not None:
        ends = ends.unionByName(vertices.select("id", f.lit(0).alias("i"), f.lit(0).alias("o")))
    counted = ends.groupBy("id").agg(f.sum("i").alias("in_degree"), f.sum("o").alias("out_degree"))
    return counted.withColumn("degree", f.col("in_degree") + f.col("out_degree"))


def connected_components(edges: DataFrame, vertices: DataFrame | None = None) -> DataFrame:
    """`id, component`: nodes that hang together, whatever the direction, share the smallest id among them.

    Alternates large-star and small-star steps, which takes about log(n) rounds whatever the shape of the graph.
    """
    from pyspark.sql import functions as f

    edges = _held(edges)
    # Each link points from a larger id to a smaller one.
    links = _links(edges).distinct().localCheckpoint()
    fingerprint = None
    for _ in range(MOST_ROUNDS):
        links = _small_star(_large_star(links)).localCheckpoint()
        state = links.agg(f.count("*"), f.sum(f.xxhash64("larger", "smaller").cast("decimal(38,0)"))).first()
        if state == fingerprint:
            break
        fingerprint = state
    else:
        raise ResourceLimit(f"Connected components did not settle within {MOST_ROUNDS} rounds.")
    found = links.select(f.col("larger").alias("id"), f.col("smaller").alias("component"))
    everybody = _everybody(edges, vertices)
    return everybody.join(found, "id", "left").select("id", f.coalesce("component", "id").alias("component"))


def pagerank(
    edges: DataFrame,
    vertices: DataFrame | None = None,
    *,
    damping: float = 0.85,
    tolerance: float = 1e-6,
    max_rounds: int = MOST_ROUNDS,
) -> DataFrame:
    """`id, rank`; the ranks sum to 1. Nodes without outgoing edges give their rank to everybody alike.

    Stops when the ranks move by less than `tolerance` in total, or after `max_rounds`.
    """
    from pyspark.sql import functions as f

    if not 0 <= damping < 1:
        raise BadRequest(f"The damping of PageRank lies between 0 and 1, without 1; it is {damping}.")
    # Nodes lie where their edges do, and stay there: a round moves nothing but what nodes give to each other.
    parts = int(edges.sparkSession.conf.get("spark.sql.shuffle.partitions", "8") or 8)
    edges = steps = edges.select("src", "dst").repartition(parts, "src").localCheckpoint()
    out = edges.groupBy("src").agg(f.count("*").alias("out"))
    everybody = (
        _everybody(edges, vertices)
        .join(out, f.col("id") == f.col("src"), "left")
        .select("id", f.col("out").isNull().alias("leaf"), (f.lit(1.0) / f.col("out")).alias("share"))
        .repartition(parts, "id")
        .localCheckpoint()
    )
    count, leaves = everybody.agg(f.count("*"), f.count_if("leaf")).first() or (0, 0)
    if count == 0:
        return everybody.select("id", f.lit(0.0).alias("rank"))
    ranks = everybody.withColumn("rank", f.lit(1.0 / count))
    lost = leaves / count
    for _ in range(max_rounds):
        given = (
            steps.join(ranks, steps["src"] == ranks["id"])
            .groupBy(f.col("dst").alias("id"))
            .agg(f.sum(f.col("rank") * f.col("share")).alias("given"))
        )
        floor = (1 - damping) / count + damping * lost / count
        rank = f.lit(floor) + damping * f.coalesce("given", f.lit(0.0))
        following = (
            ranks.withColumnRenamed("rank", "before")
            .join(given, "id", "left")
            .select("id", "leaf", "share", "before", rank.alias("rank"))
            .localCheckpoint()
        )
        moved, lost = following.agg(
            f.sum(f.abs(f.col("rank") - f.col("before"))), f.sum(f.when(f.col("leaf"), f.col("rank")).otherwise(0.0))
        ).first() or (0.0, 0.0)
        ranks = following.drop("before")
        if moved < tolerance:
            break
    return ranks.select("id", "rank")


def shortest_path_lengths(
    edges: DataFrame, sources: DataFrame, *, max_hops: int, undirected: bool = False
) -> DataFrame:
    """`source, id, distance`: hops along the fewest edges, for every node within `max_hops` of a source.

    `sources` has a column `id`. A source is at distance 0 from itself.
    """
    from pyspark.sql import functions as f

    if max_hops < 0:
        raise BadRequest(f"A path cannot have {max_hops} hops: `max_hops` is 0 or more.")
    steps = _held(edges)
    if undirected:
        steps = steps.union(steps.select(f.col("dst").alias("src"), f.col("src").alias("dst")))
    reached = sources.select(f.col("id").alias("source"), "id", f.lit(0).alias("distance")).distinct()
    reached = reached.localCheckpoint(eager=False)
    for hop in range(1, max_hops + 1):
        frontier = reached.where(f.col("distance") == hop - 1)
        # The count makes the round, and tells whether the edges may stay where they are: Spark does not know that few
        # nodes are left of many.
        many = frontier.count()
        if not many:
            break
        start = f.broadcast(frontier) if many <= FEW_NODES else frontier
        met = start.join(steps, frontier["id"] == steps["src"]).select(
            "source", f.col("dst").alias("id"), f.lit(hop).alias("distance")
        )
        least = reached.union(met).groupBy("source", "id").agg(f.min("distance").alias("distance"))
        reached = least.localCheckpoint(eager=False)
    return reached


def _held(edges: DataFrame) -> DataFrame:
    """The ends of edges, kept by the tasks that read them: where they come from they are looked at once."""
    return edges.select("src", "dst").localCheckpoint(eager=False)


def _everybody(edges: DataFrame, vertices: DataFrame | None) -> DataFrame:
    from pyspark.sql import functions as f

    ids = edges.select(f.col("src").alias("id")).union(edges.select("dst"))
    if vertices is not None:
        ids = ids.union(vertices.select("id"))
    return ids.distinct()


def _links(edges: DataFrame) -> DataFrame:
    from pyspark.sql import functions as f

    return edges.where("src <> dst").select(
        f.greatest("src", "dst").alias("larger"), f.least("src", "dst").alias("smaller")
    )


def _large_star(links: DataFrame) -> DataFrame:
    """Every node hands its larger neighbours to the smallest node it knows, itself included."""
    from pyspark.sql import functions as f

    both = links.select(f.col("larger").alias("node"), f.col("smaller").alias("other")).union(
        links.select(f.col("smaller").alias("node"), f.col("larger").alias("other"))
    )
    smallest = both.groupBy("node").agg(f.least("node", f.min("other")).alias("smallest"))
    return (
        both.where("other > node")
        .join(smallest, "node")
        .select(f.col("other").alias("larger"), f.col("smallest").alias("smaller"))
        .distinct()
    )


def _small_star(links: DataFrame) -> DataFrame:
    """Every node hands itself and its smaller neighbours to the smallest of them."""
    from pyspark.sql import functions as f

    smallest = links.groupBy("larger").agg(f.min("smaller").alias("smallest"))
    handed = links.join(smallest, "larger").where("smaller <> smallest")
    return (
        handed.select(f.col("smaller").alias("larger"), f.col("smallest").alias("smaller"))
        .union(smallest.select("larger", f.col("smallest").alias("smaller")))
        .distinct()
    )
