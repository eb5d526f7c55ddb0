"""What a merge compares with: the best common ancestor, row by row where a criss-cross left several.

With several best ancestors no single one is right: a row may have been merged one way in one and another way in the
other. So each row gets a base of its own, by merging the ancestors' versions of it over their own common ancestors, as
deep as needed. Where that collides the base is unknown, and a row that differs on both sides is a conflict.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from omnigraph.ledger.history import merge_bases
from omnigraph.ledger.snapshots import get_commit, of_commit, table_of
from omnigraph.ledger.values import Snapshot
from omnigraph.merge.images import digest_rows
from omnigraph.schema.catalog import GraphType

if TYPE_CHECKING:
    from omnigraph.ledger.store import GraphStore

Row = dict[str, Any] | None


class Unknown:
    """The base of a row that the common ancestors themselves disagree about."""


UNKNOWN: Final = Unknown()


def base_snapshots(store: GraphStore, left: str, right: str) -> list[Snapshot]:
    """The states of the best common ancestors of two commits, the newest first."""
    graph = store.commits.graph()
    return [of_commit(store, get_commit(store, base)) for base in merge_bases(graph, left, right)]


class VirtualBase:
    """Bases of single rows of one table, over several common ancestors."""

    def __init__(self, store: GraphStore, type_: GraphType, bases: Sequence[Snapshot], ids: pa.ChunkedArray) -> None:
        self._store = store
        self._type = type_
        self._bases = [base.head.graph_commit_id for base in bases]
        self._ids = ids
        self._rows: dict[str, Mapping[str, dict[str, Any]]] = {}

    def row(self, row_id: str) -> Row | Unknown:
        """The base of one row; None when it did not exist."""
        return self._merged(tuple(self._bases), row_id)

    def _merged(self, commits: tuple[str, ...], row_id: str) -> Row | Unknown:
        """The row of several commits, merged one after the other."""
        current: Row | Unknown = self._row_at(commits[0], row_id)
        for position, commit in enumerate(commits[1:], start=1):
            if isinstance(current, Unknown):
                return UNKNOWN
            other = self._row_at(commit, row_id)
            if current == other:
                continue
            older = merge_bases(self._store.commits.graph(), commits[position - 1], commit)
            base = self._merged(older, row_id) if older else None
            if base == other:
                continue
            current = other if base == current else UNKNOWN
        return current

    def _row_at(self, commit: str, row_id: str) -> Row:
        if commit not in self._rows:
            state = of_commit(self._store, get_commit(self._store, commit))
            pin = state.tables.get(self._type.table_key)
            self._rows[commit] = {} if pin is None else digest_rows(self._store, table_of(pin), self._type, self._ids)
        return self._rows[commit].get(row_id)
