"""What reads keep between queries. Everything is derived from immutable table versions and keyed by them, so
nothing here can be stale: a write makes new versions, and with them new keys.
"""

from __future__ import annotations

import weakref
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from omnigraph.config import settings
from omnigraph.read.codes.arrays import combined
from omnigraph.read.codes.ids import NodeIds, SortedIds
from omnigraph.read.tables.cache import Budget, CacheReport, SingleFlightCache
from omnigraph.read.tables.reader import TableReader
from omnigraph.read.tables.topology import Alignment, Topology, align, build_topology
from omnigraph.storage.index_search import Coverage

SPENT_STATES = 256

KEPT_ROW_BYTES = 16_000_000
"""Rows that were looked up by id take no more than this."""


READS = Budget(lambda: settings().read_cache)
"""One budget for what all graphs of this process keep for reads."""


def _nbytes(value: Any) -> int:
    return int(value.nbytes)


def _maybe_nbytes(value: Any) -> int:
    return 0 if value is None else _nbytes(value)


@dataclass(slots=True)
class ReadCaches:
    """Topologies, node ids, columns and statistics of indexes of one graph, shared by its branches and by threads."""

    topologies: SingleFlightCache[Topology] = field(init=False)
    nodes: SingleFlightCache[NodeIds] = field(init=False)
    alignments: SingleFlightCache[Alignment] = field(init=False)
    columns: SingleFlightCache[pa.Array] = field(init=False)
    coverages: SingleFlightCache[Coverage | None] = field(init=False)
    corpora: SingleFlightCache[Any] = field(init=False)
    centres: SingleFlightCache[Any] = field(init=False)
    many: SingleFlightCache[bool] = field(init=False)
    """Predicates that leave more rows than are worth reading one by one, by table state."""
    codes: SingleFlightCache[Any] = field(init=False)
    plans: SingleFlightCache[Any] = field(init=False)
    carried: SingleFlightCache[Any] = field(init=False)
    searches: SingleFlightCache[Any] = field(init=False)
    indexed: SingleFlightCache[frozenset[str]] = field(init=False)
    rows: SingleFlightCache[pa.Table] = field(init=False)
    """Rows that were looked up by id, by what their fragments consist of: they outlive writes to other rows."""
    spent: dict[Hashable, float] = field(default_factory=dict)
    """What look-ups in an edge table have cost so far, by its state, in rough microseconds."""

    def __post_init__(self) -> None:
        entries = settings().topology_cache
        column_bytes = settings().column_cache
        self.topologies = SingleFlightCache(entries, _nbytes, budget=READS)
        self.nodes = SingleFlightCache(2 * entries, _nbytes, budget=READS)
        self.alignments = SingleFlightCache(4 * entries, _nbytes, budget=READS)
        self.columns = SingleFlightCache(1024, _nbytes, column_bytes, budget=READS)
        self.coverages = SingleFlightCache(1024, lambda found: 0)
        self.corpora = SingleFlightCache(4096, lambda found: 0)
        self.centres = SingleFlightCache(64, _maybe_nbytes, budget=READS)
        self.many = SingleFlightCache(1024, lambda known: 0)
        self.codes = SingleFlightCache(4 * entries, _maybe_nbytes, column_bytes, budget=READS)
        self.plans = SingleFlightCache(256, lambda plan: 0)
        self.carried = SingleFlightCache(256, lambda found: 0)
        self.searches = SingleFlightCache(256, lambda found: 0)
        self.indexed = SingleFlightCache(256, lambda columns: 0)
        self.rows = SingleFlightCache(256, _nbytes, min(column_bytes, KEPT_ROW_BYTES))

    def topology(self, reader: TableReader, edge: str, *, one_kind: bool) -> Topology:
        """The adjacency of an edge table."""
        return self.topologies.get(
            reader.state(edge), lambda: build_topology(reader.scan(edge, ["src", "dst"]), one_kind=one_kind)
        )

    def node_ids(self, reader: TableReader, table_key: str) -> NodeIds:
        """All ids of a node table, in order."""
        return self.nodes.get(reader.state(table_key), lambda: NodeIds(reader.scan(table_key, ["id"]).column("id")))

    def alignment(
        self, reader: TableReader, table_key: str, nodes: NodeIds, edge: str, end: str, vertices: SortedIds
    ) -> Alignment:
        """How the codes of a node table and the vertices at one end of an edge table correspond."""
        key = (reader.state(table_key), reader.state(edge), end)
        return self.alignments.get(key, lambda: align(nodes, vertices))

    def column(self, reader: TableReader, table_key: str, name: str) -> pa.Array:
        """A whole column in the table's own order."""
        key = (reader.state(table_key), name)
        return self.columns.get(key, lambda: combined(reader.scan(table_key, [name]).column(name)))

    def has_room_for(self, reader: TableReader, table_key: str, name: str) -> bool:
        """Whether a whole column is small enough to be kept beside others."""
        return reader.row_count(table_key) * reader.width(table_key, name) * 2 <= settings().column_cache

    def cached_column(self, state: Hashable, name: str) -> pa.Array | None:
        """A whole column, if somebody has read it already."""
        return self.columns.peek((state, name))

    def spend(self, state: Hashable, cost: float) -> None:
        """Note what a look-up has cost. Only the last few states are remembered."""
        self.spent[state] = self.spent.pop(state, 0.0) + cost
        while len(self.spent) > SPENT_STATES:
            self.spent.pop(next(iter(self.spent)), None)

    def report(self) -> dict[str, CacheReport]:
        """Size and use of each cache."""
        return {
            "topologies": self.topologies.report(),
            "nodes": self.nodes.report(),
            "alignments": self.alignments.report(),
            "columns": self.columns.report(),
        }

    def clear(self) -> None:
        """Forget everything."""
        for cache in (
            self.topologies,
            self.nodes,
            self.alignments,
            self.columns,
            self.coverages,
            self.corpora,
            self.centres,
            self.many,
            self.codes,
            self.plans,
            self.searches,
            self.rows,
        ):
            cache.clear()


_CACHES: weakref.WeakKeyDictionary[Any, ReadCaches] = weakref.WeakKeyDictionary()


def caches_of(owner: Any) -> ReadCaches:
    """The caches of an opened graph; they live as long as it is open."""
    found = _CACHES.get(owner)
    return found if found is not None else _CACHES.setdefault(owner, ReadCaches())
