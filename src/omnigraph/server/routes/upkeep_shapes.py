"""The shapes of responses to operators, and to those who take things back, for the OpenAPI document."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from omnigraph.server.routes.reply_shapes import Commit, Conflict, Counts


class UndoReply(BaseModel):
    """What a revert, a restore or a cherry-pick did, or would do; a dry run has the `changes` too."""

    operation: str
    about: str
    branch: str
    outcome: str
    dry_run: bool
    tables: list[Counts]
    merge_conflicts: list[Conflict]
    commit: Commit | None
    engine: str


class Tag(BaseModel):
    """A name for a commit."""

    name: str
    graph_commit_id: str
    created_by: str | None
    created_at: int


class TagsReply(BaseModel):
    """The tags, sorted by name."""

    tags: list[Tag]


class MaintenanceReply(BaseModel):
    """What an optimize or an index build did."""

    branch: str
    tables: list[dict[str, Any]]
    commit: Commit | None
    engine: str


class CleanupReply(BaseModel):
    """What a cleanup did, or would do."""

    preview: bool
    commits_kept: int
    tables: list[dict[str, Any]]


class VerifyReply(BaseModel):
    """What was read and what was found."""

    ok: bool
    branches: int
    tables: int
    rows: int
    commits: int
    findings: list[dict[str, Any]]


class RecoveriesReply(BaseModel):
    """What recovery did, oldest first."""

    recoveries: list[dict[str, Any]]
