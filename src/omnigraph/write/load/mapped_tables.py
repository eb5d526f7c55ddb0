"""Columns of a load that wait until the whole input is known, for the checks across rows.

Up to a size they wait in memory; beyond it they lie in temporary files that are mapped, so that the system can take the
memory back, and whoever reads them goes through them in parts.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.ipc

IN_MEMORY_BYTES = 16 << 20
"""Columns of one table up to this size wait in memory. Writing them out costs little: they are read right after."""


class MappedTables:
    """Tables of one schema, put together in the order in which they came. `directory` is where they go when large."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._parts: list[pa.Table] = []
        self._spilled: list[Path] = []
        self._bytes = 0

    def add(self, table: pa.Table) -> None:
        """Keep some rows."""
        self._parts.append(table)
        self._bytes += table.nbytes
        if self._bytes > IN_MEMORY_BYTES:
            self._spill()

    def table(self) -> pa.Table | None:
        """All rows; None when there were no tables."""
        parts = [_mapped(path) for path in self._spilled] + self._parts
        return pa.concat_tables(parts).unify_dictionaries() if parts else None

    def _spill(self) -> None:
        table = pa.concat_tables(self._parts).unify_dictionaries()
        with tempfile.NamedTemporaryFile(dir=self._directory, suffix=".keys", delete=False) as file:
            with pa.ipc.new_file(file, table.schema) as writer:
                writer.write_table(table)
            self._spilled.append(Path(file.name))
        self._parts, self._bytes = [], 0


def _mapped(path: Path) -> pa.Table:
    return pa.ipc.open_file(pa.memory_map(str(path))).read_all()
