"""Histories in which people change their minds: reverts, restores and cherry-picks among all the other steps.

What is expected is the model's own merge of whole states, over the commit or over its first parent.
"""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import strategies as st
from hypothesis.stateful import rule

from omnigraph.errors import HistoryGap, MergeConflicts, NotFound, StorageError
from omnigraph.ledger.values import GraphCommit
from omnigraph.merge.undo.undo_result import UndoResult
from tests.model.graph_model import GraphModel, Refused
from tests.model.histories import HistoriesMachine, _branch, _death, _id
from tests.model.history_model import Collides
from tests.model.steps import Step

_back = st.integers(0, 8)
_strategy = st.sampled_from([None, None, "ours", "theirs"])
_granularity = st.sampled_from(["row", "property"])


class UndoMachine(HistoriesMachine):
    """A graph and a model, given the same history with undo."""

    def chosen(self, branch: str, back: int) -> GraphCommit | None:
        """A commit of the past of a branch that has something before it."""
        found = [c for c in self.graph.log(branch) if c.graph_commit_id in self.history.commits]
        commit = found[back % len(found)]
        return commit if commit.parent_commit_id in self.history.commits else None

    def brought(
        self, branch: str, base: str, source: str, strategy: str | None, granularity: str
    ) -> tuple[GraphModel | None, Exception | None]:
        """What the model says of bringing everything that changed from one commit to another to a branch."""
        head = self.graph.head(branch).graph_commit_id
        try:
            return self.history.brought([base], source, head, strategy, granularity), None
        except (Refused, Collides) as error:
            return None, error

    def undone(
        self, branch: str, expected: GraphModel | None, refused: Exception | None, work: Callable[[], UndoResult]
    ) -> None:
        """Do it on the graph: the same happens there."""
        try:
            result = work()
        except MergeConflicts as error:
            reason, conflicts = str(error), error.conflicts
            assert refused is not None, f"the graph refused what the model does: {reason}"
            if isinstance(refused, Collides):
                found = {(c.table_key, c.row_id) for c in conflicts if c.kind.value.startswith("D")}
                assert found == {(table, _id(table, key)) for table, key in refused.keys}
            return
        except (HistoryGap, NotFound, StorageError):
            deleted = len(self.made_from) < len({c.incarnation for c in self.graph.log(branch)})
            assert self.is_cleaned or deleted
            self.check_all()
            return
        assert refused is None, f"the graph did what the model refuses: {refused}"
        assert expected is not None
        if result.commit is None:
            assert expected.tables == self.states[branch].tables
        self.states[branch] = expected
        self.note(branch)
        self.check_all()

    @rule(number=_branch, back=_back, strategy=_strategy, granularity=_granularity)
    def revert(self, number: int, back: int, strategy: str | None, granularity: str) -> None:
        branch = self.branch(number)
        commit = self.chosen(branch, back)
        if commit is None or commit.parent_commit_id is None:
            return
        model = self.brought(branch, commit.graph_commit_id, commit.parent_commit_id, strategy, granularity)
        options = {"branch": branch, "strategy": strategy, "granularity": granularity}
        self.undone(branch, *model, lambda: self.graph.revert(commit.graph_commit_id, **options))

    @rule(number=_branch, other=_branch, back=_back, strategy=_strategy, granularity=_granularity)
    def cherry_pick(self, number: int, other: int, back: int, strategy: str | None, granularity: str) -> None:
        branch = self.branch(number)
        commit = self.chosen(self.branch(other), back)
        if commit is None or commit.parent_commit_id is None:
            return
        model = self.brought(branch, commit.parent_commit_id, commit.graph_commit_id, strategy, granularity)
        options = {"into": branch, "strategy": strategy, "granularity": granularity}
        self.undone(branch, *model, lambda: self.graph.cherry_pick(commit.graph_commit_id, **options))

    @rule(number=_branch, other=_branch, back=_back)
    def restore(self, number: int, other: int, back: int) -> None:
        branch = self.branch(number)
        commit = self.chosen(self.branch(other), back)
        if commit is None:
            return
        state = self.history.commits[commit.graph_commit_id].state.copy()
        self.undone(branch, state, None, lambda: self.graph.restore(commit.graph_commit_id, branch=branch))

    @rule(number=_branch, back=_back, call=st.sampled_from(["revert", "restore"]), death=_death)
    def undo_killed(self, number: int, back: int, call: str, death: object) -> None:
        branch = self.branch(number)
        commit = self.chosen(branch, back)
        if commit is None or commit.parent_commit_id is None or self.is_cleaned:
            return
        if commit.incarnation != self.graph.snapshot(branch=branch).branch.incarnation:
            return  # The rows of a branch that is gone may be gone too.
        expected: GraphModel | None = self.history.commits[commit.graph_commit_id].state.copy()
        refused: Exception | None = None
        if call == "revert":
            parent = commit.parent_commit_id
            expected, refused = self.brought(branch, commit.graph_commit_id, parent, None, "row")
        step = Step(call, (commit.graph_commit_id,), {"branch": branch})
        end = self.killed(step, death)  # type: ignore[arg-type]
        self.follow(branch, end, expected or self.states[branch], refused is not None)
