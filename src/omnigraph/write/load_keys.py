"""The key columns of a load, kept for the checks across rows, with the place of each row in the input."""

from __future__ import annotations

import pyarrow as pa

from omnigraph.schema.catalog import GraphType
from omnigraph.write.columns import working_schema
from omnigraph.write.rows import Rows
from omnigraph.write.validate.changes import RECORD, SOURCE, TableChange, key_columns

_SOURCE_TYPE = pa.dictionary(pa.int32(), pa.string())


def keys_of(type_: GraphType, rows: Rows) -> pa.Table:
    """The key columns of rows, with their places."""
    table = rows.table.select(list(key_columns(type_)))
    indices = pa.repeat(pa.scalar(0, pa.int32()), rows.count)
    source = pa.DictionaryArray.from_arrays(indices, pa.array([rows.source], pa.string()))
    records = rows.records if rows.records is not None else pa.nulls(rows.count, pa.int64())
    return table.append_column(SOURCE, source).append_column(RECORD, records)


def key_schema(type_: GraphType) -> pa.Schema:
    """The columns of `keys_of`."""
    fields = [working_schema(type_).field(name) for name in key_columns(type_)]
    return pa.schema([*fields, pa.field(SOURCE, _SOURCE_TYPE), pa.field(RECORD, pa.int64())])


class KeyCollector:
    """Collects the keys of one table as rows come in."""

    def __init__(self, type_: GraphType) -> None:
        self.type = type_
        self._parts: list[pa.Table] = []

    def add(self, rows: Rows) -> None:
        """Note the keys of some rows."""
        self._parts.append(keys_of(self.type, rows))

    def table(self) -> pa.Table:
        """All keys, in the order of the input."""
        if not self._parts:
            return key_schema(self.type).empty_table()
        return pa.concat_tables(self._parts).unify_dictionaries()

    def change(self, *, replaces_all: bool = False, known_new: bool = False) -> TableChange:
        """The keys as the cross-row rules see them."""
        return TableChange(self.table(), replaces_all=replaces_all, known_new=known_new)
