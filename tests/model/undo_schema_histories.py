"""Histories in which people change their minds about the schema too: undo across schemas, among all the other steps.

What the schema of a commit is expected to be follows from the commit alone: a merge, a revert and a cherry-pick are
three-way merges of the names that each property had, thing by thing, and a restore has what it went back to. Types do
not get wider here: whether that can be taken back hangs on who touched the table since.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from omnigraph.ledger.values import GraphCommit, WriterKind
from tests.model.graph_model import GraphModel
from tests.model.history_model import UNKNOWN, _three_way
from tests.model.schema_histories import DROPPED, Extras, SchemaMachine
from tests.model.undo_histories import UndoMachine


class Clash(Exception):
    """Both sides changed one property, in different ways."""


class UndoSchemaMachine(UndoMachine, SchemaMachine):
    """A graph and a model, given the same history with undo and changes of the schema."""

    def extras(self, commit_id: str) -> Extras:
        if not hasattr(self, "set_at"):
            self.set_at, self.renamed, self.dropped, self.made = {}, set(), set(), 0
        if commit_id not in self.set_at:
            self.set_at[commit_id] = self.worked_out(self.graph.commit(commit_id))
        return self.set_at[commit_id]

    def worked_out(self, commit: GraphCommit) -> Extras:
        parent, about = commit.parent_commit_id, commit.about
        if parent is None:
            return {}
        if commit.merged_parent_commit_id is not None:
            bases = self.history.best_common([commit.merged_parent_commit_id], parent)
            return self.brought_extras(bases, commit.merged_parent_commit_id, parent)
        if about is None:
            return self.extras(parent)
        if commit.kind is WriterKind.RESTORE:
            return self.extras(about)
        before = self.graph.commit(about).parent_commit_id
        assert before is not None
        base, source = (about, before) if commit.kind is WriterKind.REVERT else (before, about)
        return self.brought_extras([base], source, parent)

    def brought_extras(self, bases: Sequence[str], source: str, target: str) -> Extras:
        """The properties of the target with what changed from the bases to the source."""
        numbers = {number for commit in (*bases, source, target) for number in self.extras(commit)}
        found = {
            n: _three_way(self.base_extra(bases, n), self.extra(source, n), self.extra(target, n)) for n in numbers
        }
        if UNKNOWN in found.values():
            raise Clash(f"{found}")
        return {number: rank for number, rank in found.items() if rank is not None}

    def extra(self, commit_id: str, number: int) -> Any:
        """How a property is called at a commit; None when it is not there."""
        rank = self.extras(commit_id).get(number)
        return None if rank == DROPPED else rank

    def base_extra(self, commits: Sequence[str], number: int) -> Any:
        current = self.extra(commits[0], number)
        for position in range(1, len(commits)):
            other = self.extra(commits[position], number)
            if current == UNKNOWN:
                return UNKNOWN
            if current != other:
                older = self.history.best_common(commits[:position], commits[position])
                current = _three_way(self.base_extra(older, number) if older else None, other, current)
        return current

    def planned(self, branch: str, what: str, which: int) -> tuple[str, Extras] | None:
        return None if what == "widen" else super().planned(branch, what, which)

    def merged(
        self, from_: str, into: str, strategy: str | None, granularity: str = "row"
    ) -> tuple[tuple[str, str], GraphModel | None, Exception | None]:
        heads, expected, refused = super().merged(from_, into, strategy, granularity)
        if expected is None and refused is None:
            return heads, None, None
        try:
            self.brought_extras(self.history.best_common([heads[0]], heads[1]), *heads)
        except Clash as clash:
            return heads, None, clash
        return heads, expected, refused

    def brought(
        self, branch: str, base: str, source: str, strategy: str | None, granularity: str
    ) -> tuple[GraphModel | None, Exception | None]:
        try:
            self.brought_extras([base], source, self.graph.head(branch).graph_commit_id)
        except Clash as clash:
            return None, clash
        return super().brought(branch, base, source, strategy, granularity)
