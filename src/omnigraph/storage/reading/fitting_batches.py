"""Batches that fit: an Arrow text column ends at 2 GB, and Lance asked for more rows than that fails in the middle.

How large rows are is not known before they are read, since what is stored is compressed. So a read begins with as many
rows at once as are good for small ones, and one that fails for their size goes on with few.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa

from omnigraph.errors import StorageError

LANCE_ROWS = 8192
"""Rows of a batch when nobody says how many."""

_FEWER = 128
_SIGN = "Offset overflow error"

Batches = Iterator[pa.RecordBatch]


def fitting(batches: Batches, rows: int | None, go_on: Callable[[int, int], Batches]) -> Batches:
    """The batches of a read; `go_on` reads again with so many rows at once, behind those that were given."""
    at_once, given = rows or LANCE_ROWS, 0
    while True:
        try:
            for batch in batches:
                given += batch.num_rows
                yield batch
            return
        except StorageError as error:
            if _SIGN not in error.message or at_once == 1:
                raise
        at_once = max(1, at_once // _FEWER)
        batches = go_on(at_once, given)


def pieces(batch: pa.RecordBatch, most_bytes: int) -> Iterator[pa.RecordBatch]:
    """A batch in parts of about so many bytes, for whoever cannot take it at once."""
    count = min(-(-batch.nbytes // most_bytes), batch.num_rows)
    if count < 2:
        yield batch
        return
    step = -(-batch.num_rows // count)
    for start in range(0, batch.num_rows, step):
        yield batch.slice(start, step)
