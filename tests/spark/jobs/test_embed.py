"""Vectors that tasks make: the same as in process, within the provider's limit, and not paid for twice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.embed.provider_settings import EmbeddingSettings
from omnigraph.errors import EmbeddingRefused
from tests.embed.loopback import embeds, running, says
from tests.write.embedding.test_fill import DIM, SCHEMA, asked, mock, note, stored

pytestmark = pytest.mark.spark


def test_tasks_make_the_vectors_that_this_process_makes(spark: Any, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr("omnigraph.spark.jobs.embed.ROWS_PER_TASK", 4)
    og.init(tmp_path / "g", schema=SCHEMA).close()
    with running() as server:
        server.answers = [embeds(DIM)]
        remote = EmbeddingSettings(
            "openai-compatible", "mock", server.url, batch=2, calls_per_second=20.0, on_write=False
        )
        with og.open(tmp_path / "g", embedding=remote) as graph:
            for start in (0, 4, 8):
                graph.load([note(f"n{i}", text=f"text {i}") for i in range(start, start + 4)], mode="append")
            graph.branch_create("b")
            # Two tasks at a time with two calls each: after four calls one of them at least is through.
            server.answers = [*(embeds(DIM) for _ in range(4)), says(400, "no more")]
            with pytest.raises(EmbeddingRefused, match='status 400 "no more"'):
                graph.embed(engine="spark", branch="b")
            ready = graph.embed(dry_run=True, branch="b").properties[1].rows_ready
            assert ready > 0
            server.asked.clear()
            server.answers = [embeds(DIM)]
            done = graph.embed(engine="spark", branch="b")
            assert (done.engine, done.rows) == ("spark", 12)
            assert len(asked(server)) == 12 - ready
            times = sorted(at for _, _, _, at in server.asked)
            assert times[-1] - times[0] >= (len(times) - 2) / 20.0 * 0.5
            assert graph.embed(branch="main").engine == "local"
            assert stored(graph, branch="b") == stored(graph) == {f"n{i}": mock(f"text {i}") for i in range(12)}


def test_a_load_on_spark_fills_too(spark: Any, tmp_path: Path) -> None:
    og.init(tmp_path / "g", schema=SCHEMA).close()
    with og.open(tmp_path / "g", embedding=EmbeddingSettings("mock")) as graph:
        graph.load([note("a", text="one"), note("b")], mode="append", engine="spark")
        cards = [{"type": "Card", "data": {"id": "x", "text": "two"}}]
        graph.load([note("b", text="three"), *cards], mode="merge", engine="spark")
        assert stored(graph) == {"a": mock("one"), "b": mock("three")}
        assert stored(graph, "Card") == {"x": mock("two")}
