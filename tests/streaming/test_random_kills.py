"""The short form of `python -m tests.streaming`: a driver is killed with all that it started, the next one goes on."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.streaming.run import run


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_a_killed_driver_is_followed_by_one_that_goes_on(tmp_path: Path) -> None:
    outcome = run(tmp_path, records=2400, batches=10, kills=1, seed=7)
    assert (outcome.drivers, outcome.kills) == (2, 1)
