"""Functions on dates and instants. Instants are looked at in UTC."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.query.functions.kernels.arguments import CannotCompute, columns, constant, fit

INSTANT = pa.timestamp("us", tz="UTC")
FIRST_DAY, LAST_DAY = -719162, 2932896
"""The days of the calendar, 0001-01-01 to 9999-12-31, counted from 1970-01-01."""
DAY = 86_400_000_000
"""Microseconds of a day."""


def year(args: Sequence[Any], result: pa.DataType) -> pa.Array:
    """The year."""
    return pc.year(args[0])


def month(args: Sequence[Any], result: pa.DataType) -> pa.Array:
    """The month."""
    return pc.month(args[0])


def day(args: Sequence[Any], result: pa.DataType) -> pa.Array:
    """The day of the month."""
    return pc.day(args[0])


def hour(args: Sequence[Any], result: pa.DataType) -> pa.Array:
    """The hour."""
    return pc.hour(args[0])


def minute(args: Sequence[Any], result: pa.DataType) -> pa.Array:
    """The minute."""
    return pc.minute(args[0])


def second(args: Sequence[Any], result: pa.DataType) -> pa.Array:
    """The second."""
    return pc.second(args[0])


def weekday(args: Sequence[Any], result: pa.DataType) -> pa.Array:
    """Monday 1 to Sunday 7."""
    return pc.day_of_week(args[0], count_from_zero=False, week_start=1)


def date_trunc(args: Sequence[Any], result: pa.DataType) -> pa.Array:
    """The start of a unit of time."""
    unit = constant(args[0])
    if unit is None:
        return pa.nulls(len(args[1]), result)
    starts = pc.floor_temporal(args[1], unit=unit, week_starts_monday=True)
    within_calendar(starts)
    return starts


def days_between(args: Sequence[Any], result: pa.DataType) -> pa.Array:
    """Days from the first to the second."""
    if pa.types.is_date(args[0].type):
        first, second = (column.cast(pa.int32()).cast(pa.int64()) for column in columns(args))
        return pc.subtract(second, first)
    return _whole(args, DAY)


def seconds_between(args: Sequence[Any], result: pa.DataType) -> pa.Array:
    """Full seconds from the first to the second."""
    return _whole(args, 1_000_000)


def _whole(args: Sequence[Any], size: int) -> pa.Array:
    """How many whole units lie between two instants; cut towards zero."""
    first, second = (fit(column, INSTANT).cast(pa.int64()) for column in columns(args))
    return pc.divide(pc.subtract(second, first), size)


def shift(moments: Any, amounts: Any, unit: str, result: pa.DataType) -> pa.Array:
    """Moments moved by so many units. Raises `CannotCompute` for what leaves the calendar."""
    moments, amounts = columns([moments, amounts])
    valid = np.asarray(pc.and_(moments.is_valid(), amounts.is_valid()).to_numpy(zero_copy_only=False))
    numbers = fit(amounts, pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
    is_date = pa.types.is_date(moments.type)
    if unit in ("months", "years"):
        days, rest = _days_and_rest(moments, is_date)
        moved = _by_months(days, numbers * (12 if unit == "years" else 1), numbers, valid)
        return _moments(moved, rest, valid, result)
    size = _MICROSECONDS[unit]
    if bool(np.any(valid & (np.abs(numbers.astype(np.float64)) * size > 4e17))):
        raise CannotCompute(_OUTSIDE)
    days, rest = _days_and_rest(moments, is_date)
    if is_date and pa.types.is_date(result):
        return _moments(days + numbers * (size // DAY), rest, valid, result)
    total = days * DAY + rest + numbers * size
    return _moments(total // DAY, total % DAY, valid, result)


_MICROSECONDS = {
    "weeks": 7 * DAY,
    "days": DAY,
    "hours": 3_600_000_000,
    "minutes": 60_000_000,
    "seconds": 1_000_000,
}
_OUTSIDE = "a moment outside of the years 1 to 9999"


def _days_and_rest(moments: pa.Array, is_date: bool) -> tuple[Any, Any]:
    """The day of each moment, counted from 1970, and the microseconds within it."""
    if is_date:
        days = moments.cast(pa.int32()).fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
        return days, np.zeros(len(days), dtype=np.int64)
    ticks = fit(moments, INSTANT).cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
    return ticks // DAY, ticks % DAY


def _by_months(days: Any, months: Any, given: Any, valid: Any) -> Any:
    if bool(np.any(valid & (np.abs(given.astype(np.float64)) > 150_000))):
        raise CannotCompute(_OUTSIDE)
    dates = days.astype("datetime64[D]")
    first = dates.astype("datetime64[M]")
    inside = (dates - first.astype("datetime64[D]")).astype(np.int64)
    target = first + np.where(valid, months, 0)
    lengths = ((target + 1).astype("datetime64[D]") - target.astype("datetime64[D]")).astype(np.int64)
    return target.astype("datetime64[D]").astype(np.int64) + np.minimum(inside, lengths - 1)


def _moments(days: Any, rest: Any, valid: Any, result: pa.DataType) -> pa.Array:
    if bool(np.any(valid & ((days < FIRST_DAY) | (days > LAST_DAY)))):
        raise CannotCompute(_OUTSIDE)
    days = np.where(valid, days, 0)
    if pa.types.is_date(result):
        return pa.array(days.astype(np.int32), pa.int32(), mask=~valid).cast(pa.date32())
    return pa.array(days * DAY + rest, pa.int64(), mask=~valid).cast(INSTANT)


def within_calendar(moments: pa.Array) -> None:
    """Raise `CannotCompute` for a moment outside of the years 1 to 9999."""
    days, _ = _days_and_rest(moments, pa.types.is_date(moments.type))
    valid = moments.is_valid().to_numpy(zero_copy_only=False)
    if bool(np.any(valid & ((days < FIRST_DAY) | (days > LAST_DAY)))):
        raise CannotCompute(_OUTSIDE)
