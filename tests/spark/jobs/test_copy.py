"""A copy whose files are carried by tasks is the copy that threads of one process make."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.config import override
from omnigraph.failpoints import FailpointError, active
from omnigraph.spark.jobs import copy as job
from omnigraph.storage.objects.objects import ObjectInfo, ObjectStore
from tests.surfaces.test_moved_graphs import ADD, ALL, BRANCHES, live, told

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> str:
    place = str(tmp_path_factory.mktemp("source") / "graph é #1")
    live(place)
    return place


def everything(uri: Path | str) -> object:
    with og.open(uri, read_only=True) as graph:
        return told(graph), [tag.to_json() for tag in graph.tags.list()], graph.log("two")


def test_all_of_it_is_there_and_can_be_written_to(source: str, tmp_path: Path, spark: Any) -> None:
    here, there = (
        og.copy(source, tmp_path / "here", engine="local"),
        og.copy(source, tmp_path / "there", engine="spark"),
    )
    assert (here.engine, there.engine) == ("local", "spark")
    assert (there.files, there.bytes, there.branches) == (here.files, here.bytes, BRANCHES)
    assert everything(tmp_path / "there") == everything(source)
    with og.open(tmp_path / "there") as graph:
        for name in BRANCHES:
            graph.mutate(ADD, k="new", branch=name)
        assert graph.verify(deep=True).ok
    with og.open(source, read_only=True) as graph:
        assert "new" not in [row["p.k"] for row in graph.query(ALL).rows()]


def test_one_engine_carries_on_what_the_other_began(source: str, tmp_path: Path, spark: Any) -> None:
    for first, then in (("spark", "local"), ("local", "spark")):
        target = tmp_path / first
        with active("copy.files", "raise"), pytest.raises(FailpointError):
            og.copy(source, target, engine=first)
        lost = next(path for path in (target / "nodes").rglob("*.lance") if path.is_file())
        lost.unlink()
        result = og.copy(source, target, engine=then)
        assert (result.files, result.files_there > 0) == (1, True)
        assert everything(target) == everything(source)


def test_a_file_that_cleanup_took_meanwhile_starts_another_round(
    tmp_path: Path, spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = str(tmp_path / "graph")
    live(place)
    carry, rounds = job._carry, []

    def late(session: Any, source: ObjectStore, target: ObjectStore, files: Any) -> Any:
        if not rounds:
            with og.open(place) as graph:
                graph.optimize()
                graph.cleanup(keep_versions=1, confirm=True, force=True)
        rounds.append(len(files))
        return carry(session, source, target, files)

    monkeypatch.setattr(job, "_carry", late)
    og.copy(place, tmp_path / "copy", engine="spark")
    assert len(rounds) > 2
    with og.open(tmp_path / "copy") as graph, og.open(place, read_only=True) as whole:
        for name in BRANCHES:
            assert graph.query(ALL, branch=name).rows() == whole.query(ALL, branch=name).rows()
        assert graph.verify(deep=True).ok


def test_a_session_that_is_active_is_taken_for_large_graphs(source: str, tmp_path: Path, spark: Any) -> None:
    with override(spark_load_bytes=1 << 40):
        assert og.copy(source, tmp_path / "small").engine == "local"
    with override(spark_load_bytes=1000):
        assert og.copy(source, tmp_path / "large").engine == "spark"


def test_shares_keep_all_tasks_busy() -> None:
    def shares(sizes: list[int], at_once: int) -> list[list[int]]:
        files = [ObjectInfo(f"f{n}", size, 0.0) for n, size in enumerate(sizes)]
        return [[file.size for file in share] for share in job.shares_of(files, at_once)]

    mega = 1 << 20
    assert shares([], 4) == []
    assert shares([5], 4) == [[5]]
    assert shares([0, 0, 0, 0], 2) == [[0, 0], [0, 0]]
    assert shares([1, 8, 1, 8], 2) == [[8], [8, 1], [1]]
    assert [sum(share) // mega for share in shares([100 * mega] * 6, 1)] == [200, 200, 200]
    assert max(len(share) for share in shares([1] * 5000, 1)) == job.FILES_PER_TASK
