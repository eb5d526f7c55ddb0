"""Rules that one row can break on its own, each as a function on whole Arrow columns.

Every function gives findings: which rows break the rule, and the words for one of them. Nothing here touches a store,
so the same functions run in process, inside Spark tasks, on the result of a merge and on a table that gets a new rule.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import Violation
from omnigraph.schema.catalog import Check, GraphType, NodeType, Property, Range, property_column
from omnigraph.schema.patterns import anchored_pattern
from omnigraph.schema.types import FLOATS, EnumType, ListType, ScalarType, VectorType
from omnigraph.write.rows.rows import Rows
from omnigraph.write.validate import messages
from omnigraph.write.validate.collector import Kind, ViolationCollector


@dataclass(frozen=True, slots=True)
class Finding:
    """The rows that break one rule. `message` words the case of one of them."""

    kind: Kind
    property: str
    rows: np.ndarray[Any, np.dtype[np.int64]]
    message: Callable[[int], str]


def check_values(type_: GraphType, rows: Rows, violations: ViolationCollector, *, partial: bool = False) -> None:
    """Report every rule of the type that single rows break.

    With `partial`, a property that a row does not mention may be missing: the row is merged into one that has it.
    """
    ids = rows.table.column("id")
    for finding in find_in_values(type_, rows.table):
        broken = finding.rows
        mentioned = rows.mentioned.get(property_column(finding.property))
        if partial and finding.kind is Kind.MISSING_VALUE and mentioned is not None:
            broken = broken[mentioned.to_numpy(zero_copy_only=False)[broken]]
        reported = rows.failed.get(property_column(finding.property))
        if reported:
            broken = broken[~np.isin(broken, list(reported))]

        def describe(row: int, finding: Finding = finding) -> Violation:
            place = rows.place(row)
            return Violation(
                finding.kind.value,
                type_.table_key,
                finding.message(row),
                row_id=ids[row].as_py(),
                property=finding.property,
                source=place.source,
                record=place.record,
            )

        violations.add_rows(finding.kind, type_.table_key, broken, describe, len(broken))


def check_missing(
    type_: GraphType, rows: Rows, mentioned: Mapping[str, pa.Array], violations: ViolationCollector
) -> None:
    """Report required values that rows still lack after they were merged into what is there.

    What a record `mentioned` has been checked already: a null or a value of the wrong type is reported there.
    """
    required = [p for p in type_.properties if not p.nullable and rows.table[p.column].null_count]
    for property_ in required:
        if property_.column not in mentioned:
            continue
        named = mentioned[property_.column].to_numpy(zero_copy_only=False)
        empty = _where(pc.is_null(rows.table[property_.column]))
        empty = empty[~named[empty]]

        def describe(row: int, property_: Property = property_) -> Violation:
            place = rows.place(row)
            return Violation(
                Kind.MISSING_VALUE.value,
                type_.table_key,
                messages.missing_property(property_),
                row_id=rows.table["id"][row].as_py(),
                property=property_.name,
                source=place.source,
                record=place.record,
            )

        violations.add_rows(Kind.MISSING_VALUE, type_.table_key, empty, describe, len(empty))


def find_in_values(type_: GraphType, table: pa.Table) -> Iterator[Finding]:
    """Every rule of the type that single rows of `table` break. Columns that are not there are not looked at."""
    present = set(table.column_names)
    for property_ in type_.properties:
        if property_.column in present:
            yield from find_in_property(property_, table.column(property_.column), key=property_.column in type_.key)
    if isinstance(type_, NodeType):
        for range_ in type_.ranges:
            if (column := property_column(range_.property)) in present:
                yield from find_out_of_range(range_, table.column(column))
        for check in type_.checks:
            if (column := property_column(check.property)) in present:
                yield from find_failed_checks(check, table.column(column))


def find_in_property(property_: Property, column: pa.ChunkedArray, *, key: bool = False) -> Iterator[Finding]:
    """Missing values, values outside the enum, nulls inside lists, numbers that are not finite."""
    name = property_.name
    if column.null_count and key:
        yield Finding(Kind.MISSING_KEY, name, _where(pc.is_null(column)), lambda row: messages.missing_key(name))
    elif column.null_count and not property_.nullable:
        missing = _where(pc.is_null(column))
        yield Finding(Kind.MISSING_VALUE, name, missing, lambda row: messages.missing_property(property_))
    match property_.type:
        case EnumType(values=allowed):
            yield from find_outside_enum(name, column, allowed)
        case ScalarType(scalar=scalar) if scalar in FLOATS:
            yield from _find_not_finite(name, column)
        case ListType() as type_:
            yield from _find_null_items(property_, column)
            if type_.item in FLOATS:
                yield from _find_not_finite_items(name, column)
        case VectorType():
            yield from _find_null_items(property_, column)
            yield from _find_not_finite_items(name, column)


def find_outside_enum(name: str, column: pa.ChunkedArray, allowed: tuple[str, ...]) -> Iterator[Finding]:
    """Text that is not one of the enum's values."""
    outside = pc.and_(pc.is_valid(column), pc.invert(pc.is_in(column, value_set=pa.array(allowed, column.type))))
    yield from _finding(Kind.ENUM, name, outside, lambda row: messages.not_in_enum(name, column[row].as_py(), allowed))


def find_out_of_range(rule: Range, column: pa.ChunkedArray) -> Iterator[Finding]:
    """Numbers below the low end or above the high end; both ends belong to the range."""
    outside = None
    if rule.low is not None:
        outside = _beyond(column, rule.low, below=True)
    if rule.high is not None:
        above = _beyond(column, rule.high, below=False)
        outside = above if outside is None else pc.or_(outside, above)
    if outside is not None:
        yield from _finding(
            Kind.RANGE, rule.property, outside, lambda row: messages.out_of_range(rule, column[row].as_py())
        )


def find_failed_checks(check: Check, column: pa.ChunkedArray) -> Iterator[Finding]:
    """Text that the pattern does not match as a whole."""
    yield from _finding(
        Kind.CHECK,
        check.property,
        pc.invert(pc.match_substring_regex(column, anchored_pattern(check.pattern))),
        lambda row: messages.check_failed(check.property, check.pattern, column[row].as_py()),
    )


def _beyond(column: pa.ChunkedArray, bound: int | float, *, below: bool) -> pa.ChunkedArray:
    """Where a value lies below (or above) the bound. Integers are compared as integers, so nothing is rounded."""
    compare = pc.less if below else pc.greater
    if not pa.types.is_integer(column.type):
        return compare(pc.cast(column, pa.float64()), pa.scalar(float(bound), pa.float64()))
    whole = math.ceil(bound) if below else math.floor(bound)
    low, high = _integer_limits(column.type)
    if low <= whole <= high:
        return compare(column, pa.scalar(whole, column.type))
    always = (whole > high) if below else (whole < low)
    return pc.and_(pc.is_valid(column), pa.scalar(always))


def _integer_limits(type_: pa.DataType) -> tuple[int, int]:
    if pa.types.is_unsigned_integer(type_):
        return 0, (1 << type_.bit_width) - 1
    return -(1 << (type_.bit_width - 1)), (1 << (type_.bit_width - 1)) - 1


def _find_not_finite(name: str, column: pa.ChunkedArray) -> Iterator[Finding]:
    yield from _finding(
        Kind.NOT_FINITE,
        name,
        pc.invert(pc.is_finite(column)),
        lambda row: messages.not_finite(name, column[row].as_py()),
    )


def _find_not_finite_items(name: str, column: pa.ChunkedArray) -> Iterator[Finding]:
    broken = _rows_of_items(column, lambda items: pc.invert(pc.is_finite(items)))
    if len(broken):
        yield Finding(Kind.NOT_FINITE, name, broken, lambda row: messages.not_finite(name, _odd_item(column[row])))


def _odd_item(value: pa.Scalar) -> Any:
    return next(item for item in value.as_py() if item is not None and not math.isfinite(item))


def _find_null_items(property_: Property, column: pa.ChunkedArray) -> Iterator[Finding]:
    broken = _rows_of_items(column, pc.is_null)
    if len(broken):
        yield Finding(
            Kind.WRONG_TYPE,
            property_.name,
            broken,
            lambda row: messages.wrong_type(property_.name, property_.type, column[row].as_py(), "an item is null"),
        )


def _rows_of_items(
    column: pa.ChunkedArray, broken: Callable[[pa.Array], pa.Array]
) -> np.ndarray[Any, np.dtype[np.int64]]:
    """The rows that hold an item for which `broken` is true."""
    found: list[np.ndarray[Any, np.dtype[np.int64]]] = []
    start = 0
    for chunk in column.chunks:
        items = _where(broken(pc.list_flatten(chunk)))
        if len(items):
            parents = pc.list_parent_indices(chunk).to_numpy(zero_copy_only=False)
            found.append(np.unique(parents[items].astype(np.int64)) + start)
        start += len(chunk)
    return np.concatenate(found) if found else np.empty(0, np.int64)


def _finding(
    kind: Kind, name: str, broken: pa.ChunkedArray | pa.Array, message: Callable[[int], str]
) -> Iterator[Finding]:
    rows = _where(broken)
    if len(rows):
        yield Finding(kind, name, rows, message)


def _where(mask: pa.ChunkedArray | pa.Array) -> np.ndarray[Any, np.dtype[np.int64]]:
    """The positions where a mask is true (null is not)."""
    if not pc.any(mask).as_py():
        return np.empty(0, np.int64)
    filled = pc.fill_null(mask, False)
    return np.flatnonzero(filled.to_numpy(zero_copy_only=False) if isinstance(filled, pa.Array) else filled.to_numpy())
