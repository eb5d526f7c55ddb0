"""What one task of a frame write can say of its keys by itself: which of them the committed rows leave in doubt.

It reports nothing. Where all ends are there and no tuple is taken, as in nearly every write, the commit has nothing
left to look up if the tables are still those that the task saw; a part in doubt it checks by the rules themselves.
"""

from __future__ import annotations

import pyarrow as pa

from omnigraph.ledger.snapshots import table_of
from omnigraph.ledger.values import Snapshot
from omnigraph.schema.catalog import GraphType
from omnigraph.spark.load.known.all_committed import AllCommitted
from omnigraph.spark.load.load_messages import LoadContext
from omnigraph.spark.load.load_tasks import TaskStore
from omnigraph.spark.source.keys.committed_hashes import CommittedHashes
from omnigraph.spark.source.keys.key_hashes import part_numbers
from omnigraph.spark.source.keys.key_parts import Doubt
from omnigraph.spark.source.keys.key_rules import KeyRule, key_rules
from omnigraph.spark.worker_tables import worker_tables
from omnigraph.storage.values import TableVersion
from omnigraph.write.validate.graph_rules import missing_nodes

Seen = dict[str, TableVersion | None]
"""The versions of the tables that were looked at; None for one that is not there."""


class KeyDoubts:
    """Looks at keys on top of the committed state of a context."""

    def __init__(self, context: LoadContext, type_: GraphType) -> None:
        store = TaskStore(worker_tables(context.uri, context.snapshot.branch.incarnation), context.catalog)
        self._snapshot = context.snapshot
        self._type = type_
        self._committed = AllCommitted(store, context)
        self._hashes = CommittedHashes(self._committed, context, type_)

    @property
    def reads(self) -> frozenset[str]:
        """The tables that were looked at."""
        return frozenset(self._committed.reads)

    @property
    def seen(self) -> Seen:
        """The tables that were looked at, as they were."""
        return {table_key: version_in(self._snapshot, table_key) for table_key in self.reads}

    def of(self, keys: pa.Table, *, own_ids: bool) -> set[Doubt]:
        """The parts of these keys that may break a rule."""
        return {
            doubt for rule in key_rules(self._type, own_ids=own_ids) for doubt in self._by(rule, rule.concerns(keys))
        }

    def _by(self, rule: KeyRule, keys: pa.Table) -> set[Doubt]:
        if not keys.num_rows or rule.needs_all:
            return set()
        column = keys[rule.columns[0]]
        values = []
        if rule.most is not None:
            values.append(column.filter(pa.array(self._hashes.may_have(rule.columns, keys))))
        if rule.node is not None:
            missing = missing_nodes(rule.node, column, {}, self._committed)
            values.append(pa.chunked_array([missing], column.type))
        return {(rule.subject, part) for found in values if len(found) for part in set(part_numbers(found).tolist())}


def version_in(snapshot: Snapshot, table_key: str) -> TableVersion | None:
    """The version of a table in a snapshot, if it has one."""
    pin = snapshot.tables.get(table_key)
    return table_of(pin) if pin is not None else None
