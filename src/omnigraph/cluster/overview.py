"""`cluster status`: the ledger as it is, the lock, and whether every payload is there and unchanged. Reads only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from omnigraph.cluster.state.approvals import Approval
from omnigraph.cluster.state.cluster_lock import LockInfo
from omnigraph.cluster.state.cluster_sidecars import ClusterSidecar
from omnigraph.cluster.state.cluster_state import ClusterState
from omnigraph.cluster.state.cluster_store import ClusterStore


@dataclass(frozen=True, slots=True)
class ClusterStatus:
    """How a cluster is. `state` is None where nothing was ever applied."""

    storage: str
    state: ClusterState | None
    lock: LockInfo | None
    payloads: Mapping[str, str]
    recoveries: tuple[ClusterSidecar, ...]
    approvals: tuple[Approval, ...]

    @property
    def sound(self) -> bool:
        """Whether every payload is there and unchanged, and no step waits to be settled."""
        return not self.recoveries and all(health == "sound" for health in self.payloads.values())

    def status_of(self, address: str) -> str:
        """The status of a resource; `applying` while a step on its graph is under way."""
        assert self.state is not None
        under_way = {f"{kind}.{sidecar.graph}" for sidecar in self.recoveries for kind in ("graph", "schema")}
        return "applying" if address in under_way else self.state.resources[address].status

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data."""
        state = self.state
        used = {entry["id"] for entry in state.approvals_used} if state is not None else set()
        resources = [
            {
                **asdict(found),
                "address": address,
                "status": self.status_of(address),
                "health": self.payloads.get(address),
            }
            for address, found in (state.resources.items() if state is not None else ())
        ]
        return {
            "cluster": state.name if state is not None else None,
            "storage": self.storage,
            "revision": state.revision if state is not None else 0,
            "converged": state.converged if state is not None else False,
            "config_digest": state.config_digest if state is not None else None,
            "updated_at": state.updated_at if state is not None else None,
            "updated_by": state.updated_by if state is not None else None,
            "sound": self.sound,
            "resources": resources,
            "observations": dict(state.observations) if state is not None else {},
            "lock": self.lock.to_json() if self.lock is not None else None,
            "approvals": [{**approval.to_json(), "used": approval.id in used} for approval in self.approvals],
            "pending_recoveries": [asdict(sidecar) for sidecar in self.recoveries],
            "recoveries": list(state.recoveries) if state is not None else [],
        }


def look_over(store: ClusterStore) -> ClusterStatus:
    """Read everything, change nothing."""
    found = store.read()
    state = found[0] if found is not None else None
    payloads = {
        address: store.payload_health(resource.payload)
        for address, resource in (state.resources.items() if state is not None else ())
        if resource.payload is not None
    }
    return ClusterStatus(
        store.root.uri,
        state,
        store.lock.info(),
        payloads,
        tuple(store.sidecars.list()),
        tuple(store.approvals.list()),
    )
