"""Decoded rows of one table that wait until the whole input is known; on disk when they are many."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.ipc

from omnigraph.write.rows.rows import Rows

IN_MEMORY_BYTES = 16 << 20
"""Rows of one table up to this size wait in memory."""


class RowsSpool:
    """Keeps rows in the order in which they came. Goes with its temporary directory."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._waiting: list[Rows] = []
        self._files: list[Path] = []
        self._bytes = 0

    def add(self, rows: Rows) -> None:
        """Keep some rows."""
        self._waiting.append(rows)
        self._bytes += rows.table.nbytes
        if self._bytes > IN_MEMORY_BYTES:
            self._spill()

    def __iter__(self) -> Iterator[Rows]:
        for file in self._files:
            yield from _read(file)
        yield from self._waiting

    def _spill(self) -> None:
        for rows in self._waiting:
            with tempfile.NamedTemporaryFile(dir=self._directory, suffix=".arrow", delete=False) as file:
                _write(file, rows)
                self._files.append(Path(file.name))
        self._waiting, self._bytes = [], 0


def _write(file: Any, rows: Rows) -> None:
    table = rows.table
    for name, mask in rows.mentioned.items():
        table = table.append_column(f"?{name}", mask)
    if rows.records is not None:
        table = table.append_column("?", rows.records)
    metadata = {b"table_key": rows.table_key.encode(), b"source": (rows.source or "").encode()}
    table = table.replace_schema_metadata(metadata)
    with pa.ipc.new_file(file, table.schema, options=pa.ipc.IpcWriteOptions(compression="lz4")) as writer:
        writer.write_table(table)


def _read(path: Path) -> Iterator[Rows]:
    with pa.memory_map(str(path)) as file:
        table = pa.ipc.open_file(file).read_all()
    metadata = table.schema.metadata
    columns = [name for name in table.column_names if not name.startswith("?")]
    mentioned = {
        name[1:]: table[name].combine_chunks() for name in table.column_names if name.startswith("?") and name != "?"
    }
    records = table["?"].combine_chunks() if "?" in table.column_names else None
    yield Rows(
        metadata[b"table_key"].decode(),
        table.select(columns).replace_schema_metadata(None),
        metadata[b"source"].decode() or None,
        records,
        mentioned,
    )
