"""The plain values of the ledger: branches, pins, snapshots, commits. Everything above the ledger speaks in these."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from omnigraph.notebook import counted, html_table
from omnigraph.times import aware, shown

MAIN = "main"
SCHEMA_APPLY_LOCK = "__schema_apply_lock__"
RECOVERY_ACTOR = "omnigraph:recovery"


class WriterKind(StrEnum):
    """Who makes a commit. `Init` and `Recovery` never appear in sidecars."""

    INIT = "Init"
    MUTATION = "Mutation"
    LOAD = "Load"
    EMBED = "Embed"
    SCHEMA_APPLY = "SchemaApply"
    BRANCH_MERGE = "BranchMerge"
    ENSURE_INDICES = "EnsureIndices"
    OPTIMIZE = "Optimize"
    REPAIR = "Repair"
    REVERT = "Revert"
    RESTORE = "Restore"
    CHERRY_PICK = "CherryPick"
    RECOVERY = "Recovery"


@dataclass(frozen=True, slots=True)
class BranchRef:
    """What a ref object says about a branch. `manifest_branch` is the Lance branch of `__manifest`, None for `main`."""

    name: str
    incarnation: str
    manifest_branch: str | None
    source_branch: str | None = None
    source_incarnation: str | None = None
    source_commit: str | None = None
    source_manifest_version: int | None = None
    created_by: str | None = None
    created_at: int = 0

    @property
    def created(self) -> datetime | None:
        """When it was made; None for branches of graphs that did not keep it."""
        return aware(self.created_at) if self.created_at else None

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data, the same on the command line and over HTTP."""
        return {
            "name": self.name,
            "source_branch": self.source_branch,
            "source_commit": self.source_commit,
            "created_by": self.created_by,
            "created_at": self.created_at or None,
        }


@dataclass(frozen=True, slots=True)
class TablePin:
    """The published version of one table on one graph branch.

    `lance_branch` is the line that holds the version (None: the table's main line). `owner` is the incarnation of the
    graph branch that owns this line and may commit to it; anybody else forks first.
    """

    table_key: str
    type_id: str
    location: str
    lance_branch: str | None
    version: int
    row_count: int
    owner: str


@dataclass(frozen=True, slots=True)
class CommitOperation:
    """One mutation of a combined commit: whose it was, and what it did.

    `touched` are the ids of its rows per table, the first few; `touched_more` says that there were others.
    """

    operation_id: str
    actor_id: str | None
    query_name: str
    affected_nodes: int
    affected_edges: int
    touched: tuple[tuple[str, tuple[str, ...]], ...] = ()
    touched_more: bool = False

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data, as it is stored and shown."""
        return {
            "operation_id": self.operation_id,
            "actor_id": self.actor_id,
            "query_name": self.query_name,
            "affected_nodes": self.affected_nodes,
            "affected_edges": self.affected_edges,
            "touched": {table_key: list(ids) for table_key, ids in self.touched},
            "touched_more": self.touched_more,
        }

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> CommitOperation:
        """What `to_json` gave."""
        touched = tuple((table_key, tuple(ids)) for table_key, ids in content["touched"].items())
        return cls(**{**content, "touched": touched})


@dataclass(frozen=True, slots=True)
class StreamBatch:
    """One batch of a stream of loads. A stream numbers its batches upwards, and a branch takes each of them once."""

    stream: str
    batch: int

    def __str__(self) -> str:
        return f"batch {self.batch} of stream {self.stream}"

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data."""
        return {"stream": self.stream, "batch": self.batch}


@dataclass(frozen=True, slots=True, repr=False)
class GraphCommit:
    """One published state of the graph. Times are microseconds since the epoch.

    `operations` are the mutations of a combined commit; then `actor_id` is None, unless they all have the same one.
    `about` is the commit, or the range `a..b` of commits, that a revert took back, a restore went to or a cherry-pick
    brought; of a load, the batch of a stream that it was.
    """

    graph_commit_id: str
    manifest_branch: str | None
    manifest_version: int
    parent_commit_id: str | None
    merged_parent_commit_id: str | None
    actor_id: str | None
    created_at: int
    kind: WriterKind
    changes_data: bool
    branch: str
    incarnation: str
    schema_digest: str
    operations: tuple[CommitOperation, ...] = ()
    about: str | None = None

    def is_by(self, actor: str) -> bool:
        """Whether this actor made the commit, or a part of it."""
        return self.actor_id == actor or any(operation.actor_id == actor for operation in self.operations)

    def __repr__(self) -> str:
        actor = f" by {self.actor_id}" if self.actor_id else ""
        layout = "" if self.changes_data else ", no data changed"
        about = f" of {self.about}" if self.about else ""
        return (
            f"<Commit {self.graph_commit_id}: {self.kind.value}{about} on {self.branch}{actor}, "
            f"{self.created:%F %T}Z{layout}>"
        )

    @property
    def created(self) -> datetime:
        """When it was published."""
        return aware(self.created_at)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data, the same on the command line and over HTTP."""
        content: dict[str, Any] = {
            "graph_commit_id": self.graph_commit_id,
            "manifest_branch": self.manifest_branch,
            "manifest_version": self.manifest_version,
            "parent_commit_id": self.parent_commit_id,
            "merged_parent_commit_id": self.merged_parent_commit_id,
            "actor_id": self.actor_id,
            "created_at": self.created_at,
            "kind": self.kind.value,
            "changes_data": self.changes_data,
            "branch": self.branch,
            "incarnation": self.incarnation,
            "schema_digest": self.schema_digest,
        }
        if self.operations:
            content["operations"] = [operation.to_json() for operation in self.operations]
        if self.about is not None:
            content["about"] = self.about
        return content


class History(list[GraphCommit]):
    """Commits, newest first; a notebook shows them as a table."""

    def _repr_html_(self) -> str:
        rows = [(c.graph_commit_id, shown(c.created_at), c.kind.value, c.actor_id, c.branch) for c in self]
        return html_table(("commit", "time", "kind", "actor", "branch"), rows)


@dataclass(frozen=True, slots=True, repr=False)
class Snapshot:
    """One manifest version of one branch: the tables a reader uses, with the schema they were published with."""

    branch: BranchRef
    manifest_version: int
    head: GraphCommit
    schema_digest: str
    tables: Mapping[str, TablePin]

    def pin(self, table_key: str) -> TablePin:
        """The pin of a live table."""
        return self.tables[table_key]

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data, the same on the command line and over HTTP."""
        return {
            "branch": self.branch.name,
            "manifest_version": self.manifest_version,
            "graph_commit_id": self.head.graph_commit_id,
            "schema_digest": self.schema_digest,
            "tables": [
                {
                    "table_key": pin.table_key,
                    "row_count": pin.row_count,
                    "table_version": pin.version,
                    "table_branch": pin.lance_branch,
                    "location": pin.location,
                }
                for _, pin in sorted(self.tables.items())
            ],
        }

    def __repr__(self) -> str:
        rows = ", ".join(f"{key} {counted(pin.row_count, 'row')}" for key, pin in sorted(self.tables.items()))
        return (
            f"<Snapshot of {self.branch.name} at commit {self.head.graph_commit_id} (manifest version "
            f"{self.manifest_version}): {rows or 'no tables'}>"
        )

    def _repr_html_(self) -> str:
        rows = [(key, pin.row_count, pin.version) for key, pin in sorted(self.tables.items())]
        return html_table(("table", "rows", "version"), rows, f"{self.branch.name} at {self.head.graph_commit_id}")
