"""The ends of edges in a load that brings no nodes: each task looks them up by itself among the committed ones.

To send them on by their hash, so that each bucket of them meets its nodes, moves every end between the tasks. That is
left to loads that bring nodes too, and to graphs with so many that a task should not hold their ids. A worker keeps the
ids for its next task: to read them, and to make them ready, takes as long as to look up some millions of ends.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.schema.catalog import Cardinality, EdgeType
from omnigraph.spark.load.known.all_committed import MOST_NODES, AllCommitted
from omnigraph.spark.load.load_messages import LoadContext
from omnigraph.write.validate.collector import ViolationCollector
from omnigraph.write.validate.graph_rules import check_end, missing_nodes
from omnigraph.write.validate.key_changes import TableChange


class KnownEnds:
    """The nodes that the edges of one task may lead from and to."""

    def __init__(self, store: Any, context: LoadContext) -> None:
        self._type = _edges_alone(context)
        self._committed = AllCommitted(store, context)
        self._replaces = context.mode == "overwrite"

    @property
    def reads(self) -> frozenset[str]:
        """The tables that were looked at."""
        return frozenset(self._committed.reads) if self._type is not None else frozenset()

    def check(self, keys: pa.Table, violations: ViolationCollector) -> bool:
        """Report edges with an end that does not exist. False: that cannot be told here."""
        if self._type is None:
            return False
        if self._all_known(self._type, keys):
            return True
        for end in ("src", "dst"):
            # A row without an end has been reported already.
            there = keys.filter(pc.is_valid(keys[end])) if keys[end].null_count else keys
            table = TableChange(there, replaces_all=self._replaces, known_new=True)
            check_end(self._type, end, table, {}, self._committed, violations)
        return True

    def _all_known(self, type_: EdgeType, keys: pa.Table) -> bool:
        """Whether both ends are nodes of one type and all there: told by one look-up, as in nearly every load."""
        if type_.source != type_.target:
            return False
        ends = pa.chunked_array([*keys["src"].chunks, *keys["dst"].chunks], pa.string()).drop_null()
        return not len(missing_nodes(f"node:{type_.source}", ends, {}, self._committed))


def _edges_alone(context: LoadContext) -> EdgeType | None:
    """The edges that are all that is loaded, if what nodes there are is known and nothing counts their edges."""
    if len(context.lines) != 1 or context.mode == "merge":
        return None
    only = context.catalog.table(next(iter(context.lines)))
    if not isinstance(only, EdgeType) or only.card != Cardinality():
        return None
    pins = [context.snapshot.tables.get(table_key) for table_key in _node_tables(only)]
    return only if all(pin is None or pin.row_count <= MOST_NODES for pin in pins) else None


def _node_tables(type_: EdgeType) -> tuple[str, str]:
    return f"node:{type_.source}", f"node:{type_.target}"
