"""What a revert, a restore or a cherry-pick did, or with a dry run would do."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from omnigraph.ledger.values import GraphCommit
from omnigraph.merge.changes import EntityChange, TypeCount
from omnigraph.merge.decide.conflicts import MergeConflict
from omnigraph.notebook import counted, html_table


class UndoOutcome(StrEnum):
    """How it ended."""

    DONE = "done"
    NOTHING_TO_DO = "nothing_to_do"
    """The branch is as it would be afterwards; no commit."""
    CONFLICTS = "conflicts"
    """Only of a dry run: rows collide, and it would be refused."""


@dataclass(frozen=True, repr=False)
class UndoResult:
    """`operation` is revert, restore or cherry_pick, `about` the commit or the range `a..b` of commits.

    `commit` is None when nothing was published. A restore that was carried out has no counts: it looked at no row.
    """

    operation: str
    about: str
    branch: str
    outcome: UndoOutcome
    commit: GraphCommit | None
    tables: tuple[TypeCount, ...] = ()
    conflicts: tuple[MergeConflict, ...] = ()
    dry_run: bool = False
    engine: str = "local"
    changes: Iterable[EntityChange] = ()
    """With `dry_run`: every change that would be made, streamed each time it is iterated."""

    def __repr__(self) -> str:
        parts = [self.outcome.value.replace("_", " ")]
        parts += [f"{counted(len(self.conflicts), 'conflict')}, nothing can be done"] if self.conflicts else []
        rows = sum(count.total for count in self.tables)
        parts += [f"{counted(rows, 'row')} in {counted(len(self.tables), 'table')}"] if rows else []
        parts += [f"commit {self.commit.graph_commit_id}"] if self.commit else []
        parts += ["dry run"] if self.dry_run else []
        return f"<UndoResult {self.operation} {self.about} on {self.branch}: {', '.join(parts)}>"

    def _repr_html_(self) -> str:
        rows = [(count.table_key, count.inserts, count.updates, count.deletes) for count in self.tables]
        return html_table(("table", "inserts", "updates", "deletes"), rows, repr(self).strip("<>"))

    def to_json(self) -> dict[str, Any]:
        """The response of the commands of this name."""
        return {
            "operation": self.operation,
            "about": self.about,
            "branch": self.branch,
            "outcome": self.outcome.value,
            "dry_run": self.dry_run,
            "tables": [count.to_json() for count in self.tables],
            "merge_conflicts": [conflict.to_json() for conflict in self.conflicts],
            "commit": self.commit.to_json() if self.commit else None,
            "engine": self.engine,
        }
