"""Rows merged into rows: what an upsert makes of a record that names only some of the properties.

The same meaning serves `insert` on an existing key and a load with mode merge, in process and in Spark tasks: a
property that is named wins, one that is not named keeps its value, and a row that is new gets defaults.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.schema.catalog import GraphType, Property
from omnigraph.write.decode.values import to_value
from omnigraph.write.rows import Rows
from omnigraph.write.validate.changes import one_array
from omnigraph.write.validate.duplicates import has_repeats

Positions = np.ndarray[Any, np.dtype[np.int64]]


def fill_defaults(type_: GraphType, rows: Rows) -> Rows:
    """Rows that are new: properties that a row does not mention get their default, if they have one."""
    table = rows.table
    for property_ in type_.properties:
        mentioned = rows.mentioned.get(property_.column)
        if property_.has_default and mentioned is not None:
            table = _replaced(table, property_.column, _defaulted(property_, table[property_.column], mentioned))
    return rows.with_table(table) if table is not rows.table else rows


def _defaulted(property_: Property, column: pa.ChunkedArray, keep: pa.Array) -> pa.Array:
    default = pa.array([to_value(property_.type, property_.default)], column.type)
    values = pa.concat_arrays([one_array(column), default])
    kept = keep.to_numpy(zero_copy_only=False)
    return values.take(pa.array(np.where(kept, np.arange(len(column)), len(column))))


def collapse(type_: GraphType, rows: Rows) -> Rows:
    """One row per id, in the order of first appearance: later rows win, property by property that they mention."""
    ids = rows.table["id"]
    if not has_repeats(ids):
        return rows
    codes = pc.dictionary_encode(one_array(ids)).indices.to_numpy(zero_copy_only=False).astype(np.int64)
    order = np.argsort(codes, kind="stable")
    starts = np.flatnonzero(np.r_[True, np.diff(codes[order]) != 0])
    last = np.maximum.reduceat(order, starts)
    columns: list[pa.Array] = []
    mentioned: dict[str, pa.Array] = {}
    for field in rows.table.schema:
        mask = rows.mentioned.get(field.name)
        chosen = last
        if mask is not None:
            positions = np.where(mask.to_numpy(zero_copy_only=False)[order], order, -1)
            best = np.maximum.reduceat(positions, starts)
            chosen = np.where(best >= 0, best, last)
            if bool((best < 0).any()):
                mentioned[field.name] = pa.array(best >= 0)
        columns.append(one_array(rows.table[field.name]).take(pa.array(chosen)))
    # Where a row is reported, it is the last one that is meant.
    records = None if rows.records is None else rows.records.take(pa.array(last))
    table = pa.table(columns, schema=rows.table.schema)
    return Rows(rows.table_key, table, rows.source, records, mentioned)


def overlay(type_: GraphType, existing: pa.Table, rows: Rows) -> tuple[Rows, Positions]:
    """Rows (one per id) as they are after the write, and per row its position in `existing`, -1 for a new one.

    `existing` has every column of the table and may be in any order.
    """
    ids = one_array(rows.table["id"])
    match = _positions(ids, existing)
    if bool((match < 0).all()):
        return fill_defaults(type_, rows), match
    columns: list[pa.Array] = []
    for field in rows.table.schema:
        column = one_array(rows.table[field.name])
        mask = rows.mentioned.get(field.name)
        if mask is None:
            columns.append(column)
            continue
        keep = mask.to_numpy(zero_copy_only=False)
        property_ = type_.by_column[field.name]
        if property_.has_default:
            column = _defaulted(property_, rows.table[field.name], pa.array(keep | (match >= 0)))
        both = pa.concat_arrays([column, one_array(existing[field.name]).cast(field.type)])
        own = np.arange(len(ids))
        columns.append(both.take(pa.array(np.where(keep | (match < 0), own, len(ids) + match))))
    merged = Rows(rows.table_key, pa.table(columns, schema=rows.table.schema), rows.source, rows.records)
    return merged, match


def changed_rows(rows: pa.Table, existing: pa.Table, match: Positions) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Which rows differ from the existing row at their matched position; a row without one is a change."""
    changed = match < 0
    old = np.flatnonzero(~changed)
    if not len(old):
        return changed
    positions, partners = pa.array(old), pa.array(match[old])
    differs = np.zeros(len(old), dtype=bool)
    for name in rows.column_names:
        left = one_array(rows[name]).take(positions)
        right = one_array(existing[name]).cast(left.type).take(partners)
        differs |= _differs(left, right)
    changed[old] = differs
    return changed


def _differs(left: pa.Array, right: pa.Array) -> np.ndarray[Any, np.dtype[np.bool_]]:
    if pa.types.is_nested(left.type):
        # Arrow compares no lists; the few rows that get here are compared one by one.
        return np.array([not one.equals(other) for one, other in zip(left, right)], dtype=bool)
    unequal = pc.fill_null(pc.not_equal(left, right), False)
    mask = pc.or_(unequal, pc.xor(pc.is_null(left), pc.is_null(right)))
    return np.asarray(mask.to_numpy(zero_copy_only=False), dtype=bool)


def _positions(ids: pa.Array, existing: pa.Table) -> Positions:
    if not existing.num_rows or not len(ids):
        return np.full(len(ids), -1, np.int64)
    found = pc.index_in(ids, value_set=one_array(existing["id"]))
    return np.asarray(pc.fill_null(found, -1).to_numpy(zero_copy_only=False), dtype=np.int64)


def _replaced(table: pa.Table, name: str, column: pa.Array) -> pa.Table:
    position = table.schema.get_field_index(name)
    return table.set_column(position, table.schema.field(position), column)


def only(rows: Rows, keep: np.ndarray[Any, np.dtype[np.bool_]]) -> Rows:
    """Some of the rows."""
    return rows if bool(keep.all()) else rows.take(pa.array(np.flatnonzero(keep)))
