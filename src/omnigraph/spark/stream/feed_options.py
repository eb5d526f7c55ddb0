"""What a stream out of a graph is told: where it starts, what of the feed it wants, and what it does about a gap."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from omnigraph.errors import BadRequest
from omnigraph.merge.diff import DiffFilter
from omnigraph.spark.source.option_names import STREAM_OUT, known_options

BASELINE = "baseline"
"""Start with the whole state, as inserts, and go on with what changes."""

COMMITS_PER_TRIGGER = 1000


@dataclass(frozen=True, slots=True)
class FeedOptions:
    """How a stream out of a graph is read."""

    since: str
    branch: str = "main"
    type: str | None = None
    only: DiffFilter = field(default_factory=DiffFilter)
    commits_per_trigger: int = COMMITS_PER_TRIGGER
    baseline_on_gap: bool = False


def feed_options(given: Mapping[str, str]) -> FeedOptions:
    """Options of `readStream`, whose names Spark may have put in lower case."""
    options = known_options(given, STREAM_OUT, "a stream out of a graph")
    if not options.get("startingfrom"):
        raise BadRequest(
            'Say where the stream starts: .option("startingFrom", …) with `beginning`, `now`, `baseline` (the whole '
            "state first), a commit, a tag or a time."
        )
    on_gap = options.get("ongap", "error")
    if on_gap not in ("error", BASELINE):
        raise BadRequest(f"`{on_gap}` is nothing to do about a gap: onGap is error or baseline")
    one_type = options.get("type")
    if one_type and options.get("types"):
        raise BadRequest(
            f"`type` ({one_type}) gives the columns of one type, `types` ({options['types']}) changes of several as "
            "JSON: a stream has one of the two options"
        )
    types = [one_type] if one_type else _listed(options.get("types"))
    return FeedOptions(
        since=options["startingfrom"],
        branch=options.get("branch", "main"),
        type=one_type,
        only=DiffFilter.of(_listed(options.get("kinds")), types, _listed(options.get("ops"))),
        commits_per_trigger=_number(options.get("maxcommitspertrigger", str(COMMITS_PER_TRIGGER))),
        baseline_on_gap=on_gap == BASELINE,
    )


def _listed(text: str | None) -> list[str]:
    return [part.strip() for part in (text or "").split(",") if part.strip()]


def _number(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise BadRequest(f"maxCommitsPerTrigger is a number of commits from 1 on, not `{text}`")
    return int(text)
