"""The recovery audit: one row per unfinished write that recovery resolved, in `_graph_commit_recoveries.lance`.

The dataset is made when it is first needed. A row is keyed by operation id and kind, so a recovery that died after its
publish and is carried on by another one still leaves exactly one. Like the commit log it rewrites its last fragment.
"""

from __future__ import annotations

import random
import time
from dataclasses import asdict, dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

import pyarrow as pa

from omnigraph.config import settings
from omnigraph.errors import Conflict
from omnigraph.failpoints import declare, failpoint
from omnigraph.ledger.layout import RECOVERIES
from omnigraph.ledger.recovery.sidecars import RecoveredTable
from omnigraph.ledger.values import WriterKind
from omnigraph.storage.lance_errors import TableExists
from omnigraph.storage.tables import TableStore
from omnigraph.storage.values import TableVersion
from omnigraph.times import aware

declare("audit.append.before", "A sidecar is resolved; its audit row is not written")
declare("audit.append.after", "The audit row is written; the sidecar is still there")

_TABLES = pa.list_(pa.struct([("table_key", pa.string()), ("from_version", pa.int64()), ("to_version", pa.int64())]))
SCHEMA = pa.schema(
    [
        pa.field("operation_id", pa.string(), nullable=False),
        pa.field("kind", pa.string(), nullable=False),
        pa.field("graph_commit_id", pa.string(), nullable=False),
        pa.field("writer_kind", pa.string(), nullable=False),
        pa.field("recovery_for_actor", pa.string()),
        pa.field("branch", pa.string(), nullable=False),
        pa.field("tables", _TABLES, nullable=False),
        pa.field("created_at", pa.int64(), nullable=False),
    ]
)


class RecoveryKind(StrEnum):
    """How an unfinished write ended."""

    ROLLED_FORWARD = "RolledForward"
    ROLLED_BACK = "RolledBack"
    ORPHANED_BRANCH_DISCARDED = "OrphanedBranchDiscarded"
    COMPLETED = "Completed"
    SET_ASIDE = "SetAside"


@dataclass(frozen=True, slots=True)
class RecoveryRecord:
    """One row of the audit. `graph_commit_id` is the commit that recovery made or found, or the head it left alone."""

    operation_id: str
    kind: RecoveryKind
    graph_commit_id: str
    writer_kind: WriterKind
    recovery_for_actor: str | None
    branch: str
    tables: tuple[RecoveredTable, ...]
    created_at: int

    @property
    def created(self) -> datetime:
        """When it was recorded."""
        return aware(self.created_at)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data, the same on the command line and over HTTP."""
        return {
            "operation_id": self.operation_id,
            "kind": self.kind.value,
            "graph_commit_id": self.graph_commit_id,
            "writer_kind": self.writer_kind.value,
            "recovery_for_actor": self.recovery_for_actor,
            "branch": self.branch,
            "tables": [asdict(table) for table in self.tables],
            "created_at": self.created_at,
        }


class RecoveryAudit:
    """The audit of one graph."""

    def __init__(self, tables: TableStore) -> None:
        self._tables = tables

    def list(self) -> list[RecoveryRecord]:
        """Every recovery, oldest first."""
        if not self._tables.exists(RECOVERIES):
            return []
        rows = self._tables.scan_table(self._tables.head(RECOVERIES)).to_pylist()
        return sorted((_record(row) for row in rows), key=lambda record: (record.created_at, record.operation_id))

    def record(self, record: RecoveryRecord) -> None:
        """Add a row, unless there is one for this operation and kind already."""
        failpoint("audit.append.before")
        budget = settings().commit_log_retry_budget
        for attempt in range(budget + 1):
            try:
                self._append(record)
                break
            except (Conflict, TableExists):
                # Another recovery, of another branch, was quicker.
                if attempt == budget:
                    raise
                time.sleep(random.uniform(0.002, 0.01) * min(attempt + 1, 10))
        failpoint("audit.append.after")

    def _append(self, record: RecoveryRecord) -> None:
        row = pa.Table.from_pylist([record.to_json()], schema=SCHEMA)
        if not self._tables.exists(RECOVERIES):
            self._tables.create(RECOVERIES, SCHEMA, rows=row)
            return
        head = self._tables.head(RECOVERIES)
        if self._holds(head, record):
            return
        tail = self._tables.fragments(head)[-1]
        if tail.rows < settings().commit_log_tail_rows:
            grown = pa.concat_tables([self._tables.scan_table(head, fragments=[tail.id]).cast(SCHEMA), row])
            staged = self._tables.stage_replace_fragments(head, [tail.id], grown)
        else:
            staged = self._tables.stage_append(head, row)
        try:
            self._tables.commit_staged(staged, record.operation_id)
        except Conflict:
            self._tables.abandon(staged)
            raise

    def _holds(self, head: TableVersion, record: RecoveryRecord) -> bool:
        known = self._tables.scan_table(head, columns=["operation_id", "kind"]).to_pylist()
        return {"operation_id": record.operation_id, "kind": record.kind.value} in known


def _record(row: dict[str, Any]) -> RecoveryRecord:
    return RecoveryRecord(
        operation_id=row["operation_id"],
        kind=RecoveryKind(row["kind"]),
        graph_commit_id=row["graph_commit_id"],
        writer_kind=WriterKind(row["writer_kind"]),
        recovery_for_actor=row["recovery_for_actor"],
        branch=row["branch"],
        tables=tuple(RecoveredTable(**table) for table in row["tables"]),
        created_at=row["created_at"],
    )
