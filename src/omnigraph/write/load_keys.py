"""The key columns of a load, kept for the checks across rows, with the place of each row in the input.

Up to a size they wait in memory; beyond it they lie in a temporary file that is mapped, so that the system can take the
memory back, and the checks go through them in parts.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.ipc

from omnigraph.schema.catalog import GraphType
from omnigraph.write.columns import working_schema
from omnigraph.write.rows import Rows
from omnigraph.write.validate.changes import RECORD, SOURCE, TableChange, key_columns

IN_MEMORY_BYTES = 16 << 20
"""Key columns of one table up to this size wait in memory. Writing them out costs little: they are read right after."""

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
        self._directory = directory
        self._parts: list[pa.Table] = []
        self._spilled: list[Path] = []
        self._bytes = 0

    def add(self, rows: Rows, *, with_ids: bool = True) -> None:
        """Note the keys of some rows."""
        keys = keys_of(self.type, rows, with_ids=with_ids)
        self._parts.append(keys)
        self._bytes += keys.nbytes
        if self._bytes > IN_MEMORY_BYTES:
            self._spill()

    def table(self) -> pa.Table:
        """All keys, in the order of the input."""
        parts = [_mapped(path) for path in self._spilled] + self._parts
        if not parts:
            return key_schema(self.type).empty_table()
        return pa.concat_tables(parts).unify_dictionaries()

    def change(self, *, replaces_all: bool = False, known_new: bool = False) -> TableChange:
        """The keys as the cross-row rules see them."""
        return TableChange(self.table(), replaces_all=replaces_all, known_new=known_new)

    def _spill(self) -> None:
        table = pa.concat_tables(self._parts).unify_dictionaries()
        with tempfile.NamedTemporaryFile(dir=self._directory, suffix=".keys", delete=False) as file:
            with pa.ipc.new_file(file, table.schema) as writer:
                writer.write_table(table)
            self._spilled.append(Path(file.name))
        self._parts, self._bytes = [], 0


def _mapped(path: Path) -> pa.Table:
    return pa.ipc.open_file(pa.memory_map(str(path))).read_all()
