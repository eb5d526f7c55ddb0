"""The key columns of a load, kept for the checks across rows, with the place of each row in the input."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from omnigraph.schema.catalog import GraphType
from omnigraph.write.load.mapped_tables import MappedTables
from omnigraph.write.rows.row_columns import working_schema
from omnigraph.write.rows.rows import Rows
from omnigraph.write.validate.key_changes import RECORD, SOURCE, TableChange, key_columns

_SOURCE_TYPE = pa.dictionary(pa.int32(), pa.string())


def keys_of(type_: GraphType, rows: Rows, *, with_ids: bool = True) -> pa.Table:
    """The key columns of rows, with their places. Ids that were made up a moment ago need no check and can be left."""
    table = rows.table.select(list(key_columns(type_)))
    if not with_ids:
        table = table.set_column(0, table.schema.field(0), pa.nulls(rows.count, pa.string()))
    indices = pa.repeat(pa.scalar(0, pa.int32()), rows.count)
    source = pa.DictionaryArray.from_arrays(indices, pa.array([rows.source], pa.string()))
    records = rows.records if rows.records is not None else pa.nulls(rows.count, pa.int64())
    return table.append_column(SOURCE, source).append_column(RECORD, records)


def key_schema(type_: GraphType) -> pa.Schema:
    """The columns of `keys_of`."""
    fields = [working_schema(type_).field(name) for name in key_columns(type_)]
    return pa.schema([*fields, pa.field(SOURCE, _SOURCE_TYPE), pa.field(RECORD, pa.int64())])


class KeyCollector:
    """Collects the keys of one table as rows come in. `directory` is where they go when they are many."""

    def __init__(self, type_: GraphType, directory: Path) -> None:
        self.type = type_
        self._keys = MappedTables(directory)

    def add(self, rows: Rows, *, with_ids: bool = True) -> None:
        """Note the keys of some rows."""
        self._keys.add(keys_of(self.type, rows, with_ids=with_ids))

    def table(self) -> pa.Table:
        """All keys, in the order of the input."""
        found = self._keys.table()
        return found if found is not None else key_schema(self.type).empty_table()

    def change(self, *, replaces_all: bool = False, known_new: bool = False) -> TableChange:
        """The keys as the cross-row rules see them."""
        return TableChange(self.table(), replaces_all=replaces_all, known_new=known_new)
