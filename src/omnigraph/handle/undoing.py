"""The part of the Graph that takes things back: revert, restore, cherry-pick. Thin, like the rest of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from omnigraph.choices import Engine, Granularity, Strategy, Target
from omnigraph.engines import row_placement
from omnigraph.handle.held import Held
from omnigraph.policy.actions import Action

if TYPE_CHECKING:
    from omnigraph.merge.placement import Placement
    from omnigraph.merge.undo.undo_result import UndoResult


class Undoing(Held):
    """Undo on an open graph; `Graph` does it."""

    def revert(
        self,
        commit: str,
        *,
        branch: str | None = None,
        strategy: Strategy | None = None,
        resolutions: Mapping[tuple[str, str], Any] | None = None,
        dry_run: bool = False,
        granularity: Granularity | None = None,
        engine: Engine = "auto",
        actor: str | None = None,
    ) -> UndoResult:
        """Take back what a commit, or each of a range `a..b`, changed on a branch: one new commit.

        Rows that changed again since are conflicts: `strategy` ours keeps them, theirs puts the older ones back. The
        other arguments are as for `merge`.
        """
        from omnigraph.merge.undo.revert import revert

        onto = self._place(branch)
        self._allow(Action.CHANGE, actor, branch=onto)
        return revert(
            self._store,
            commit,
            onto,
            strategy=strategy,
            resolutions=resolutions,
            dry_run=dry_run,
            granularity=granularity,
            actor=actor or self._actor,
            placement=self._rows_of("revert", onto, engine),
            before_schema=lambda: self._allow(Action.SCHEMA_APPLY, actor, target=onto),
        )

    def restore(
        self,
        to: Target,
        *,
        branch: str | None = None,
        dry_run: bool = False,
        engine: Engine = "auto",
        actor: str | None = None,
    ) -> UndoResult:
        """Make the state of a commit, a tag or a time the state of a branch again: one new commit, without conflicts.

        It takes the time of the number of tables, not of rows. The schema of that state comes back too.
        """
        from omnigraph.merge.undo.restore import restore

        onto = self._place(branch)
        self._allow(Action.CHANGE, actor, branch=onto)
        self._may_bring(to, onto, actor)
        return restore(
            self._store,
            to,
            onto,
            dry_run=dry_run,
            actor=actor or self._actor,
            placement=self._rows_of("restore", onto, engine),
            before_schema=lambda: self._allow(Action.SCHEMA_APPLY, actor, target=onto),
        )

    def cherry_pick(
        self,
        commit: str,
        *,
        into: str | None = None,
        strategy: Strategy | None = None,
        resolutions: Mapping[tuple[str, str], Any] | None = None,
        dry_run: bool = False,
        granularity: Granularity | None = None,
        engine: Engine = "auto",
        actor: str | None = None,
    ) -> UndoResult:
        """Bring what a commit, or each of a range `a..b`, changed to a branch: one new commit. Otherwise as `merge`."""
        from omnigraph.merge.undo.revert import cherry_pick

        onto = self._place(into)
        self._allow(Action.CHANGE, actor, branch=onto)
        self._may_bring(commit, onto, actor)
        return cherry_pick(
            self._store,
            commit,
            onto,
            strategy=strategy,
            resolutions=resolutions,
            dry_run=dry_run,
            granularity=granularity,
            actor=actor or self._actor,
            placement=self._rows_of("cherry-pick", onto, engine),
            before_schema=lambda: self._allow(Action.SCHEMA_APPLY, actor, target=onto),
        )

    def _rows_of(self, operation: str, onto: str, engine: Engine) -> Placement:
        """Where the rows of an undo are compared and written."""
        state = self._store.snapshot(branch=onto, operation=operation)
        return row_placement(engine, operation, state, place=f"{onto} of {self.uri}")

    def _may_bring(self, given: Target, branch: str, actor: str | None) -> None:
        """Whoever brings the state of another branch must be allowed to read that."""
        if self._policy is None or given is None:
            return
        for target in given.split("..") if isinstance(given, str) else [given]:
            found = self._store.snapshot(target or None, branch=branch, operation="undo")
            if found.branch.name != branch:
                self._allow(Action.READ, actor, branch=found.branch.name)

    @property
    def granularity(self) -> str:
        """How fine the changes are that can collide where a merge is not told: the graph's choice, or the setting."""
        from omnigraph.ledger.graph_choices import merge_granularity

        return merge_granularity(self._store)

    def set_granularity(self, granularity: Granularity | None, *, actor: str | None = None) -> None:
        """Keep with the graph how fine the changes are that can collide in merges; None leaves it to the settings."""
        from omnigraph.ledger.graph_choices import set_merge_granularity

        self._allow(Action.ADMIN, actor)
        set_merge_granularity(self._store, granularity)
