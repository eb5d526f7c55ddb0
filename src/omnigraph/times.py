"""Moments as people write them and as the graph keeps them: aware datetimes outside, microseconds inside."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from omnigraph.choices import Time
from omnigraph.errors import BadRequest

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


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
