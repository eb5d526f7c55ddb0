"""Batches of columns of a bounded size: rows may be wide, and what is decoded at once is held several times over."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet

from omnigraph.storage.reading.fitting_batches import pieces

ROWS_PER_BATCH = 65_536
BYTES_PER_BATCH = 64 << 20
"""Beyond this, a batch has fewer rows."""

_READ_AT_ONCE = 8 << 20


def bounded(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same rows; batches of many bytes in pieces."""
    for batch in batches:
        yield from pieces(batch, BYTES_PER_BATCH)


def open_parquet(source: Any) -> pyarrow.parquet.ParquetFile:
    """A Parquet file to read from its beginning to its end.

    Not buffered ahead: Arrow would keep all that it has read until the last row. Columns of a group of rows that are
    large are read piece by piece, others as a whole.
    """
    parquet = pyarrow.parquet.ParquetFile(source, pre_buffer=False)
    if max(_bytes_of_groups(parquet.metadata, None, None), default=0) <= BYTES_PER_BATCH:
        return parquet
    return pyarrow.parquet.ParquetFile(source, metadata=parquet.metadata, pre_buffer=False, buffer_size=_READ_AT_ONCE)


def parquet_batches(
    parquet: pyarrow.parquet.ParquetFile, groups: Sequence[int] | None = None, columns: Sequence[str] | None = None
) -> Iterator[pa.RecordBatch]:
    """Some columns of some groups of rows, by default all. The file tells how wide rows are, dictionaries aside."""
    chosen = range(parquet.metadata.num_row_groups) if groups is None else groups
    sizes = _bytes_of_groups(parquet.metadata, chosen, columns)
    counts = (parquet.metadata.row_group(group).num_rows for group in chosen)
    rows = min(map(_rows_within, sizes, counts), default=ROWS_PER_BATCH)
    yield from bounded(parquet.iter_batches(batch_size=rows, row_groups=list(chosen), columns=columns))


def _bytes_of_groups(metadata: Any, groups: Iterable[int] | None, columns: Sequence[str] | None) -> Iterator[int]:
    """The bytes of each group of rows, in columns whose path begins with one of the names."""
    for number in range(metadata.num_row_groups) if groups is None else groups:
        group = metadata.row_group(number)
        if columns is None:
            yield int(group.total_byte_size)
            continue
        parts = (group.column(place) for place in range(group.num_columns))
        wanted = (part for part in parts if part.path_in_schema.split(".")[0] in columns)
        yield sum(part.total_uncompressed_size for part in wanted)


def _rows_within(size: int, rows: int) -> int:
    return max(1, min(ROWS_PER_BATCH, BYTES_PER_BATCH * rows // max(size, 1)))
