"""The part of the Graph that operators use: optimize, repair, cleanup, verify, tags. Thin, like the rest of it."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any

from omnigraph.choices import Engine
from omnigraph.engines import maintenance_workers
from omnigraph.errors import BadRequest
from omnigraph.handle.held import Held
from omnigraph.policy.actions import Action

if TYPE_CHECKING:
    from omnigraph.maintain.cleanup import CleanupResult
    from omnigraph.maintain.optimize.optimize import MaintenanceResult
    from omnigraph.maintain.optimize.workers import Workers
    from omnigraph.maintain.relocate import RelocateReport
    from omnigraph.maintain.repair import RepairReport
    from omnigraph.maintain.tags import Tags
    from omnigraph.maintain.verify import VerifyReport


class Maintenance(Held):
    """Maintenance of an open graph; `Graph` is one."""

    def ensure_indices(
        self, branch: str | None = None, *, engine: Engine = "auto", actor: str | None = None
    ) -> MaintenanceResult:
        """Build the declared indexes that are missing and extend those that lag, in one commit."""
        from omnigraph.maintain.optimize.optimize import ensure_indices

        self._allow(Action.ADMIN, actor)
        name = self._place(branch)
        return ensure_indices(
            self._store,
            name,
            actor=actor or self._actor,
            workers=maintenance_workers(
                engine, self.uri, self._store.snapshot(branch=name, operation="ensure indices")
            ),
        )

    def optimize(
        self,
        branch: str | None = None,
        *,
        tables: Collection[str] | None = None,
        engine: Engine = "auto",
        actor: str | None = None,
        progress: Callable[[Any], None] | None = None,
    ) -> MaintenanceResult:
        """Compact small fragments and bring indexes up to date, all tables in one commit. Changes no data."""
        from omnigraph.maintain.optimize.optimize import optimize

        self._allow(Action.ADMIN, actor)
        name = self._place(branch)
        return optimize(
            self._store,
            name,
            tables=tables,
            actor=actor or self._actor,
            workers=self._workers(engine, name, "optimize"),
            progress=progress,
        )

    def _workers(self, engine: Engine, branch: str, operation: str) -> Workers:
        """Where the heavy part of a maintenance of a branch runs."""
        return maintenance_workers(engine, self.uri, self._store.snapshot(branch=branch, operation=operation))

    def repair(
        self,
        *,
        confirm: bool = False,
        force: bool = False,
        restore: bool = False,
        set_aside: bool = False,
        actor: str | None = None,
    ) -> RepairReport:
        """Report drift and unfinished writes that recovery refused; `confirm` mends what is safe.

        With `force` the rest is published as it stands too, or, with `restore`, put back to what is published. With
        `set_aside` sidecars that recovery refuses are moved away and their tables left as they are.
        """
        from omnigraph.maintain.repair import repair

        self._allow(Action.ADMIN, actor)
        who = actor or self._actor
        return repair(self._store, confirm=confirm, force=force, restore=restore, set_aside=set_aside, actor=who)

    def cleanup(
        self,
        *,
        keep_versions: int | None = None,
        older_than: float | str | None = None,
        confirm: bool = False,
        force: bool = False,
        actor: str | None = None,
    ) -> CleanupResult:
        """Remove history that no branch, tag or retained commit needs; without `confirm` only tell what would go.

        `keep_versions` commits of each branch stay; `older_than` is in seconds, or a text such as `30d`. With both, a
        commit goes only if it is past both.
        """
        from omnigraph.maintain.cleanup import cleanup

        self._allow(Action.ADMIN, actor)
        age = _seconds(older_than) if isinstance(older_than, str) else older_than
        return cleanup(
            self._store,
            keep_versions=keep_versions,
            older_than=age,
            confirm=confirm,
            force=force,
            actor=actor or self._actor,
        )

    def verify(self, *, deep: bool = False, actor: str | None = None) -> VerifyReport:
        """Read everything and check it: pins, row counts, ids, endpoints, history, leftovers. Changes nothing.

        `deep` also compares every file with the checksum that its commit recorded.
        """
        from omnigraph.maintain.verify import verify

        self._allow(Action.ADMIN, actor)
        return verify(self._store, deep=deep)

    def relocate(self, *, confirm: bool = False, actor: str | None = None) -> RelocateReport:
        """Make every version of a moved graph name the place where it lies now; without `confirm`, only count them.

        A moved graph works without. Afterwards comparing its older states is as quick as before it was moved.
        """
        from omnigraph.maintain.relocate import relocate

        self._allow(Action.ADMIN, actor)
        return relocate(self._store, confirm=confirm)

    @property
    def tags(self) -> Tags:
        """Names for commits: `tags.create(name, target)`, `tags.list()`, `tags.delete(name)`."""
        from omnigraph.maintain.tags import Tags

        return Tags(self._store, self._branch, self._actor, allow=self._allow_tags)

    def _allow_tags(self, writes: bool, actor: str | None) -> None:
        if writes:
            self._allow(Action.ADMIN, actor)
        else:
            self._allow(Action.READ, actor, branch=self._branch)


def _seconds(text: str) -> float:
    from omnigraph.config import parse_duration

    try:
        return parse_duration(text)
    except ValueError as error:
        raise BadRequest(f"older_than: {error}") from None
