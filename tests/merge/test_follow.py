"""Following the feed: pages as commits come, goes on from a cursor in another handle, async as well."""

from __future__ import annotations

import asyncio
import threading
import time
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.config import override
from omnigraph.errors import BadRequest, BranchNotFound, HistoryGap
from omnigraph.merge.feed import Page

SCHEMA = "node P { k: String @key  n: I32? }\nnode Q { k: String @key }"


def insert(graph: og.Graph, *keys: str, type: str = "P", branch: str = "main") -> None:
    for key in keys:
        graph.load([{"k": key}], mode="append", type=type, branch=branch)


def ids(page: Page) -> list[str]:
    return [change.id for block in page for change in block.changes]


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    return og.init(tmp_path / "g.omni", schema=SCHEMA)


def test_pages_come_with_commits_and_go_on_from_a_cursor(graph: og.Graph) -> None:
    insert(graph, "a", "b", "c")
    feed = graph.follow(since="beginning", limit=2, every=0.01, timeout=0.0)
    first, second = next(feed), next(feed)
    assert [ids(first), ids(second)] == [["a"], ["b", "c"]], "the first commit of a graph changes nothing"
    assert list(feed) == []
    with og.open(graph.uri, read_only=True) as other:
        again = other.follow(since=first.cursor, timeout=0.0)
        assert ids(next(again)) == ["b", "c"]


def test_now_is_when_it_was_called_and_the_next_commit_is_waited_for(graph: og.Graph) -> None:
    insert(graph, "before")
    feed = graph.follow(types=["P"], every=0.01)
    insert(graph, "after")
    assert ids(next(feed)) == ["after"]
    later = threading.Timer(0.1, insert, [graph, "later"])
    later.start()
    assert ids(next(feed)) == ["later"]
    later.join()
    insert(graph, "other", type="Q")
    assert ids(next(feed)) == [], "its commit is in the feed, its changes are not"
    started = time.monotonic()
    assert list(graph.follow(every=0.02, timeout=0.1)) == []
    assert 0.1 <= time.monotonic() - started < 60


def test_what_cannot_be_followed_is_refused_at_once(graph: og.Graph) -> None:
    with pytest.raises(BranchNotFound):
        graph.follow("nowhere")
    with pytest.raises(BadRequest, match="seconds"):
        graph.follow(every=0)
    graph.branch_create("b")
    feed = graph.follow("b", every=0.01)
    graph.branch_delete("b")
    with pytest.raises(BranchNotFound):
        next(feed)
    insert(graph, *"abcdef")
    with override(cleanup_grace=0.0):
        graph.cleanup(keep_versions=3, confirm=True)
    with pytest.raises(HistoryGap, match="has been removed by cleanup"):
        graph.follow(since="beginning")


def test_the_async_twin(graph: og.Graph) -> None:
    async def script() -> list[list[str]]:
        async with await og.aio.open(graph.uri) as twin:
            found = []
            await twin.load([{"k": "x"}], mode="append", type="P")
            async for page in twin.follow(since="beginning", every=0.01, timeout=0.05):
                found.append(ids(page))
                if len(found) == 1:
                    await twin.load([{"k": "y"}], mode="append", type="P")
            return found

    assert asyncio.run(script()) == [["x"], ["y"]]
