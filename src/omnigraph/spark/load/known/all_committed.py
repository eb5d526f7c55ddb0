"""The committed nodes as one task sees them, with ids that its worker keeps from one task to the next."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from omnigraph.spark.load.known.committed_ids import BucketOfCommitted
from omnigraph.spark.load.known.known_ids import KnownIds
from omnigraph.spark.load.load_messages import LoadContext
from omnigraph.storage.values import TableVersion

MOST_NODES = 5_000_000
"""Nodes of one type whose ids a worker holds: of so many short ones 90 MB, and 90 MB more to look ends up in them."""

_MOST_KEPT = 2
"""Tables whose ids a worker keeps: those of both ends."""


class AllCommitted(BucketOfCommitted):
    """The committed rows, with ids that this worker may have from an earlier task. Of a table that has more than it may
    hold, ids are looked up by the index."""

    def __init__(self, store: Any, context: LoadContext) -> None:
        super().__init__(store, context.snapshot, most_ids=MOST_NODES)
        self._graph = (context.uri, context.snapshot.branch.incarnation)

    def unknown_ids(self, table_key: str, ids: pa.ChunkedArray | pa.Array) -> pa.Array:
        """Of these ids those that no row has, each once."""
        kept = _kept.get(self._key(table_key))
        return kept.missing(ids) if kept is not None else super().unknown_ids(table_key, ids)

    def known_ids(self, table_key: str) -> KnownIds:
        """The ids of a table: those of one version never change."""
        key = self._key(table_key)
        _make_room(key[-1])
        _kept[key] = super().known_ids(table_key)
        return _kept[key]

    def _key(self, table_key: str) -> tuple[str, str, TableVersion]:
        return (*self._graph, self.version(table_key))


_kept: dict[tuple[str, str, TableVersion], KnownIds] = {}


def _make_room(wanted: TableVersion) -> None:
    """Forget what another version of a table had, and what has been here for longest."""
    for key in [key for key in _kept if key[2].location == wanted.location]:
        del _kept[key]
    while len(_kept) >= _MOST_KEPT:
        del _kept[next(iter(_kept))]
