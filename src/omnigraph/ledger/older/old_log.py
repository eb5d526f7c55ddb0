"""The history of an old graph: its commits, which lie on one Lance branch per graph branch, and their actors.

Actors are in a dataset of their own, made when the first commit had one. A branch that was deleted took its commits
with it, so a merge may name a second parent that nobody has.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from omnigraph.ledger.history.log_rows import LOG
from omnigraph.ledger.values import RECOVERY_ACTOR, WriterKind
from omnigraph.storage.lance_errors import TableNotFound
from omnigraph.storage.tables import TableStore
from omnigraph.storage.values import TableVersion

ACTORS = "_graph_commit_actors.lance"
COLUMNS = (
    "graph_commit_id",
    "manifest_branch",
    "manifest_version",
    "parent_commit_id",
    "merged_parent_commit_id",
    "actor_id",
    "created_at",
)


def read_log(tables: TableStore) -> list[dict[str, Any]]:
    """Every commit of every branch, once, with its actor; times are microseconds."""
    try:
        main = tables.head(LOG)
    except TableNotFound:
        return []
    actors = _actors(tables)
    found: dict[str, dict[str, Any]] = {}
    # The main line first: when it is converted already, it has everything.
    for line in (main, *(tables.head(LOG, fork.name) for fork in tables.list_forks(LOG))):
        for row in rows_with_times(tables, line, (*COLUMNS, "kind")):
            commit_id = row["graph_commit_id"]
            row["actor_id"] = row["actor_id"] or actors.get(commit_id)
            row["kind"] = row["kind"] or _kind(row)
            found.setdefault(commit_id, row)
    return list(found.values())


def rows_with_times(tables: TableStore, table: TableVersion, columns: tuple[str, ...]) -> list[dict[str, Any]]:
    """The rows of one of the old graph's own tables; a column that it does not have is None, a time is a number."""
    there = tables.schema(table).names
    found = tables.scan_table(table, columns=[name for name in columns if name in there])
    for position, field in enumerate(found.schema):
        if pa.types.is_timestamp(field.type):
            micros = found[field.name].cast(pa.timestamp("us")).cast(pa.int64())
            found = found.set_column(position, field.name, micros)
    return [{name: row.get(name) for name in columns} for row in found.to_pylist()]


def _actors(tables: TableStore) -> dict[str, str]:
    try:
        rows = rows_with_times(tables, tables.head(ACTORS), ("graph_commit_id", "actor_id"))
    except TableNotFound:
        return {}
    return {row["graph_commit_id"]: row["actor_id"] for row in rows}


def _kind(row: dict[str, Any]) -> WriterKind:
    """Who made a commit, as far as an old log tells."""
    if row["merged_parent_commit_id"] is not None:
        return WriterKind.BRANCH_MERGE
    return WriterKind.RECOVERY if row["actor_id"] == RECOVERY_ACTOR else WriterKind.MUTATION
