"""Rows of a table whose vectors are small enough to be kept: read once, then every exact search is arithmetic.

What is kept counts against the one budget of all reads and belongs to one state of the table. A column that has no
room there is read as a stream for each search.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from omnigraph.query import ir
from omnigraph.query.predicates import leaves
from omnigraph.read.search.searched import Searched
from omnigraph.read.state.run_state import Run
from omnigraph.read.tables.values import holds, true_mask

STRETCH = 16_384
"""So many rows at a time."""


def kept_rows(run: Run, searched: Searched, predicate: ir.Expr | None) -> Iterator[pa.RecordBatch] | None:
    """Ids and vectors of the rows for which the predicate is true, in the table's own order; None: there is no room."""
    table_key = searched.table_key
    asked = {leaf.column for leaf in leaves(predicate) if isinstance(leaf, ir.Prop)} if predicate is not None else set()
    wanted = ["id", searched.column, *sorted(asked - {"id", searched.column})]
    if not all(run.caches.has_room_for(run.reader, table_key, name) for name in wanted):
        return None
    columns = {name: run.caches.column(run.reader, table_key, name) for name in wanted}
    count = len(columns["id"])
    if predicate is None:
        places = np.arange(count)
    else:
        places = np.flatnonzero(true_mask(holds(predicate, count, columns.__getitem__)))
    return (
        pa.RecordBatch.from_arrays([columns[name].take(pa.array(part)) for name in wanted[:2]], names=wanted[:2])
        for part in (places[start : start + STRETCH] for start in range(0, len(places), STRETCH))
    )
