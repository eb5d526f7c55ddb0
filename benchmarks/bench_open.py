"""Opening a graph and taking a snapshot do not get slower with the length of the history."""

from __future__ import annotations

import tempfile
from pathlib import Path

import omnigraph as og
from benchmarks.harness import Row, measure
from omnigraph.graph import Graph
from omnigraph.ledger.manifest.publish import CommitDraft, Publication, publish
from omnigraph.ledger.values import WriterKind

SCHEMA = "node Person { slug: String @key age: I32? }"


def graph_with(path: Path, commits: int) -> None:
    """A graph whose history has that many commits, each a publish as every writer makes them."""
    with og.init(path, schema=SCHEMA) as graph:
        _publish(graph, commits)


def _publish(graph: Graph, commits: int) -> None:
    from ulid import ULID

    store = graph._store
    ref = store.branch("main")
    for number in range(commits):
        draft = CommitDraft(str(ULID()), graph.head().graph_commit_id, None, "bench", number + 1, WriterKind.LOAD)
        publish(store, ref, Publication(draft))


def run(long: int = 2_000) -> list[Row]:
    """Against the same graph with ten commits."""
    with tempfile.TemporaryDirectory() as directory:
        short_path, long_path = Path(directory) / "short", Path(directory) / "long"
        graph_with(short_path, 10)
        graph_with(long_path, long)
        goal = "within 2 of 10 commits"
        return [
            measure(f"open with {long} commits", lambda: _open(long_path), lambda: _open(short_path), goal),
            measure(f"log of {long} commits", lambda: _log(long_path), None, "under 100 ms"),
        ]


def _open(path: Path) -> None:
    og.open(path).close()


def _log(path: Path) -> None:
    with og.open(path, read_only=True) as graph:
        graph.log()
