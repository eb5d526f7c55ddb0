"""Reading what a table's line holds above a version: the facts that classification and drift checks judge."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from omnigraph.ledger.manifest.manifest import ManifestState
from omnigraph.ledger.parts import GraphParts
from omnigraph.ledger.recovery.classify import LandedCommit, TableEvidence
from omnigraph.ledger.recovery.sidecars import Sidecar, SidecarTable
from omnigraph.ledger.values import TablePin
from omnigraph.storage.constants import OPERATION_ID_PROPERTY
from omnigraph.storage.values import TableVersion, TransactionInfo

_RESTORE = "Restore"


def gather_evidence(store: GraphParts, sidecar: Sidecar, current: ManifestState) -> list[TableEvidence]:
    """The state of every table of a sidecar, read afresh."""
    by_type = {pin.type_id: pin for pin in current.tables.values()}
    return [_evidence(store, sidecar, table, by_type.get(table.type_id)) for table in sidecar.tables]


def commits_above(
    store: GraphParts, line: TableVersion, head: int, written: Collection[str] = ()
) -> tuple[LandedCommit, ...]:
    """The commits of a line after `line.version`, up to `head`, oldest first.

    `written` are transactions that a write was to make: a restore among them is its work, and takes nothing back.
    """
    found = store.tables.transactions(line.location, line.branch, line.version, head)
    return tuple(_landed(info, written) for info in found)


def line_of(pin: TablePin) -> TableVersion:
    """A pin as the storage layer names it."""
    return TableVersion(pin.location, pin.lance_branch, pin.version)


def _evidence(store: GraphParts, sidecar: Sidecar, table: SidecarTable, pin: TablePin | None) -> TableEvidence:
    expected = TableVersion(table.location, table.lance_branch, table.expected_version)
    head = head_of_line(store, table)
    if head is None or head <= table.expected_version:
        return TableEvidence(table, pin, head, ())
    landed = commits_above(store, expected, head, table.transactions)
    # The commits of an older program carry no tag; the sidecar names them by the ids of their transactions.
    named = set(table.transactions)
    told = tuple(replace(c, operation_id=sidecar.operation_id) if c.transaction in named else c for c in landed)
    return TableEvidence(table, pin, head, told)


def head_of_line(store: GraphParts, table: SidecarTable) -> int | None:
    """HEAD of the table's line. That a line does not exist is concluded from a list, not from a failed look."""
    if not store.tables.exists(table.location):
        return None
    if table.lance_branch is not None:
        forks = {fork.name for fork in store.tables.list_forks(table.location)}
        if table.lance_branch not in forks:
            return None
    return store.tables.head(table.location, table.lance_branch).version


def _landed(info: TransactionInfo, written: Collection[str]) -> LandedCommit:
    return LandedCommit(
        version=info.version,
        transaction=info.uuid,
        operation_id=info.properties.get(OPERATION_ID_PROPERTY),
        restores=info.kind == _RESTORE and info.uuid not in written,
        # Content that could not be compared counts as changed: nobody's data is put at risk by a guess.
        preserves_content=info.changes_content is False,
    )
