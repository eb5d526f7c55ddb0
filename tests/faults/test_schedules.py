"""Random interleavings of two and three writers, with deaths: thousands in a campaign, some here. Each is a value."""

from __future__ import annotations

import pytest

from tests.faults.schedules import Schedule, Stage

HERE = 16
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
