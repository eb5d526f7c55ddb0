"""What an old graph keeps of writes that did not end well: its recovery audit, and the sidecars of unfinished ones.

An old sidecar says which tables would move, from which version to which. Its commits carry no tag, so the transactions
that stand between those versions are named in the sidecar that it becomes: they are the write's own, since its process
held the tables until it died. Recovery then goes on as for any other write.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any

import orjson
import pyarrow as pa
from ulid import ULID

from omnigraph.errors import Conflict
from omnigraph.ledger.layout import RECOVERIES
from omnigraph.ledger.manifest.manifest import ManifestState
from omnigraph.ledger.older.legacy import LegacyGraph
from omnigraph.ledger.older.old_log import rows_with_times
from omnigraph.ledger.parts import GraphParts
from omnigraph.ledger.recovery.audit import SCHEMA, RecoveryAudit, RecoveryKind, RecoveryRecord
from omnigraph.ledger.recovery.sidecars import (
    RecoveredTable,
    Sidecar,
    SidecarOwner,
    SidecarTable,
    operation_ids,
    path_of,
)
from omnigraph.ledger.values import MAIN, BranchRef, WriterKind
from omnigraph.storage.lance_errors import TableNotFound
from omnigraph.storage.objects.object_errors import LostPrecondition, ObjectNotFound
from omnigraph.storage.tables import TableStore
from omnigraph.storage.values import TableVersion

_COLUMNS = (
    "operation_id",
    "recovery_kind",
    "graph_commit_id",
    "sidecar_writer_kind",
    "recovery_for_actor",
    "per_table_outcomes_json",
    "created_at",
)


class OldAudit(RecoveryAudit):
    """The recovery audit of an old graph, for a read-only open."""

    def __init__(self, tables: TableStore, graph: LegacyGraph) -> None:
        super().__init__(tables)
        self._graph = graph

    def list(self) -> list[RecoveryRecord]:
        return super().list() if not _is_old(self._tables) else _records(self._tables, self._graph)


def convert_audit(store: GraphParts, graph: LegacyGraph) -> bool:
    """Bring the audit into today's columns; False when another process was quicker."""
    if not _is_old(store.tables):
        return True
    rows = [record.to_json() for record in _records(store.tables, graph)]
    head = store.tables.head(RECOVERIES)
    staged = store.tables.stage_overwrite(head, pa.Table.from_pylist(rows, schema=SCHEMA), SCHEMA)
    try:
        store.tables.commit_staged(staged, str(ULID()))
    except Conflict:
        return False
    return True


def convert_sidecars(store: GraphParts, graph: LegacyGraph) -> None:
    """Write the sidecars of unfinished writes anew, in today's form. Those that are so already stay as they are."""
    for operation_id in operation_ids(store.sidecars.names()):
        with contextlib.suppress(ObjectNotFound, LostPrecondition):
            data, token = store.objects.get(path_of(operation_id))
            content = _old_content(data)
            if content is not None:
                converted = _sidecar(store, graph, operation_id, content)
                store.objects.put_if_match(path_of(operation_id), converted.to_json(), token)


def _old_content(data: bytes) -> Mapping[str, Any] | None:
    """What an old sidecar says; None for one of today's and for one that cannot be understood, which recovery tells."""
    try:
        content = orjson.loads(data)
        return content if all("table_path" in table for table in content["tables"]) and content["tables"] else None
    except (ValueError, TypeError, KeyError):
        return None


def _sidecar(store: GraphParts, graph: LegacyGraph, operation_id: str, content: Mapping[str, Any]) -> Sidecar:
    name = content.get("branch") or MAIN
    branch = graph.named(name)
    kind = _known(WriterKind, content.get("writer_kind"), WriterKind.MUTATION)
    state = graph.state(store.tables.head("__manifest", branch.manifest_branch)) if branch is not None else None
    tables = tuple(_table(store, graph, branch, state, table) for table in content["tables"])
    return Sidecar(
        operation_id=operation_id,
        kind=kind,
        branch=name,
        incarnation=branch.incarnation if branch is not None else operation_id,
        actor_id=content.get("actor_id"),
        graph_commit_id=str(ULID()),
        parent_commit_id=state.head.graph_commit_id if state is not None else None,
        merged_parent_commit_id=None,
        started_at=int(content.get("started_at") or 0),
        owner=SidecarOwner.here(None),
        # The schema that an unfinished schema change would have brought is not in its sidecar: it is taken back.
        base_schema_digest="" if kind is WriterKind.SCHEMA_APPLY else graph.schema.digest,
        tables=tables,
    )


def _table(
    store: GraphParts,
    graph: LegacyGraph,
    branch: BranchRef | None,
    state: ManifestState | None,
    content: Mapping[str, Any],
) -> SidecarTable:
    key, expected, planned = content["table_key"], int(content["expected_version"]), int(content["post_commit_pin"])
    pin = state.tables.get(key) if state is not None else None
    graph_type = graph.schema.catalog.table(key)
    location = pin.location if pin is not None else "/".join(content["table_path"].rstrip("/").split("/")[-2:])
    line = TableVersion(location, content.get("table_branch") or (branch.manifest_branch if branch else None), planned)
    transactions, rows = _landed(store, line, expected)
    return SidecarTable(
        table_key=key,
        type_id=pin.type_id if pin is not None else (graph_type.id if graph_type is not None else key),
        location=location,
        lance_branch=line.branch,
        expected_version=expected,
        pin=pin,
        transactions=transactions,
        row_count=rows,
    )


def _landed(store: GraphParts, planned: TableVersion, expected: int) -> tuple[tuple[str, ...], int]:
    """The transactions by which a table came to the version that was planned, and its rows there; none if it did not.

    The version that is missing stands for what did not land, so that a table that moved half-way is taken back.
    """
    try:
        head = store.tables.head(planned.location, planned.branch).version
        found = store.tables.transactions(planned.location, planned.branch, expected, min(head, planned.version))
        rows = store.tables.count(planned) if head >= planned.version else 0
    except TableNotFound:
        found, rows, head = [], 0, expected
    named = tuple(info.uuid or f"version {info.version}" for info in found)
    missing = tuple(f"version {version}" for version in range(max(head, expected) + 1, planned.version + 1))
    return (*named, *missing), rows


def _is_old(tables: TableStore) -> bool:
    try:
        return "recovery_kind" in tables.schema(tables.head(RECOVERIES)).names
    except TableNotFound:
        return False


def _records(tables: TableStore, graph: LegacyGraph) -> list[RecoveryRecord]:
    branches = {commit.graph_commit_id: commit.branch for commit in graph.commits()}
    rows = rows_with_times(tables, tables.head(RECOVERIES), _COLUMNS)
    return [_record(row, branches.get(row["graph_commit_id"], MAIN)) for row in rows]


def _record(row: Mapping[str, Any], branch: str) -> RecoveryRecord:
    outcomes = orjson.loads(row["per_table_outcomes_json"] or "[]")
    return RecoveryRecord(
        operation_id=row["operation_id"],
        kind=_known(RecoveryKind, row["recovery_kind"], RecoveryKind.COMPLETED),
        graph_commit_id=row["graph_commit_id"],
        writer_kind=_known(WriterKind, row["sidecar_writer_kind"], WriterKind.MUTATION),
        recovery_for_actor=row["recovery_for_actor"],
        branch=branch,
        tables=tuple(RecoveredTable(t["table_key"], t.get("from_version"), t.get("to_version")) for t in outcomes),
        created_at=row["created_at"],
    )


def _known(kinds: Any, value: Any, otherwise: Any) -> Any:
    return kinds(value) if value in {kind.value for kind in kinds} else otherwise
