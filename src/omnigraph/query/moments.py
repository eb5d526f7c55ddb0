"""Dates and datetimes from ISO text: one reading for literals and parameters."""

from __future__ import annotations

import datetime
import re

_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_DATETIME = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d(?::\d\d(?:\.(\d+))?)?(?:[Zz]|[+-]\d\d:\d\d)?", re.ASCII)


def parse_date(text: str) -> datetime.date:
    """`2026-01-02`. Raises ValueError with a sentence that says what is wrong."""
    if not _DATE.fullmatch(text):
        raise ValueError(f'"{text}" is not a date of the form 2026-01-02')
    try:
        return datetime.date.fromisoformat(text)
    except ValueError as error:
        raise ValueError(f'"{text}" is not a day of the calendar') from error


def parse_datetime(text: str) -> datetime.datetime:
    """`2026-01-02T03:04:05Z`, with an offset or none (then UTC); to the microsecond. Raises ValueError like above."""
    match = _DATETIME.fullmatch(text)
    if not match:
        raise ValueError(f'"{text}" is not a datetime of the form 2026-01-02T03:04:05Z')
    if len((match.group(1) or "").rstrip("0")) > 6:
        raise ValueError(f'"{text}" is finer than a microsecond')
    try:
        moment = datetime.datetime.fromisoformat(text.upper())
    except ValueError as error:
        raise ValueError(f'"{text}" is not a moment of the calendar') from error
    return in_utc(moment)


def in_utc(moment: datetime.datetime) -> datetime.datetime:
    """The same instant in UTC; without a zone it is taken as UTC. Raises ValueError outside the calendar."""
    if moment.tzinfo is None:
        return moment.replace(tzinfo=datetime.UTC)
    try:
        return moment.astimezone(datetime.UTC)
    except OverflowError as error:
        raise ValueError(f"{moment.isoformat()} lies outside the years 1 to 9999 in UTC") from error
