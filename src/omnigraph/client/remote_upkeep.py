"""What operators do to a graph behind a server: tags, optimize, indexes, cleanup, verify, recoveries."""

from __future__ import annotations

import builtins
from collections.abc import Collection
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from omnigraph.choices import Engine, Target
from omnigraph.client.remote_held import RemoteHeld
from omnigraph.client.transport import Transport
from omnigraph.client.wire_arguments import state_name

if TYPE_CHECKING:
    from omnigraph.ledger.branches.refs import TagRef
    from omnigraph.ledger.recovery.audit import RecoveryRecord
    from omnigraph.maintain.cleanup import CleanupResult
    from omnigraph.maintain.optimize.optimize import MaintenanceResult
    from omnigraph.maintain.verify import VerifyReport


class RemoteTags:
    """Names for commits: `create`, `list`, `delete`."""

    def __init__(self, transport: Transport, branch: str) -> None:
        self._transport = transport
        self._branch = branch

    def create(self, name: str, target: Target = None) -> TagRef:
        """Name the commit of a target: a branch, a commit, another tag; by default the head of the handle's branch."""
        from omnigraph.client.wire_upkeep import tag

        body = {"name": name, "target": state_name(target) or self._branch}
        return tag(self._transport.post("/tags", body))

    def list(self) -> builtins.list[TagRef]:
        """All tags, sorted by name."""
        from omnigraph.client.wire_upkeep import tag

        return [tag(found) for found in self._transport.get("/tags")["tags"]]

    def delete(self, name: str) -> None:
        """Remove a tag. The commit stays until `cleanup`."""
        self._transport.delete(f"/tags/{quote(name, safe='')}")


class RemoteUpkeep(RemoteHeld):
    """Maintenance; `RemoteGraph` does it. `repair` and `relocate` are for who has the store."""

    @property
    def tags(self) -> RemoteTags:
        """Names for commits: `tags.create(name, target)`, `tags.list()`, `tags.delete(name)`."""
        return RemoteTags(self._transport, self._branch)

    def ensure_indices(self, branch: str | None = None, *, engine: Engine = "auto") -> MaintenanceResult:
        """Build the declared indexes that are missing and extend those that lag, in one commit."""
        from omnigraph.client.wire_upkeep import maintenance_result

        return maintenance_result(self._transport.post("/ensure-indices", {"branch": self._place(branch)}))

    def optimize(
        self,
        branch: str | None = None,
        *,
        tables: Collection[str] | None = None,
        engine: Engine = "auto",
        progress: Any = None,
    ) -> MaintenanceResult:
        """Compact small fragments and bring indexes up to date, all tables in one commit. Changes no data."""
        from omnigraph.client.wire_upkeep import maintenance_result

        body = {"branch": self._place(branch), "tables": list(tables) if tables else None}
        return maintenance_result(self._transport.post("/optimize", body))

    def cleanup(
        self,
        *,
        keep_versions: int | None = None,
        older_than: float | str | None = None,
        confirm: bool = False,
        force: bool = False,
    ) -> CleanupResult:
        """Remove history that no branch, tag or retained commit needs; without `confirm` only tell what would go."""
        from omnigraph.client.wire_upkeep import cleanup_result

        body = {"keep_versions": keep_versions, "older_than": older_than, "confirm": confirm, "force": force}
        return cleanup_result(self._transport.post("/cleanup", body))

    def verify(self, *, deep: bool = False) -> VerifyReport:
        """Read everything and check it. Changes nothing."""
        from omnigraph.client.wire_upkeep import verify_report

        return verify_report(self._transport.post("/verify", {"deep": deep}))

    def recoveries(self) -> list[RecoveryRecord]:
        """What recovery did, oldest first: one record for each unfinished write that was resolved."""
        from omnigraph.client.wire_upkeep import recovery

        return [recovery(found) for found in self._transport.get("/recoveries")["recoveries"]]
