"""Dates and datetimes as Python values, read from text as everywhere else (see schema/literals.py)."""

from __future__ import annotations

import datetime

from omnigraph.schema import literals


def parse_date(text: str) -> datetime.date:
    """`2026-01-02`. Raises ValueError with a sentence that says what is wrong."""
    try:
        return literals.EPOCH_DATE + datetime.timedelta(days=literals.parse_date(text))
    except ValueError as error:
        raise ValueError(f'"{_short(text)}" is not a Date: {error}') from None


def parse_datetime(text: str) -> datetime.datetime:
    """`2026-01-02T03:04:05Z`, or with an offset; the result is in UTC. Raises ValueError like above."""
    try:
        return literals.EPOCH + datetime.timedelta(microseconds=literals.parse_datetime(text))
    except ValueError as error:
        raise ValueError(f'"{_short(text)}" is not a DateTime: {error}') from None


def in_utc(moment: datetime.datetime) -> datetime.datetime:
    """The same instant in UTC. Raises ValueError for one without a zone and outside of the calendar."""
    if moment.tzinfo is None:
        raise ValueError(f"{moment.isoformat()} has no time zone: nobody could say which instant it is")
    try:
        return moment.astimezone(datetime.UTC)
    except OverflowError:
        raise ValueError(f"{moment.isoformat()} lies outside the years 1 to 9999 in UTC") from None


def _short(text: str) -> str:
    return text if len(text) <= 40 else text[:39] + "…"
