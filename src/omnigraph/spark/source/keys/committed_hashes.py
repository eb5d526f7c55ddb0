"""The tuples of a committed table as hashes: what has none of them is surely not there.

A worker keeps those of a version for its next task, eight bytes for each row.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from omnigraph.schema.catalog import GraphType
from omnigraph.spark.load.known.all_committed import AllCommitted
from omnigraph.spark.load.known.known_ids import Hashes
from omnigraph.spark.load.load_messages import LoadContext
from omnigraph.spark.source.keys.key_hashes import tuple_hashes
from omnigraph.storage.values import TableVersion
from omnigraph.write.load.load_keys import key_schema
from omnigraph.write.validate.graph_rules import best_lookup
from omnigraph.write.validate.key_changes import distinct
from omnigraph.write.validate.zeros import with_both_zeros

MOST_ROWS = 20_000_000
"""Rows of a table whose hashes a worker holds: 160 MB. Of more, those are looked up that can be meant."""

_FEW_TIMES = 12
"""To look up one tuple takes as long as to read so many."""

_MOST_KEPT = 2
_ROWS_TOGETHER = 250_000

_Key = tuple[str, str, TableVersion, tuple[str, ...]]
_kept: dict[_Key, Hashes] = {}


class CommittedHashes:
    """The tuples of the table that is written to."""

    def __init__(self, committed: AllCommitted, context: LoadContext, type_: GraphType) -> None:
        self._committed = committed
        self._type = type_
        self._graph = (context.uri, context.snapshot.branch.incarnation)
        self._is_replaced = context.mode == "overwrite"

    def may_have(self, columns: tuple[str, ...], asked: pa.Table) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """For each row that is asked about whether a committed one may have its tuple."""
        table_key = self._type.table_key
        if self._is_replaced or not self._committed.count(table_key):
            return np.zeros(asked.num_rows, bool)
        known = self._known(columns, asked)
        hashes = tuple_hashes([asked[name] for name in columns])
        # One after the other through memory: in any order, each look would wait for it.
        ordered = np.sort(hashes)
        at = np.minimum(np.searchsorted(known, ordered), max(len(known) - 1, 0))
        met = ordered[known[at] == ordered] if len(known) else ordered[:0]
        return np.isin(hashes, met) if len(met) else np.zeros(len(hashes), bool)

    def _known(self, columns: tuple[str, ...], asked: pa.Table) -> Hashes:
        table_key = self._type.table_key
        key = (*self._graph, self._committed.version(table_key), columns)
        if key in _kept:
            return _kept[key]
        rows = self._committed.count(table_key)
        if asked.num_rows * _FEW_TIMES < rows or rows > MOST_ROWS:
            return self._hashes(columns, self._candidates(columns, asked))
        _make_room(key)
        parts = [self._hashes(columns, part) for part in self._scanned(columns)]
        _kept[key] = np.sort(np.concatenate([np.empty(0, np.uint64), *parts]))
        return _kept[key]

    def _candidates(self, columns: tuple[str, ...], asked: pa.Table) -> pa.Table:
        lookup = columns[0] if len(columns) == 1 else best_lookup(self._type, columns)
        values = with_both_zeros(distinct(asked[lookup]))
        return self._committed.rows_with(self._type.table_key, lookup, values, list(columns))

    def _scanned(self, columns: tuple[str, ...]) -> Iterator[pa.Table]:
        waiting: list[pa.Table] = []
        for rows in self._committed.scan(self._type.table_key, list(columns)):
            waiting.append(rows)
            if sum(part.num_rows for part in waiting) >= _ROWS_TOGETHER:
                yield pa.concat_tables(waiting)
                waiting = []
        if waiting:
            yield pa.concat_tables(waiting)

    def _hashes(self, columns: tuple[str, ...], rows: pa.Table) -> Hashes:
        """The hashes of committed rows, in order, of the types that keys have."""
        schema = key_schema(self._type)
        rows = rows.select(list(columns)).drop_null()
        return np.sort(tuple_hashes([rows[name].cast(schema.field(name).type) for name in columns]))


def _make_room(wanted: _Key) -> None:
    """Forget what another version of the table had, and what has been here for longest."""
    for key in [key for key in _kept if key[2].location == wanted[2].location and key[2] != wanted[2]]:
        del _kept[key]
    while len(_kept) >= _MOST_KEPT:
        del _kept[next(iter(_kept))]
