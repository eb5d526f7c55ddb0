"""A short campaign in the suite; a long one is run before a release, see the operations page."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.campaign.rounds import Campaign, report


@pytest.mark.slow
def test_a_few_rounds_break_no_promise(tmp_path: Path) -> None:
    campaign = Campaign(str(tmp_path / "graph"), tmp_path / "journal", seed=11)
    for number in range(5):
        campaign.round(number)
    assert not campaign.broken, report(campaign, 0.0, {})
    assert campaign.counts["kills"] >= 10


def test_a_lost_acknowledged_write_is_noticed(tmp_path: Path) -> None:
    campaign = Campaign(str(tmp_path / "graph"), tmp_path / "journal", seed=1)
    campaign.journal.write_text("friends\tnever-written\n")
    with pytest.raises(AssertionError, match="acknowledged and not there"):
        campaign._check(0)
