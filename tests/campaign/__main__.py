"""`python -m tests.campaign --minutes N [--store s3://bucket/prefix] [--seed N]`."""

from __future__ import annotations

import argparse
import logging
import os
import sys
import tempfile
import time
import uuid
from pathlib import Path

from tests.campaign.proxy import Proxy
from tests.campaign.rounds import Campaign, report
from tests.faults.schedules import Schedule, Stage


def main() -> int:
    """Run rounds on the store and random schedules in between, until the time is up."""
    parser = argparse.ArgumentParser(prog="python -m tests.campaign", description=__doc__)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--store", default=None, help="s3://bucket/prefix; a local directory by default")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--writers", type=int, default=3, help="writers at work in each round; all are killed")
    parser.add_argument("--trouble", type=float, default=0.01, help="share of S3 answers that are dropped or delayed")
    parser.add_argument("--report", type=Path, default=None, help="a file that has the report so far after each round")
    options = parser.parse_args()
    logging.disable(logging.CRITICAL)
    os.environ.setdefault("OMNIGRAPH_LEASE_SECONDS", "2s")
    os.environ.setdefault("OMNIGRAPH_LEASE_RENEWAL_SECONDS", "500ms")
    os.environ.setdefault("OMNIGRAPH_LEASE_WAIT_SECONDS", "5s")
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        uri = f"{options.store}/{uuid.uuid4().hex[:8]}" if options.store else str(place / "graph")
        campaign = Campaign(uri, place / "journal", options.seed, options.writers)
        proxy = None
        endpoint = os.environ.get("AWS_ENDPOINT_URL")
        if options.store and endpoint:
            # Only the writers meet trouble; who checks talks to the store itself.
            proxy = Proxy(endpoint, options.trouble)
            campaign.writers_endpoint = proxy.endpoint
        stage = Stage(place / "stage") if not options.store else None
        started = time.monotonic()
        number = 0
        told = "the time was up before the first round"
        while time.monotonic() - started < options.minutes * 60:
            campaign.round(number)
            if stage is not None:
                _schedules(stage, campaign, options.seed * 1_000_000 + number * 2)
            number += 1
            extra = {"dropped answers": proxy.dropped, "delayed answers": proxy.delayed} if proxy else {}
            told = report(campaign, (time.monotonic() - started) / 60, extra)
            if options.report is not None:
                options.report.write_text(told)
        print(told)
    return 1 if campaign.broken else 0


def _schedules(stage: Stage, campaign: Campaign, seed: int) -> None:
    for one in (seed, seed + 1):
        try:
            campaign.counts["schedule steps"] += len(stage.play(Schedule.at_random(one)))
        except AssertionError as failure:
            campaign.broken.append(f"schedule {one}: {failure}")
        campaign.counts["schedules"] += 1


if __name__ == "__main__":
    sys.exit(main())
