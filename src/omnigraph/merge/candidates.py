"""Which rows can differ between two versions of a table, found from row lineage: the cost follows the change.

The answer is a superset: rows whose edits cancel out, or that were written again with equal values, are in it too.
Comparing the rows themselves (`rows.py`) makes it exact.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import HistoryGap
from omnigraph.ledger.values import WriterKind
from omnigraph.merge.lines import Stretch, stretches_between
from omnigraph.storage.values import TableVersion

if TYPE_CHECKING:
    from omnigraph.ledger.store import GraphStore

_MAY_RESTORE = (WriterKind.RECOVERY, WriterKind.REPAIR)


def candidate_ids(store: GraphStore, left: TableVersion, right: TableVersion) -> pa.ChunkedArray | None:
    """Ids of the rows that may differ, each once; None when lineage cannot tell and everything must be compared."""
    if left == right:
        return pa.chunked_array([pa.array([], pa.utf8())])
    one_line = left.branch == right.branch
    forks = {} if one_line else {fork.name: fork for fork in store.tables.list_forks(left.location)}
    if one_line:
        low, high = sorted((left.version, right.version))
        stretches: list[Stretch] | None = [Stretch(left.branch, low, high)]
    else:
        stretches = stretches_between(left, right, forks)
    if stretches is None:
        return None
    restores = any(commit.kind in _MAY_RESTORE for commit in store.commits.graph())
    try:
        chunks = [chunk for s in stretches for chunk in _changed_ids(store, left.location, s, restores).chunks]
    except (HistoryGap, _Restored):
        return None
    return pa.chunked_array([pc.unique(pa.chunked_array(chunks, pa.utf8()))], pa.utf8())


class _Restored(Exception):
    """A restore lies on the way: it takes updates back without leaving a trace in the lineage of rows."""


def _changed_ids(store: GraphStore, location: str, stretch: Stretch, check_restores: bool) -> pa.ChunkedArray:
    if check_restores and any(
        transaction.kind in ("Restore", "Unreadable") and transaction.changes_content is not False
        for transaction in store.tables.transactions(location, stretch.line, stretch.begin, stretch.end)
    ):
        raise _Restored
    delta = store.tables.delta(location, stretch.line, stretch.begin, stretch.end)
    chunks: list[pa.Array] = []
    for reader in (delta.inserted, delta.updated):
        chunks += [batch.column("id") for batch in reader]
    before = TableVersion(location, stretch.line, stretch.begin)
    for batch in delta.deleted_row_ids:
        if batch.num_rows:
            rows = store.tables.take_rows(before, batch.column("_rowid"), ["id"])
            chunks += rows.column("id").chunks
    return pa.chunked_array(chunks, pa.utf8())
