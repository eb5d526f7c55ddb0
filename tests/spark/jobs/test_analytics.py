"""Analytics agree with a plain, independent implementation on random graphs."""

from __future__ import annotations

import itertools
import random
from collections import Counter, defaultdict, deque
from typing import Any

import pytest

from omnigraph.errors import BadRequest
from omnigraph.spark.jobs import analytics

pytestmark = pytest.mark.spark

Edges = list[tuple[str, str]]


def random_graph(seed: int, nodes: int, edges: int) -> tuple[list[str], Edges]:
    chance = random.Random(seed)
    names = [f"n{i:03d}" for i in range(nodes)]
    chance.shuffle(names)
    linked = names[: nodes - 3]
    return names, [(chance.choice(linked), chance.choice(linked)) for _ in range(edges)]


GRAPHS = {
    "random": random_graph(7, 40, 45),
    # A long path is the worst case for label passing, and the ids are in no order along it.
    "path": (names := random_graph(3, 33, 0)[0], list(itertools.pairwise(names))),
}


@pytest.fixture(scope="module", params=sorted(GRAPHS))
def graph(request: pytest.FixtureRequest, spark: Any) -> Any:
    nodes, edges = GRAPHS[request.param]
    edge_frame = spark.createDataFrame(edges, "src string, dst string").coalesce(2).localCheckpoint()
    node_frame = spark.createDataFrame([(n,) for n in nodes], "id string").coalesce(2).localCheckpoint()
    return nodes, edges, node_frame, edge_frame


def plain_components(nodes: list[str], edges: Edges) -> dict[str, str]:
    parent = {n: n for n in nodes}

    def root(n: str) -> str:
        while parent[n] != n:
            n = parent[n]
        return n

    for a, b in edges:
        x, y = sorted((root(a), root(b)))
        parent[y] = x
    return {n: root(n) for n in nodes}


def plain_pagerank(nodes: list[str], edges: Edges, damping: float, rounds: int) -> dict[str, float]:
    out = Counter(a for a, _ in edges)
    rank = {n: 1 / len(nodes) for n in nodes}
    for _ in range(rounds):
        lost = sum(rank[n] for n in nodes if not out[n])
        following = {n: (1 - damping) / len(nodes) + damping * lost / len(nodes) for n in nodes}
        for a, b in edges:
            following[b] += damping * rank[a] / out[a]
        rank = following
    return rank


def plain_distances(edges: Edges, sources: list[str], most: int, undirected: bool) -> dict[tuple[str, str], int]:
    steps = defaultdict(set)
    for a, b in edges:
        steps[a].add(b)
        if undirected:
            steps[b].add(a)
    found = {}
    for source in sources:
        seen = {source: 0}
        queue = deque([source])
        while queue:
            here = queue.popleft()
            if seen[here] == most:
                continue
            for there in steps[here]:
                if there not in seen:
                    seen[there] = seen[here] + 1
                    queue.append(there)
        found |= {(source, n): d for n, d in seen.items()}
    return found


def test_degrees(graph: Any) -> None:
    nodes, edges, node_frame, edge_frame = graph
    out, into = Counter(a for a, _ in edges), Counter(b for _, b in edges)
    expected = {n: (into[n], out[n], into[n] + out[n]) for n in nodes}
    rows = analytics.degrees(edge_frame, node_frame).collect()
    assert {r.id: (r.in_degree, r.out_degree, r.degree) for r in rows} == expected
    assert len(rows) == len(nodes)


def test_connected_components_are_named_by_their_smallest_id(graph: Any) -> None:
    nodes, edges, node_frame, edge_frame = graph
    rows = analytics.connected_components(edge_frame, node_frame).collect()
    assert {r.id: r.component for r in rows} == plain_components(nodes, edges)
    assert len(rows) == len(nodes)


def test_pagerank_with_dangling_nodes_and_parallel_edges(graph: Any) -> None:
    nodes, edges, node_frame, edge_frame = graph
    rows = analytics.pagerank(edge_frame, node_frame, max_rounds=4, tolerance=0).collect()
    expected = plain_pagerank(nodes, edges, 0.85, 4)
    assert {r.id: r["rank"] for r in rows} == pytest.approx(expected, abs=1e-12)
    assert sum(r["rank"] for r in rows) == pytest.approx(1)


def test_pagerank_stops_at_the_tolerance(spark: Any) -> None:
    ring = spark.createDataFrame([("a", "b"), ("b", "c"), ("c", "a")], "src string, dst string")
    assert {round(r["rank"], 9) for r in analytics.pagerank(ring).collect()} == {round(1 / 3, 9)}


@pytest.mark.parametrize("undirected", [False, True])
@pytest.mark.parametrize("few", [0, 100_000], ids=["edges travel", "nodes travel"])
def test_shortest_path_lengths_are_bounded(
    graph: Any, spark: Any, undirected: bool, few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(analytics, "FEW_NODES", few)
    nodes, edges, _, edge_frame = graph
    sources = sorted(nodes)[:2]
    source_frame = spark.createDataFrame([(s,) for s in sources], "id string")
    rows = analytics.shortest_path_lengths(edge_frame, source_frame, max_hops=3, undirected=undirected).collect()
    assert {(r.source, r.id): r.distance for r in rows} == plain_distances(edges, sources, 3, undirected)
    assert len(rows) == len({(r.source, r.id) for r in rows})


def test_a_graph_without_edges_has_ranks_and_components_too(spark: Any) -> None:
    none = spark.createDataFrame([], "src string, dst string")
    one = spark.createDataFrame([("a",)], "id string")
    assert [tuple(r) for r in analytics.pagerank(none, one).collect()] == [("a", 1.0)]
    assert [tuple(r) for r in analytics.connected_components(none, one).collect()] == [("a", "a")]
    assert analytics.pagerank(none).collect() == []


def test_nonsense_arguments_are_refused(spark: Any) -> None:
    none = spark.createDataFrame([], "src string, dst string")
    with pytest.raises(BadRequest, match="damping"):
        analytics.pagerank(none, damping=1.0)
    with pytest.raises(BadRequest, match="-1 hops"):
        analytics.shortest_path_lengths(none, none, max_hops=-1)


def test_paths_end_where_nothing_is_left_to_reach(spark: Any) -> None:
    line = spark.createDataFrame([("a", "b"), ("b", "c"), ("c", "a")], "src string, dst string")
    one = spark.createDataFrame([("a",), ("a",)], "id string")
    rows = analytics.shortest_path_lengths(line, one, max_hops=50).collect()
    assert sorted(map(tuple, rows)) == [("a", "a", 0), ("a", "b", 1), ("a", "c", 2)]
    assert [tuple(row) for row in analytics.shortest_path_lengths(line, one, max_hops=0).collect()] == [("a", "a", 0)]
