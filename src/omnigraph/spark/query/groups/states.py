"""What a task knows of the groups among its own rows, in a form that can be put together with what others know.

A state is a few columns, one row for each group of a task. Putting states together gives to the last bit what the
in-process engine gives for all rows at once: counts and whole numbers add up, an extreme of extremes is one, the pieces
of sums of floats are floats with the same sum (`query/evaluate/exact_floats.py`), and different values stay different.
`median`, `stddev` and `collect` have no state that is smaller than their values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
import pyarrow as pa

from omnigraph.query import ir
from omnigraph.query.evaluate.aggregates import aggregate, distinct_rows, mean_of
from omnigraph.query.evaluate.exact_floats import float_pieces
from omnigraph.query.evaluate.sums import Codes, group_sums, integer_halves, integer_totals
from omnigraph.query.typing import type_of
from omnigraph.schema.types import FLOATS, INTEGERS, EntityType, EnumType, ScalarType, ValueType
from omnigraph.spark.query.needs import stored_type
from omnigraph.spark.spread import with_details
from omnigraph.spark.types import travelling_type

if TYPE_CHECKING:
    from pyspark.sql import Column

_F = ir.AggregateFunction
_aggregated = with_details(aggregate)


class State(Protocol):
    """One aggregate. Values and columns are in the types in which they cross to Spark."""

    @property
    def types(self) -> Sequence[pa.DataType]:
        """The columns of a state."""

    def of_rows(self, values: pa.Array, groups: Codes, count: int) -> list[pa.Array]:
        """The states of `count` groups of rows."""

    def whole(self, parts: Sequence[pa.Array], groups: Codes, count: int) -> pa.Array:
        """The aggregates of `count` groups of states."""

    def added(self, names: Sequence[str]) -> list[Column] | None:
        """States put together by Spark, as columns of the same number; None if it cannot."""


def state_of(wanted: ir.Aggregate, type_: ValueType) -> State | None:
    """The state of an aggregate, the value of which is of a type; None if it has none."""
    argument = type_of(wanted.arg)
    if argument is not None and not isinstance(argument, EntityType | EnumType | ScalarType):
        return None
    number = argument.scalar if isinstance(argument, ScalarType) else None
    match wanted.function:
        case _F.COUNT if not wanted.distinct:
            return Counted()
        case _F.MIN | _F.MAX:
            return Extreme(wanted, stored_type(type_))
        case _F.COUNT | _F.SUM | _F.AVG if wanted.distinct:
            return Different(wanted, stored_type(argument), stored_type(type_))
        case _F.SUM | _F.AVG if number in INTEGERS:
            return WholeNumbers(wanted, stored_type(argument), stored_type(type_))
        case _F.SUM | _F.AVG if number in FLOATS:
            return Floats(wanted.function is _F.AVG)
        case _:
            return None


def _present(values: pa.Array, groups: Codes) -> tuple[pa.Array, Codes]:
    """Values without the missing ones, and their groups."""
    if not values.null_count:
        return values, groups
    there = values.is_valid()
    return values.filter(there), groups[there.to_numpy(zero_copy_only=False)]


def _numbers(column: pa.Array) -> Codes:
    return np.asarray(column.to_numpy(zero_copy_only=False)).astype(np.int64)


@dataclass(frozen=True, slots=True)
class Counted:
    """How many values there are."""

    types = (pa.int64(),)

    def of_rows(self, values: pa.Array, groups: Codes, count: int) -> list[pa.Array]:
        """Those that are not null."""
        return [pa.array(np.bincount(_present(values, groups)[1], minlength=count), pa.int64())]

    def whole(self, parts: Sequence[pa.Array], groups: Codes, count: int) -> pa.Array:
        """All of them."""
        return pa.array(np.bincount(groups, weights=_numbers(parts[0]), minlength=count).astype(np.int64))

    def added(self, names: Sequence[str]) -> list[Column] | None:
        """Their sum."""
        from pyspark.sql import functions as f

        return [f.coalesce(f.sum(names[0]), f.lit(0))]


@dataclass(frozen=True, slots=True)
class Extreme:
    """The least or the greatest value."""

    wanted: ir.Aggregate
    result: pa.DataType

    @property
    def types(self) -> Sequence[pa.DataType]:
        """The value itself."""
        return (travelling_type(self.result),)

    def of_rows(self, values: pa.Array, groups: Codes, count: int) -> list[pa.Array]:
        """That of each group."""
        found = _aggregated(self.wanted, values.cast(self.result), groups, count, self.result)
        return [found.cast(self.types[0])]

    def whole(self, parts: Sequence[pa.Array], groups: Codes, count: int) -> pa.Array:
        """The extreme of extremes."""
        return self.of_rows(parts[0], groups, count)[0]

    def added(self, names: Sequence[str]) -> list[Column] | None:
        """To Spark as to us not-a-number is the greatest, and there is only one zero among states."""
        from pyspark.sql import functions as f

        return [(f.max if self.wanted.function is _F.MAX else f.min)(names[0])]


@dataclass(frozen=True, slots=True)
class WholeNumbers:
    """The sum of integers in two halves, the lower one below 2 to the power of 32, and how many there are."""

    wanted: ir.Aggregate
    argument: pa.DataType
    result: pa.DataType
    types = (pa.int64(), pa.int64(), pa.int64())

    def of_rows(self, values: pa.Array, groups: Codes, count: int) -> list[pa.Array]:
        """The halves of each group."""
        present, groups = _present(values, groups)
        plain = np.asarray(present.cast(self.argument).to_numpy(zero_copy_only=False))
        low, high = integer_halves(plain, groups, count)
        sizes = np.bincount(groups, minlength=count)
        return [pa.array(low & 0xFFFFFFFF), pa.array(high + (low >> 32)), pa.array(sizes, pa.int64())]

    def whole(self, parts: Sequence[pa.Array], groups: Codes, count: int) -> pa.Array:
        """Sums that must fit their type, or means."""
        low, high, sizes = (integer_totals(part, groups, count) for part in parts)
        return self.finished([(up << 32) + down if size else None for down, up, size in zip(low, high, sizes)], sizes)

    def finished(self, totals: Sequence[int | None], sizes: Sequence[int]) -> pa.Array:
        """The aggregates of groups of which the totals are known; of no value it is null."""
        if self.wanted.function is _F.AVG:
            pairs = zip(totals, sizes, strict=True)
            return pa.array([None if total is None else mean_of(total, size) for total, size in pairs], pa.float64())
        limits = np.iinfo(self.result.to_pandas_dtype())
        if any(total is not None and not limits.min <= total <= limits.max for total in totals):
            # The in-process engine says what does not fit.
            _aggregated(self.wanted, pa.array([limits.max] * 2, self.result), np.zeros(2, np.int64), 1, self.result)
        return pa.array(totals, self.result).cast(travelling_type(self.result))

    def added(self, names: Sequence[str]) -> list[Column] | None:
        """Each half by itself."""
        from pyspark.sql import functions as f

        return [f.sum(f.col(name).cast("decimal(20,0)")) for name in names]


@dataclass(frozen=True, slots=True)
class Floats:
    """Floats with the same sum: three, and where that is not enough more; and how many values there were."""

    mean: bool
    types = (pa.float64(), pa.float64(), pa.float64(), pa.list_(pa.field("element", pa.float64())), pa.int64())

    def of_rows(self, values: pa.Array, groups: Codes, count: int) -> list[pa.Array]:
        """The pieces of each group."""
        present, groups = _present(values, groups)
        plain = np.asarray(present.to_numpy(zero_copy_only=False)).astype(np.float64)
        sizes = np.bincount(groups, minlength=count)
        finite = np.isfinite(plain)
        found = float_pieces(plain[finite], groups[finite], sizes)
        more = np.concatenate([found.more, plain[~finite]])
        owners = np.concatenate([found.groups, groups[~finite]])
        order = np.argsort(owners, kind="stable")
        offsets = np.concatenate(([0], np.cumsum(np.bincount(owners, minlength=count)))).astype(np.int32)
        lists = pa.ListArray.from_arrays(pa.array(offsets), pa.array(more[order]), type=self.types[3])
        return [*(pa.array(level) for level in found.levels), lists, pa.array(sizes, pa.int64())]

    def whole(self, parts: Sequence[pa.Array], groups: Codes, count: int) -> pa.Array:
        """The sum of all pieces, rounded once; or that divided."""
        *levels, more, counts = parts
        owners = groups[_numbers(more.value_parent_indices()) if len(more) else np.empty(0, dtype=np.int64)]
        numbers = np.concatenate([*(groups for _ in levels), owners])
        pieces = pa.concat_arrays([*levels, more.flatten()])
        sums = group_sums(pieces, numbers, np.bincount(numbers, minlength=count))
        sizes = np.bincount(groups, weights=_numbers(counts), minlength=count)
        with np.errstate(invalid="ignore", divide="ignore"):
            return pa.array(sums / sizes if self.mean else sums, mask=sizes == 0)

    def added(self, names: Sequence[str]) -> list[Column] | None:
        """Spark would round."""
        return None


@dataclass(frozen=True, slots=True)
class Different:
    """The different values, for an aggregate of each of them once."""

    wanted: ir.Aggregate
    argument: pa.DataType
    result: pa.DataType

    @property
    def types(self) -> Sequence[pa.DataType]:
        """A list of values."""
        return (pa.list_(pa.field("element", travelling_type(self.argument))),)

    def of_rows(self, values: pa.Array, groups: Codes, count: int) -> list[pa.Array]:
        """Those of each group."""
        present, groups = _present(values, groups)
        first = distinct_rows(present, groups)
        order = first[np.argsort(groups[first], kind="stable")]
        offsets = np.concatenate(([0], np.cumsum(np.bincount(groups[first], minlength=count)))).astype(np.int32)
        return [pa.ListArray.from_arrays(pa.array(offsets), present.take(pa.array(order)), type=self.types[0])]

    def whole(self, parts: Sequence[pa.Array], groups: Codes, count: int) -> pa.Array:
        """The aggregate of what is different among all of them."""
        (lists,) = parts
        owners = groups[_numbers(lists.value_parent_indices()) if len(lists) else np.empty(0, dtype=np.int64)]
        values = lists.flatten().cast(self.argument)
        return _aggregated(self.wanted, values, owners, count, self.result).cast(travelling_type(self.result))

    def added(self, names: Sequence[str]) -> list[Column] | None:
        """Values would have to be taken out of their lists first."""
        return None
