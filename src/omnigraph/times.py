"""Moments as people write them and as the graph keeps them: aware datetimes outside, microseconds inside."""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime, timedelta

from omnigraph.choices import Time
from omnigraph.errors import BadRequest

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DATED = re.compile(r"\d{4}-\d{2}-\d{2}(?!\d)")
_AGO = re.compile(r"(?P<count>\d+|an?|one)\s+(?P<unit>second|minute|hour|day|week)s?\s+ago", re.IGNORECASE)
_SECONDS = {"second": 1, "minute": 60, "hour": 3600, "day": 86_400, "week": 604_800}


def aware(microseconds: int) -> datetime:
    """The moment so many microseconds after the epoch, in UTC."""
    return _EPOCH + timedelta(microseconds=microseconds)


def shown(microseconds: int) -> str:
    """A moment for a table, to the second."""
    return aware(microseconds).strftime("%Y-%m-%d %H:%M:%S")


def to_microseconds(moment: Time, what: str, *, in_utc: bool = False) -> int:
    """Microseconds since the epoch. `what` names the argument in an error.

    A time without an offset is refused, unless it is known to be meant `in_utc`.
    """
    if isinstance(moment, bool) or not isinstance(moment, int | str | datetime):
        raise BadRequest(f"{what} is a time: an aware datetime or ISO text, not {type(moment).__name__}")
    if isinstance(moment, int):
        return moment
    if isinstance(moment, str):
        try:
            moment = datetime.fromisoformat(moment)
        except ValueError:
            raise BadRequest(f"{what}: `{moment}` is not an ISO time such as 2026-01-02T03:04:05Z") from None
    if moment.tzinfo is None and in_utc:
        moment = moment.replace(tzinfo=UTC)
    if moment.tzinfo is None:
        raise BadRequest(
            f"{what}: {moment.isoformat()} has no time zone, so it could be any of many moments; write "
            f"{moment.isoformat()}Z for UTC, or give an aware datetime (datetime.now(UTC))"
        )
    return (moment - _EPOCH) // timedelta(microseconds=1)


def looks_like_time(text: str) -> bool:
    """Whether a text is meant as a time: it starts with a date, or ends with `ago`."""
    return _DATED.match(text) is not None or text.lower().endswith(" ago")


def moment_of(moment: Time, what: str) -> int:
    """Microseconds since the epoch of a time, also of one such as `2 hours ago`."""
    if isinstance(moment, str) and moment.lower().endswith(" ago"):
        found = _AGO.fullmatch(moment.strip())
        if found is None:
            raise BadRequest(
                f"{what}: `{moment}` is no length of time; write `2 hours ago`, with second, minute, hour, day or week"
            )
        count = int(found["count"]) if found["count"].isdigit() else 1
        return time.time_ns() // 1000 - count * _SECONDS[found["unit"].lower()] * 1_000_000
    return to_microseconds(moment, what)


def since_text(since: str | datetime) -> str:
    """Where a reader of changes starts, as text: a moment by its ISO form, anything else as it was given."""
    if isinstance(since, datetime):
        to_microseconds(since, "since")
        return since.isoformat()
    if not isinstance(since, str):
        raise BadRequest(
            "since is a cursor, a commit, a tag, `beginning`, `now` or a time (an aware datetime or ISO text), not "
            f"{type(since).__name__}"
        )
    return since
