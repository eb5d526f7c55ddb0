"""What a write gives back: plain values, and the JSON that the command line and the server print."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from omnigraph.ledger.values import GraphCommit, StreamBatch


@dataclass(frozen=True, slots=True)
class MutationResult:
    """How many nodes and edges a mutation changed, and the commit that it made: None when it changed nothing."""

    branch: str
    query_name: str
    affected_nodes: int
    affected_edges: int
    commit: GraphCommit | None
    actor_id: str | None = None
    inserted_ids: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The ids of rows that are new, by table key; the first thousand."""
    operation_id: str | None = None
    """What its commit lists it as, when that is a combined one."""

    def to_json(self) -> dict[str, Any]:
        """The response of `mutate`."""
        body: dict[str, Any] = {
            "branch": self.branch,
            "query_name": self.query_name,
            "affected_nodes": self.affected_nodes,
            "affected_edges": self.affected_edges,
            "inserted_ids": {key: list(ids) for key, ids in self.inserted_ids.items()},
        }
        if self.actor_id is not None:
            body["actor_id"] = self.actor_id
        if self.operation_id is not None:
            body["operation_id"] = self.operation_id
        body["commit"] = self.commit.to_json() if self.commit is not None else None
        return body


@dataclass(frozen=True, slots=True)
class TableLoad:
    """How many rows of the input one table has taken, records with the same id counted once."""

    table_key: str
    rows_loaded: int

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data."""
        return {"table_key": self.table_key, "rows_loaded": self.rows_loaded}


@dataclass(frozen=True, slots=True)
class PendingIndex:
    """A declared index that does not cover the rows of a load yet. Queries are right without it."""

    table_key: str
    property: str

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data."""
        return {"table_key": self.table_key, "property": self.property}


@dataclass(frozen=True, slots=True)
class LoadMetrics:
    """What a load on Spark took: seconds per step, in order, and what its tasks wrote for each other to read.

    `bytes` are those of files that tasks read; of other input only the records are counted. `shuffle_bytes` is None
    where Spark does not tell.
    """

    records: int
    bytes: int
    seconds: float
    steps: tuple[tuple[str, float], ...]
    tasks: int
    shuffle_bytes: int | None = None

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data."""
        return {
            "records": self.records,
            "bytes": self.bytes,
            "seconds": self.seconds,
            "steps": dict(self.steps),
            "tasks": self.tasks,
            "shuffle_bytes": self.shuffle_bytes,
        }


@dataclass(frozen=True, slots=True)
class LoadResult:
    """What a load brought in, and the one commit that it made: None when the graph had it all already."""

    uri: str
    branch: str
    base_branch: str | None
    branch_created: bool
    mode: str
    tables: tuple[TableLoad, ...]
    commit: GraphCommit | None
    engine: str = "local"
    pending_indexes: tuple[PendingIndex, ...] = ()
    actor_id: str | None = None
    batch: StreamBatch | None = None
    """The batch of a stream that it was."""
    skipped: bool = False
    """Whether the branch had that batch already, so that nothing was loaded."""
    metrics: LoadMetrics | None = field(default=None, compare=False)
    """What it took, on Spark."""

    @property
    def rows_loaded(self) -> int:
        """The rows of all tables together."""
        return sum(table.rows_loaded for table in self.tables)

    def to_json(self) -> dict[str, Any]:
        """The response of `load`."""
        content: dict[str, Any] = {
            "uri": self.uri,
            "branch": self.branch,
            "base_branch": self.base_branch,
            "branch_created": self.branch_created,
            "mode": self.mode,
            "tables": [table.to_json() for table in self.tables],
            "commit": self.commit.to_json() if self.commit is not None else None,
            "engine": self.engine,
            "pending_indexes": [index.to_json() for index in self.pending_indexes],
        }
        if self.batch is not None:
            content |= {"batch": self.batch.to_json(), "skipped": self.skipped}
        if self.metrics is not None:
            content["metrics"] = self.metrics.to_json()
        return content
