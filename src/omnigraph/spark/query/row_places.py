"""The places of rows in an order, counted from 1, without a task that has all of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_IN_PARTITION = 33
"""Bits that `monotonically_increasing_id` has for the row of a partition."""


def first_places(frame: DataFrame, order: Sequence[Column], place: str, depth: int) -> DataFrame:
    """The first `depth` rows with their places: each task keeps so many of its own, and only those are numbered."""
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    return frame.orderBy(*order).limit(depth).withColumn(place, f.row_number().over(Window.orderBy(*order)))


def all_places(frame: DataFrame, order: Sequence[Column], place: str) -> tuple[DataFrame, int]:
    """All rows with their places, and how many there are.

    Sorted rows lie in partitions one after the other. Each numbers its own, and what lies before it is added.
    """
    from pyspark.sql import functions as f

    ordered = frame.orderBy(*order).withColumn(place, f.monotonically_increasing_id()).localCheckpoint(eager=False)
    part = f.shiftright(place, _IN_PARTITION)
    before = 0
    starts: list[Column] = []
    for found in ordered.groupBy(part.alias("part")).count().orderBy("part").collect():
        starts += [f.lit(found["part"]), f.lit(before)]
        before += found["count"]
    if not starts:
        return ordered, 0
    own = f.col(place).bitwiseAND(f.lit((1 << _IN_PARTITION) - 1))
    return ordered.withColumn(place, own + f.element_at(f.create_map(*starts), part) + 1), before
