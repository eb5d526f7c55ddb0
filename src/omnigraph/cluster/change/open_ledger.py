"""The ledger while a command changes it: published by compare-and-swap, when it says more."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from omnigraph.cluster.addresses import graph_of, kind_of
from omnigraph.cluster.resource_values import Resource, graph_digest
from omnigraph.cluster.state.cluster_lock import HeldCluster
from omnigraph.cluster.state.cluster_state import ClusterState, Condition, Recorded, Status
from omnigraph.cluster.state.cluster_store import ClusterStore, now
from omnigraph.storage.objects.objects import Token


class OpenLedger:
    """The ledger of a cluster, as this command knows it. `is_new`: there is none in the store yet."""

    def __init__(self, store: ClusterStore, held: HeldCluster, actor: str | None, name: str) -> None:
        found = store.read()
        self.store = store
        self.held = held
        self.actor = actor
        self.state = found[0] if found is not None else ClusterState(name)
        self._token: Token | None = found[1] if found is not None else None

    @property
    def is_new(self) -> bool:
        """Whether no ledger was ever written."""
        return self._token is None

    def publish(self, state: ClusterState) -> bool:
        """Write what is new; False when nothing is. A change of the resources is a new revision."""
        state = _with_graph_digests(state)
        moved = state.resources != self.state.resources
        if not moved and state == self.state and not self.is_new:
            return False
        self.held.check()
        fresh = replace(state, revision=self.state.revision + 1) if moved else state
        self.state, self._token = self.store.write(fresh, self._token, self.actor)
        return True

    def applied(self, resource: Resource, **binding: Any) -> Recorded:
        """A resource as it is recorded once it is applied."""
        before = self.state.resources.get(resource.address)
        fresh = Recorded(
            digest=resource.digest,
            status="applied",
            binding={**resource.binding, **binding},
            own_digest=resource.own_digest,
            payload=resource.payload_digest,
            applied_at=now(),
            applied_by=self.actor,
            revision=self.state.revision + 1,
        )
        if before is not None and _same(before, fresh):
            return before
        return fresh

    def marked(self, address: str, status: Status, conditions: Iterable[tuple[str, str]]) -> Recorded:
        """A resource with another status; a condition that held before keeps its time."""
        before = self.state.resources.get(address) or Recorded(None, status)
        earlier = {(found.type, found.message): found for found in before.conditions}
        fresh = tuple(earlier.get(one) or Condition(one[0], one[1], now()) for one in conditions)
        return replace(before, status=status, conditions=fresh)


def _same(one: Recorded, other: Recorded) -> bool:
    return replace(one, applied_at=None, applied_by=None, revision=0) == replace(
        other, applied_at=None, applied_by=None, revision=0
    )


def _with_graph_digests(state: ClusterState) -> ClusterState:
    """A graph's digest follows from its parts, as they are recorded."""
    resources: dict[str, Recorded] = {}
    for address, found in sorted(state.resources.items()):
        if kind_of(address) == "graph" and found.digest is not None:
            found = replace(
                found, digest=graph_digest(found.own_digest, _parts(address.split(".")[1], state.resources))
            )
        resources[address] = found
    return replace(state, resources=resources)


def _parts(graph: str, resources: Mapping[str, Recorded]) -> dict[str, str | None]:
    return {
        address: found.digest
        for address, found in resources.items()
        if kind_of(address) in ("schema", "query") and graph_of(address) == graph and found.digest is not None
    }
