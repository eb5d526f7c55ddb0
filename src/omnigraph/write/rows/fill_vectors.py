"""Vectors for rows that are being written: where a row has the text of an `@embed` property and not its vector.

A function on the decoded rows of one table, so it means the same in a load, a mutation and a Spark task. The provider
is looked for, and asked, only when a row wants a vector and nothing is wrong with the rows by themselves: until then
zeros stand in, so that a vector that will be made is not reported as missing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.embed.text_vectors import TextVectors
from omnigraph.schema.catalog import GraphType, Property
from omnigraph.schema.types import VectorType
from omnigraph.write.rows.rows import Rows
from omnigraph.write.validate.collector import ViolationCollector
from omnigraph.write.validate.key_changes import one_array
from omnigraph.write.validate.value_rules import check_values

VectorSource = Callable[[], TextVectors | None]
"""Finds what makes the vectors; None when there is nothing that does."""

Wanting = Mapping[str, np.ndarray[Any, np.dtype[np.int64]]]
"""By the name of an `@embed` property, the rows that want its vector."""


def check_and_fill(type_: GraphType, rows: Rows, source: VectorSource, violations: ViolationCollector) -> Rows:
    """Report every rule that single rows break; when there is none, rows that are new get their vectors."""
    wanting = rows_wanting(type_, rows.table)
    vectors = source() if wanting else None
    if vectors is None:
        check_values(type_, rows, violations)
        return rows
    check_values(type_, rows.with_table(with_stand_ins(type_, rows.table, wanting)), violations)
    return rows if violations else rows.with_table(with_vectors(type_, rows.table, wanting, vectors))


def check_partial(type_: GraphType, rows: Rows, source: VectorSource, violations: ViolationCollector) -> None:
    """Report every rule that single rows break which are merged into others; a vector that will be made is none."""
    wanting = rows_wanting(type_, rows.table)
    table = with_stand_ins(type_, rows.table, wanting) if wanting and source() is not None else rows.table
    check_values(type_, rows.with_table(table), violations, partial=True)


def rows_wanting(
    type_: GraphType, table: pa.Table, is_set: Callable[[str], np.ndarray[Any, np.dtype[np.bool_]] | None] | None = None
) -> Wanting:
    """The rows that have a text and no vector of it. `is_set`: per column the rows where this write sets it (None: all
    of them); only a row whose text or vector is set wants anything."""
    found: dict[str, np.ndarray[Any, np.dtype[np.int64]]] = {}
    for property_ in type_.properties:
        if property_.embed is None or not table[property_.column].null_count:
            continue
        text = type_.by_name[property_.embed.source].column
        wants = pc.and_(pc.is_null(table[property_.column]), pc.is_valid(table[text])).to_numpy()
        if is_set is not None:
            text_set, vector_set = is_set(text), is_set(property_.column)
            if text_set is not None and vector_set is not None:
                wants = wants & (text_set | vector_set)
        if wants.any():
            found[property_.name] = np.flatnonzero(wants)
    return found


def with_stand_ins(type_: GraphType, table: pa.Table, wanting: Wanting) -> pa.Table:
    """The rows with zeros for the vectors that they want."""
    for name, rows in wanting.items():
        property_, dim = type_.by_name[name], _dim(type_.by_name[name])
        table = _with_column(table, property_, rows, np.zeros((len(rows), dim), np.float32))
    return table


def with_vectors(type_: GraphType, table: pa.Table, wanting: Wanting, vectors: TextVectors) -> pa.Table:
    """The rows with the vectors that they want."""
    for name, rows in wanting.items():
        property_ = type_.by_name[name]
        assert property_.embed is not None
        texts = table[type_.by_name[property_.embed.source].column].take(pa.array(rows)).to_pylist()
        ids = table["id"].take(pa.array(rows)).to_pylist()
        names = [f"`{property_.embed.source}` of {type_.name} `{id_}`" for id_ in ids]
        made = vectors.make(texts, dim=_dim(property_), model=property_.embed.model, named=names.__getitem__)
        table = _with_column(table, property_, rows, made)
    return table


def vector_array(matrix: np.ndarray[Any, Any], dim: int) -> pa.Array:
    """The rows of a matrix as vectors."""
    numbers = pa.array(np.ascontiguousarray(matrix, np.float32).reshape(-1), pa.float32())
    return pa.FixedSizeListArray.from_arrays(numbers, type=pa.list_(pa.float32(), dim))


def _with_column(
    table: pa.Table, property_: Property, rows: np.ndarray[Any, np.dtype[np.int64]], matrix: np.ndarray[Any, Any]
) -> pa.Table:
    position = table.schema.get_field_index(property_.column)
    field = table.schema.field(position)
    both = pa.concat_arrays(
        [one_array(table[property_.column]), vector_array(matrix, _dim(property_)).cast(field.type)]
    )
    chosen = np.arange(table.num_rows)
    chosen[rows] = table.num_rows + np.arange(len(rows))
    return table.set_column(position, field, both.take(pa.array(chosen)))


def _dim(property_: Property) -> int:
    assert isinstance(property_.type, VectorType)
    return property_.type.dim
