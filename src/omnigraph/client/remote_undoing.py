"""Taking things back on a graph behind a server: revert, restore, cherry-pick."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from omnigraph.choices import Engine, Granularity, Strategy, Target
from omnigraph.client.remote_held import RemoteHeld
from omnigraph.client.wire_arguments import answers, state_name

if TYPE_CHECKING:
    from omnigraph.merge.undo.undo_result import UndoResult


class RemoteUndoing(RemoteHeld):
    """Undo; `RemoteGraph` does it."""

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
    ) -> UndoResult:
        """Take back what a commit, or each of a range `a..b`, changed on a branch: one new commit."""
        body = {
            "commit": commit,
            "branch": self._place(branch),
            "strategy": strategy,
            "resolutions": answers(resolutions),
            "dry_run": dry_run,
            "granularity": granularity,
        }
        return self._undone("/revert", body)

    def restore(
        self, to: Target, *, branch: str | None = None, dry_run: bool = False, engine: Engine = "auto"
    ) -> UndoResult:
        """Make the state of a commit, a tag or a time the state of a branch again: one new commit."""
        return self._undone("/restore", {"to": state_name(to), "branch": self._place(branch), "dry_run": dry_run})

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
    ) -> UndoResult:
        """Bring what a commit, or each of a range `a..b`, changed to a branch: one new commit."""
        body = {
            "commit": commit,
            "into": self._place(into),
            "strategy": strategy,
            "resolutions": answers(resolutions),
            "dry_run": dry_run,
            "granularity": granularity,
        }
        return self._undone("/cherry-pick", body)

    def _undone(self, path: str, body: Mapping[str, Any]) -> UndoResult:
        from omnigraph.client.wire_values import undo_result

        return undo_result(self._transport.post(path, body))
