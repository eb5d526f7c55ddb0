"""Random interleavings of two and three writers, with deaths: thousands in a campaign, some here. Each is a value."""

from __future__ import annotations

from pathlib import Path

import pytest

from omnigraph.storage.objects import os_locks
from tests.faults.schedules import Schedule, Stage

HERE = 24
"""Schedules in one run of the suite; `python -m tests.campaign` plays as many as there is time for."""


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Stage:
    return Stage(tmp_path_factory.mktemp("schedules"))


def test_random_interleavings_keep_every_promise(stage: Stage) -> None:
    steps = [len(stage.play(Schedule.at_random(seed))) for seed in range(HERE)]
    assert sum(steps) > 30 * HERE


def test_a_schedule_runs_again_the_same_way(stage: Stage) -> None:
    schedule = Schedule.at_random(3)
    assert stage.play(schedule) == stage.play(schedule)


def test_a_schedule_that_breaks_a_promise_prints_itself_as_a_script(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(uri: str, writers: object) -> None:
        raise AssertionError("a promise is broken")

    monkeypatch.setattr("tests.faults.schedules._check", broken)
    with pytest.raises(AssertionError, match="play it again: Schedule") as caught:
        stage.play(Schedule(("people", "company"), (0, 1)))
    assert "0 people goes on from start" in str(caught.value)


def test_who_died_takes_no_lock_of_others_along(stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = stage.play(Schedule(("people",), (0,)))
    in_window = next(step for step, line in enumerate(script) if line.endswith("write.sidecar_put"))
    mine: dict[Path, int | None] = {}

    def take_locks(uri: str, writers: object) -> None:
        for number in range(8):
            path = tmp_path / f"lock{number}"
            mine[path] = os_locks.try_lock(path)

    monkeypatch.setattr("tests.faults.schedules._check", take_locks)
    stage.play(Schedule(("people",), (0,), dies_at=in_window))
    try:
        assert [path.name for path in mine if os_locks.is_free(path)] == []
    finally:
        for descriptor in mine.values():
            os_locks.close(descriptor or -1)
