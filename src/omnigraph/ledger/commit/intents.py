"""What a writer hands to the commit protocol: prepared work as plain values, nothing moved yet."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from omnigraph.ledger.recovery.sidecars import Sidecar, SidecarOwner, SidecarTable
from omnigraph.ledger.values import (
    BranchRef,
    CommitOperation,
    GraphCommit,
    Snapshot,
    StreamBatch,
    TablePin,
    WriterKind,
)
from omnigraph.storage.values import StagedWrite, TableVersion


class TableCommits(Protocol):
    """What `TableWrite.apply` works with: the line as it stands, and the two ways to move it."""

    @property
    def line(self) -> TableVersion:
        """The newest version of the table's line, as far as this write has brought it."""

    @property
    def operation_id(self) -> str:
        """The tag of every commit of this write."""

    def commit(self, staged: StagedWrite) -> TableVersion:
        """Commit a staged write, tagged and strict, after checking that the write is still ours to finish."""

    def untagged(self, work: Callable[[TableVersion], TableVersion], *, strict: bool = False) -> TableVersion:
        """Run work whose commits cannot carry a tag and change no content; it returns the version it reached.

        `strict`: it has seen that nobody else's commits are among its own. Then only rows are counted; otherwise each
        commit is looked at, which takes longer than a small write.
        """


@dataclass(frozen=True, slots=True)
class TableWrite:
    """The prepared work on one table.

    `pin` is the published version it was prepared on (None for a table that the write registers). `line` is where the
    staged work builds: the pin itself when the branch owns its line, otherwise a fork made for this write. `commits`
    land in order, usually one. `apply` is for work whose later commits depend on earlier ones (compaction, index
    builds); `later` are the ids of the transactions that it commits, where it changes data. `row_count` is that of the
    table afterwards.
    """

    table_key: str
    type_id: str
    location: str
    pin: TablePin | None
    line: TableVersion
    row_count: int
    commits: tuple[StagedWrite, ...] = ()
    apply: Callable[[TableCommits], None] | None = None
    later: tuple[str, ...] = ()

    @property
    def moves(self) -> bool:
        """Whether there is anything to commit."""
        return bool(self.commits) or self.apply is not None

    def pin_at(self, version: int, owner: str) -> TablePin:
        """The pin that publishes a version of the line."""
        return TablePin(self.table_key, self.type_id, self.location, self.line.branch, version, self.row_count, owner)


@dataclass(frozen=True, slots=True)
class WriteIntent:
    """One write, prepared on `base`.

    `reads` are tables that validation or a `where` leaned on: their pins must still hold when the write is committed.
    `registered` are pins of tables that are new to the branch and do not move any more, `repinned` are tables that take
    over a version which exists already (a fast-forward), `renamed` are pairs of old and new table key. `operations` are
    the mutations that a combined commit consists of, `about` is what a revert, restore or cherry-pick is about.
    `batches` of streams come with it: the one that a load is, or those that a merge brings along. With
    `on_left_out`, tables that another writer moved meanwhile are left out and told to it, instead of failing the write.
    """

    operation_id: str
    kind: WriterKind
    branch: BranchRef
    base: Snapshot
    actor_id: str | None
    graph_commit_id: str
    writes: tuple[TableWrite, ...] = ()
    reads: frozenset[str] = frozenset()
    registered: tuple[TablePin, ...] = ()
    repinned: tuple[TablePin, ...] = ()
    renamed: tuple[tuple[str, str], ...] = ()
    tombstones: tuple[str, ...] = ()
    schema_digest: str | None = None
    merged_parent_commit_id: str | None = None
    changes_data: bool = True
    if_commit: str | None = None
    on_left_out: Callable[[str], None] | None = None
    operations: tuple[CommitOperation, ...] = ()
    about: str | None = None
    batches: tuple[StreamBatch, ...] = ()

    @property
    def published_keys(self) -> frozenset[str]:
        """Every table that the publish says something about."""
        keys = {write.table_key for write in self.writes} | set(self.tombstones)
        keys |= {pin.table_key for pin in (*self.registered, *self.repinned)}
        return frozenset(keys | {key for pair in self.renamed for key in pair})

    @property
    def guarded_keys(self) -> frozenset[str]:
        """Every table that the write leans on: what its window has to cover."""
        return self.published_keys | self.reads

    @property
    def expected(self) -> dict[str, TablePin | None]:
        """The pins that must still be current when the write is committed."""
        return {key: self.base.tables.get(key) for key in self.guarded_keys}

    @property
    def moves(self) -> bool:
        """Whether a table's HEAD moves before the publish, or something after it must not be forgotten."""
        return any(write.moves for write in self.writes) or self.schema_digest is not None


def sidecar_of(intent: WriteIntent, parent: GraphCommit, lease: str | None) -> Sidecar:
    """The durable form of an intent: only tables that will really move are named as moving."""
    written = {write.table_key for write in intent.writes}
    return Sidecar(
        operation_id=intent.operation_id,
        kind=intent.kind,
        branch=intent.branch.name,
        incarnation=intent.branch.incarnation,
        actor_id=intent.actor_id,
        graph_commit_id=intent.graph_commit_id,
        parent_commit_id=parent.graph_commit_id,
        merged_parent_commit_id=intent.merged_parent_commit_id,
        started_at=time.time_ns() // 1000,
        owner=SidecarOwner.here(lease),
        base_schema_digest=intent.base.schema_digest,
        tables=tuple(_sidecar_table(write) for write in intent.writes if write.moves),
        reads=tuple((key, intent.base.tables.get(key)) for key in sorted(intent.guarded_keys - written)),
        registered=intent.registered,
        repinned=intent.repinned,
        renamed=intent.renamed,
        tombstones=intent.tombstones,
        schema_digest=intent.schema_digest,
        changes_data=intent.changes_data,
        operations=intent.operations,
        about=intent.about,
        batches=intent.batches,
    )


def _sidecar_table(write: TableWrite) -> SidecarTable:
    return SidecarTable(
        table_key=write.table_key,
        type_id=write.type_id,
        location=write.location,
        lance_branch=write.line.branch,
        expected_version=write.line.version,
        pin=write.pin,
        transactions=(*(staged.transaction_uuid for staged in write.commits), *write.later),
        row_count=write.row_count,
    )
