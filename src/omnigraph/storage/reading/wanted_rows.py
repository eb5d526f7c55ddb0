"""The rows of a stream whose value is one of very many.

A test of membership hashes all wanted values anew, so it is made for parts of the stream that are as large as is good
for memory.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.storage.constants import SCANNED_PART_BYTES, SCANNED_TIMES_THE_IDS

_FEWEST_ROWS = 65_536


def members(reader: pa.RecordBatchReader, column: str, wanted: pa.Array) -> pa.Table:
    """The rows whose `column` is one of the wanted values."""
    kept = [part.filter(pc.is_in(part[column], value_set=wanted)) for part in in_parts(reader, len(wanted))]
    return pa.concat_tables([*kept, reader.schema.empty_table()])


def in_parts(reader: pa.RecordBatchReader, wanted: int) -> Iterator[pa.Table]:
    """A stream in parts of as many rows as values are wanted at least, and of several times as many while that is
    little."""
    held: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in reader:
        held.append(batch)
        rows += batch.num_rows
        size += batch.nbytes
        enough = wanted if size >= SCANNED_PART_BYTES else SCANNED_TIMES_THE_IDS * wanted
        if rows >= max(_FEWEST_ROWS, enough):
            yield pa.Table.from_batches(held)
            held, rows, size = [], 0, 0
    if held:
        yield pa.Table.from_batches(held)
