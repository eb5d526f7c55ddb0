"""Which rows can differ between two versions of a table, found from row lineage: the cost follows the change.

The answer is a superset: rows whose edits cancel out, or that were written again with equal values, are in it too.
Comparing the rows themselves (`rows.py`) makes it exact.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import pyarrow as pa

from omnigraph.errors import HistoryGap
from omnigraph.ledger.history.dag import CommitGraph
from omnigraph.ledger.values import WriterKind
from omnigraph.merge.compare.lines import Stretch, stretches_between
from omnigraph.merge.compare.relational import RowEngine
from omnigraph.storage.values import TableVersion

if TYPE_CHECKING:
    from omnigraph.ledger.store import GraphStore

CANDIDATES = "candidates"
"""The relation of the row engine that holds the ids, each once."""

_MAY_RESTORE = (WriterKind.RECOVERY, WriterKind.REPAIR, WriterKind.RESTORE, WriterKind.REVERT)
_restores: WeakKeyDictionary[CommitGraph, tuple[int, bool]] = WeakKeyDictionary()


def collect_candidates(
    store: GraphStore, engine: RowEngine, pairs: Sequence[tuple[TableVersion, TableVersion]]
) -> int | None:
    """Put the ids of rows that may differ within one of the pairs into `CANDIDATES`; how many there are.

    None when lineage cannot tell, and everything has to be compared.
    """
    engine.execute("create temp table candidate_pieces (id varchar)")
    try:
        for left, right in pairs:
            for piece in _changed_between(store, left, right):
                engine.add_table("piece", pa.table({"id": piece}))
                engine.execute("insert into candidate_pieces select id from piece")
    except (HistoryGap, _NoLineage):
        return None
    engine.execute(f"create temp table {CANDIDATES} as select distinct id from candidate_pieces")
    engine.execute("drop table candidate_pieces")
    return engine.count(CANDIDATES)


class _NoLineage(Exception):
    """The lines do not meet, or a restore lies on the way."""


def _changed_between(store: GraphStore, left: TableVersion, right: TableVersion) -> Iterator[pa.Array]:
    if left == right:
        return
    if left.location != right.location:
        raise _NoLineage
    if left.branch == right.branch:
        low, high = sorted((left.version, right.version))
        stretches: list[Stretch] | None = [Stretch(left.branch, low, high)]
    else:
        forks = {fork.name: fork for fork in store.tables.list_forks(left.location)}
        stretches = stretches_between(left, right, forks)
    if stretches is None:
        raise _NoLineage
    for stretch in stretches:
        if has_restore(store, left.location, stretch):
            raise _NoLineage
        yield from _changed_ids(store, left.location, stretch)


def has_restore(store: GraphStore, location: str, stretch: Stretch) -> bool:
    """Whether a restore may lie on a stretch: it takes updates back without a trace in the lineage."""
    return _may_have_restored(store.commits.graph()) and any(
        transaction.kind in ("Restore", "Unreadable") and transaction.changes_content is not False
        for transaction in store.tables.transactions(location, stretch.line, stretch.begin, stretch.end)
    )


def _may_have_restored(graph: CommitGraph) -> bool:
    """Whether anything was ever restored. Looks at each commit once, however often it is asked."""
    seen, found = _restores.get(graph, (0, False))
    ids = graph.ids()
    if not found and len(ids) > seen:
        fresh = (graph.get(commit_id) for commit_id in ids[seen:])
        found = any(commit is not None and commit.kind in _MAY_RESTORE for commit in fresh)
    _restores[graph] = (len(ids), found)
    return found


def _changed_ids(store: GraphStore, location: str, stretch: Stretch) -> Iterator[pa.Array]:
    delta = store.tables.delta(location, stretch.line, stretch.begin, stretch.end)
    for reader in (delta.inserted, delta.updated):
        for batch in reader:
            yield batch.column("id")
    before = TableVersion(location, stretch.line, stretch.begin)
    for batch in delta.deleted_row_ids:
        if batch.num_rows:
            yield from store.tables.take_rows(before, batch.column("_rowid"), ["id"]).column("id").chunks
