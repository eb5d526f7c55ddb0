"""The shapes of responses, for the OpenAPI document. Responses themselves are written from the values of the engine."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel


class Conflict(BaseModel):
    """A row that both sides of a merge changed."""

    table_key: str
    row_id: str | None = None
    kind: str
    message: str


class ErrorReply(BaseModel):
    """The body of every error."""

    error: str
    code: str
    kind: str
    merge_conflicts: list[Conflict]
    manifest_conflict: dict[str, Any] | None = None
    violations: list[dict[str, Any]] | None = None
    operation_id: str | None = None
    request_id: str


class Commit(BaseModel):
    """One published state of a graph."""

    graph_commit_id: str
    manifest_branch: str | None
    manifest_version: int
    parent_commit_id: str | None
    merged_parent_commit_id: str | None
    actor_id: str | None
    created_at: int
    kind: str
    changes_data: bool
    branch: str
    incarnation: str
    schema_digest: str
    operations: list[dict[str, Any]] | None = None


class Target(BaseModel):
    """The state that was read."""

    branch: str
    manifest_version: int


class Column(BaseModel):
    """A column of a result."""

    name: str
    type: str
    nullable: bool


class QueryReply(BaseModel):
    """The rows of a read query."""

    query_name: str
    target: Target
    columns: list[Column]
    row_count: int
    graph_commit_id: str
    rows: list[dict[str, Any]]


class StepOfQuery(BaseModel):
    """One step of a plan; rows and seconds of a run."""

    step: str
    what: str
    depth: int
    estimated_rows: float | None
    choice: str | None
    rows: int | None
    seconds: float | None


class RunOfQuery(BaseModel):
    """The figures of a run."""

    rows: int
    seconds: float
    planning_seconds: float
    peak_bytes: int


class PlanOfQuery(BaseModel):
    """How a read query runs."""

    query: str
    steps: list[StepOfQuery]
    run: RunOfQuery | None


class MutateReply(BaseModel):
    """What a mutation did."""

    branch: str
    query_name: str
    affected_nodes: int
    affected_edges: int
    inserted_ids: dict[str, list[str]]
    actor_id: str | None = None
    commit: Commit | None


class TableLoad(BaseModel):
    """Rows that a table has taken."""

    table_key: str
    rows_loaded: int


class LoadReply(BaseModel):
    """What a load brought in."""

    uri: str
    branch: str
    base_branch: str | None
    branch_created: bool
    mode: str
    tables: list[TableLoad]
    commit: Commit | None


class EmbeddedProperty(BaseModel):
    """A property whose vectors were made, or would be."""

    table_key: str
    property: str
    source: str
    model: str | None
    rows: int
    tokens: int
    rows_ready: int
    rows_cleared: int


class EmbedReply(BaseModel):
    """What was embedded, or would be."""

    uri: str
    branch: str
    mode: str
    dry_run: bool
    rows: int
    tokens: int
    properties: list[EmbeddedProperty]
    commit: Commit | None
    engine: str


class TableState(BaseModel):
    """A table of a snapshot."""

    table_key: str
    row_count: int
    table_version: int
    table_branch: str | None
    location: str


class SnapshotReply(BaseModel):
    """What a state publishes."""

    branch: str
    manifest_version: int
    graph_commit_id: str
    schema_digest: str
    tables: list[TableState]


class EntityReply(BaseModel):
    """One node or edge, or null."""

    entity: dict[str, Any] | None


class SchemaReply(BaseModel):
    """The schema of a graph."""

    schema_source: str
    schema_digest: str


class PlanReply(BaseModel):
    """The steps from the schema of a graph to another one."""

    supported: bool
    steps: list[dict[str, Any]]


class SchemaApplyReply(BaseModel):
    """What applying a schema did."""

    uri: str
    supported: bool
    applied: bool
    step_count: int
    steps: list[dict[str, Any]]
    manifest_version: int | None


class Branch(BaseModel):
    """A branch."""

    name: str
    source_branch: str | None
    source_commit: str | None
    created_by: str | None
    created_at: int | None
    head: str | None = None


class BranchesReply(BaseModel):
    """The branches that the caller may read."""

    branches: list[Branch]


class DeletedReply(BaseModel):
    """What was deleted."""

    name: str
    deleted: bool


class Counts(BaseModel):
    """How many entities of a type differ."""

    table_key: str
    inserts: int
    updates: int
    deletes: int


class MergeReply(BaseModel):
    """What a merge did, or would do."""

    source: str
    target: str
    outcome: str
    dry_run: bool
    tables: list[Counts]
    merge_conflicts: list[Conflict]
    commit: Commit | None
    source_deleted: bool


class CommitsReply(BaseModel):
    """Commits, newest first."""

    commits: list[Commit]


class ChangesReply(BaseModel):
    """Counts of changes, then the changes."""

    summary: list[Counts]
    changes: list[dict[str, Any]]


class FeedReply(BaseModel):
    """A stretch of the change feed, and where the next one starts."""

    blocks: list[dict[str, Any]]
    cursor: str


class Parameter(BaseModel):
    """A parameter of a stored query."""

    name: str
    kind: str
    item_kind: str | None = None
    vector_dim: int | None = None
    nullable: bool


class StoredQueryEntry(BaseModel):
    """A stored query of the catalog."""

    name: str
    tool_name: str
    description: str | None
    instruction: str | None
    mutates: bool
    parameters: list[Parameter]


class CatalogReply(BaseModel):
    """The stored queries of a graph."""

    queries: list[StoredQueryEntry]


class GraphEntry(BaseModel):
    """A graph of the server."""

    id: str
    status: str
    reason: str | None = None


class GraphsReply(BaseModel):
    """The graphs of the server."""

    graphs: list[GraphEntry]
    revision: int | None = None


class HealthReply(BaseModel):
    """The server runs."""

    status: str


class ReloadReply(BaseModel):
    """Policies and stored queries were read again."""

    reloaded: bool
    revision: int | None = None
