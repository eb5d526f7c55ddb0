"""What every attempt at a load has: the state it is prepared on, what it breaks, and the tables that it leaned on."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from omnigraph.embed.text_vectors import vectors_on_write
from omnigraph.ledger.commit.attempts import WriteSession
from omnigraph.ledger.values import Snapshot
from omnigraph.schema.catalog import Catalog, GraphType
from omnigraph.write.committed import CommittedRows
from omnigraph.write.rows.fill_vectors import VectorSource
from omnigraph.write.validate.collector import ViolationCollector

if TYPE_CHECKING:
    from omnigraph.ledger.store import GraphStore


class LoadAttempt:
    """One attempt at a load. What waits until the whole input is known lies in `directory`."""

    def __init__(
        self,
        store: GraphStore,
        snapshot: Snapshot,
        session: WriteSession,
        violations: ViolationCollector,
        directory: Path,
        vectors: VectorSource | None = None,
    ) -> None:
        self._store = store
        self._snapshot = snapshot
        self._session = session
        self._violations = violations
        self._directory = directory
        self._catalog: Catalog = store.catalog(snapshot.schema_digest)
        self._committed = CommittedRows(store, snapshot)
        self._vectors = vectors or partial(vectors_on_write, store.embedding)

    @property
    def reads(self) -> frozenset[str]:
        """The tables whose pins must still hold."""
        return frozenset(self._committed.reads)

    def _type(self, table_key: str) -> GraphType:
        found = self._catalog.table(table_key)
        assert found is not None
        return found
