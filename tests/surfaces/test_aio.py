"""The async twins: every method of a Graph, the same answers, and an event loop that goes on."""

from __future__ import annotations

import asyncio
import inspect
import json
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.errors import NotFound

ALL = "query q() { match { $p: P } return { $p.k } order { $p.k } }"


def test_a_session(tmp_path: Path) -> None:
    async def session() -> None:
        async with await og.aio.init(tmp_path / "g", schema="node P { k: String @key }", actor="act-ada") as graph:
            await graph.load([{"type": "P", "data": {"k": "a"}}], mode="append")
            rows = await asyncio.gather(*(graph.query(ALL) for _ in range(4)))
            assert [len(result) for result in rows] == [1] * 4
            async with graph.branch("review", merge=True) as review:
                made = await review.mutate("query q($k: String) { insert P { k: $k } }", k="b")
                assert made.commit is not None
                assert made.commit.actor_id == "act-ada"
            assert (await graph.query(ALL)).rows() == [{"p.k": "a"}, {"p.k": "b"}]
            await graph.tags.create("v1")
            assert [tag.name for tag in await graph.tags.list()] == ["v1"]
            with pytest.raises(NotFound):
                async with graph.branch("other", merge=True) as other:
                    await other.mutate('query q() { insert P { k: "c" } }', "no such query")
            assert len(await graph.query(ALL)) == 2
            assert repr(graph).startswith("<AsyncGraph ")
        async with await og.aio.open(tmp_path / "g", read_only=True, branch="review") as graph:
            assert graph.branch_name == "review"
            assert (await graph.head()).branch == "review"
        with pytest.raises(NotFound):
            await og.aio.open(tmp_path / "nothing")

    asyncio.run(session())


def test_the_loop_goes_on_meanwhile(tmp_path: Path) -> None:
    async def session() -> int:
        graph = await og.aio.init(tmp_path / "g", schema="node P { k: String @key }")
        ticks = 0
        work = asyncio.ensure_future(
            graph.load([{"type": "P", "data": {"k": str(n)}} for n in range(2000)], mode="append")
        )
        while not work.done():
            await asyncio.sleep(0.001)
            ticks += 1
        await work
        await graph.close()
        return ticks

    assert asyncio.run(session()) > 5


def test_no_method_is_without_its_twin(tmp_path: Path) -> None:
    with og.init(tmp_path / "g", schema="node P { k: String @key }") as graph:
        twin = og.aio.AsyncGraph(graph)
        for name, _ in inspect.getmembers(og.Graph, inspect.isfunction):
            if not name.startswith("_"):
                assert callable(getattr(twin, name)), name
                assert getattr(twin, name).__doc__, name


def test_lines_of_an_export_come_piece_by_piece(tmp_path: Path) -> None:
    async def session() -> bytes:
        async with await og.aio.init(tmp_path / "g", schema="node P { k: String @key }") as graph:
            await graph.load([{"type": "P", "data": {"k": k}} for k in "ab"], mode="append")
            return b"".join([piece async for piece in graph.export_lines(types=["P"])])

    assert [json.loads(line)["data"] for line in asyncio.run(session()).splitlines()] == [{"k": "a"}, {"k": "b"}]


def test_a_query_that_nobody_waits_for_stops(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise a few queries that were given up would keep all threads, and every later call would wait for them."""
    real = og.Graph.query

    def query(self: og.Graph, source: str, *args: Any, cancel: Any = None, **options: Any) -> Any:
        while "endless" in source:
            cancel.check()
            time.sleep(0.01)
        return real(self, source, *args, cancel=cancel, **options)

    monkeypatch.setattr(og.Graph, "query", query)

    async def run() -> None:
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
        async with await og.aio.init(tmp_path / "g", schema="node P { k: String @key }") as graph:
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(graph.query(ALL.replace("q()", "endless()")), 0.5)
            assert len(await asyncio.wait_for(graph.query(ALL), 60)) == 0

    asyncio.run(run())
