"""What a merge compares with: the best common ancestor, row by row where a criss-cross left several.

With several best ancestors no single one is right: a row may have been merged one way in one and another way in the
other. So each row gets a base of its own, by merging the ancestors' versions of it over their own common ancestors, as
deep as needed. Where that collides, or where an old state is gone, the base is unknown, and a row that differs on both
sides is a conflict.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from omnigraph.errors import HistoryGap, NotFound
from omnigraph.ledger.history.dag import is_ancestor, merge_bases
from omnigraph.ledger.snapshots import get_commit, of_commit, table_of
from omnigraph.ledger.values import Snapshot
from omnigraph.merge.compare.images import digest_rows
from omnigraph.merge.compare.schema_view import view_of
from omnigraph.schema.catalog import GraphType
from omnigraph.storage.lance_errors import TableNotFound

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


def same_row(left: Row, right: Row) -> bool:
    """Whether two rows have equal values; a NaN equals a NaN."""
    if left is None or right is None:
        return left is right
    return left.keys() == right.keys() and all(_same_value(value, right[name]) for name, value in left.items())


def _same_value(left: Any, right: Any) -> bool:
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(_same_value(a, b) for a, b in zip(left, right))
    return bool(left == right or (left != left and right != right))


class VirtualBase:
    """Bases of single rows of one table, over several common ancestors."""

    def __init__(self, store: GraphStore, type_: GraphType, bases: Sequence[Snapshot], ids: pa.Array) -> None:
        self._store = store
        self._type = type_
        self._bases = tuple(base.head.graph_commit_id for base in bases)
        self._ids = ids
        self._rows: dict[str, Mapping[str, dict[str, Any]] | None] = {}
        self._older: dict[tuple[str, ...], tuple[str, ...]] = {}

    def row(self, row_id: str) -> Row | Unknown:
        """The base of one row; None when it did not exist."""
        return self._merged(self._bases, row_id)

    def _merged(self, commits: tuple[str, ...], row_id: str) -> Row | Unknown:
        """The row of several commits, merged one after the other."""
        current = self._row_at(commits[0], row_id)
        for position in range(1, len(commits)):
            other = self._row_at(commits[position], row_id)
            if isinstance(current, Unknown) or isinstance(other, Unknown):
                return UNKNOWN
            if same_row(current, other):
                continue
            older = self._best_common(commits[: position + 1])
            base = self._merged(older, row_id) if older else None
            if isinstance(base, Unknown):
                return UNKNOWN
            if same_row(base, other):
                continue
            current = other if same_row(base, current) else UNKNOWN
        return current

    def _best_common(self, commits: tuple[str, ...]) -> tuple[str, ...]:
        """The best common ancestors of the last commit with any of those before it."""
        if commits not in self._older:
            graph = self._store.commits.graph()
            found = list(dict.fromkeys(base for one in commits[:-1] for base in merge_bases(graph, one, commits[-1])))
            self._older[commits] = tuple(
                base for base in found if not any(other != base and is_ancestor(graph, base, other) for other in found)
            )
        return self._older[commits]

    def _row_at(self, commit: str, row_id: str) -> Row | Unknown:
        if commit not in self._rows:
            self._rows[commit] = self._state(commit)
        rows = self._rows[commit]
        return UNKNOWN if rows is None else rows.get(row_id)

    def _state(self, commit: str) -> Mapping[str, dict[str, Any]] | None:
        """The rows at a commit; None when it cannot be read any more."""
        try:
            store, pin = view_of(self._store, of_commit(self._store, get_commit(self._store, commit)), self._type)
            return {} if pin is None else digest_rows(store, table_of(pin), self._type, self._ids)
        except (HistoryGap, NotFound, TableNotFound):
            return None
