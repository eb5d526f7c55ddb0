"""Finish what was cut off: each sidecar is settled by what is seen, never by what was meant.

Done and unrecorded: it is recorded. Not done: it is forgotten. Half a graph: that is reported, and nothing is deleted.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from omnigraph.cluster.addresses import graph_address, graph_of, kind_of, schema_address
from omnigraph.cluster.change.graph_looks import GraphLook, look_at
from omnigraph.cluster.change.open_ledger import OpenLedger
from omnigraph.cluster.state.cluster_sidecars import ClusterSidecar
from omnigraph.cluster.state.cluster_state import ClusterState, Recorded
from omnigraph.cluster.state.cluster_store import now
from omnigraph.failpoints import declare, failpoint

declare("cluster.recorded", "The ledger says what became of a step; its sidecar is still there")

_MOST_RECOVERIES = 100


def settle_all(ledger: OpenLedger) -> list[dict[str, Any]]:
    """Settle every sidecar that somebody left; what became of each is kept in the ledger."""
    return [settle(ledger, sidecar, left_behind=True) for sidecar in ledger.store.sidecars.list()]


def settle(ledger: OpenLedger, sidecar: ClusterSidecar, *, left_behind: bool = False) -> dict[str, Any]:
    """Settle one step: `recorded`, `forgotten` or `reported`."""
    look = look_at(ledger.store.graph_uri(sidecar.graph))
    state, outcome = _settled(ledger, sidecar, look)
    told = {
        "id": sidecar.id,
        "step": sidecar.step,
        "graph": sidecar.graph,
        "outcome": outcome,
        "seen": look.seen,
        "reason": look.reason,
        "at": now(),
        "by": ledger.actor,
    }
    if left_behind:
        state = replace(state, recoveries=(*state.recoveries, told)[-_MOST_RECOVERIES:])
    if not ledger.is_new or outcome == "recorded":
        ledger.publish(state)
    failpoint("cluster.recorded")
    ledger.store.sidecars.remove(sidecar.id)
    return told


def _settled(ledger: OpenLedger, sidecar: ClusterSidecar, look: GraphLook) -> tuple[ClusterState, str]:
    if look.seen in ("half", "unreadable"):
        address = graph_address(sidecar.graph)
        told = (look.seen, f"{look.reason} (seen after an unfinished {sidecar.step})")
        return ledger.state.with_resource(address, ledger.marked(address, "error", [told])), "reported"
    match sidecar.step:
        case "create_graph" if look.seen == "found":
            return with_graph(ledger, sidecar, look), "recorded"
        case "apply_schema" if look.seen == "found" and look.schema_digest == sidecar.details["digest"]:
            return with_schema(ledger, sidecar), "recorded"
        case "delete_graph" if look.seen == "missing":
            return without_graph(ledger, sidecar), "recorded"
    return ledger.state, "forgotten"


def with_graph(ledger: OpenLedger, sidecar: ClusterSidecar, look: GraphLook) -> ClusterState:
    """The ledger with a graph that was made, and the schema that it has."""
    stamp: dict[str, Any] = {
        "status": "applied",
        "applied_at": now(),
        "applied_by": sidecar.actor,
        "revision": ledger.state.revision + 1,
    }
    binding = {**sidecar.details["binding"], "graph_id": look.graph_id}
    graph = Recorded("new", binding=binding, own_digest=sidecar.details["own_digest"], **stamp)
    schema = Recorded(look.schema_digest, own_digest=look.schema_digest, **stamp)
    address = graph_address(sidecar.graph)
    made = ledger.state.with_resource(address, graph).with_resource(schema_address(sidecar.graph), schema)
    return replace(made, observations={**made.observations, address: look.to_json()})


def with_schema(ledger: OpenLedger, sidecar: ClusterSidecar) -> ClusterState:
    """The ledger with the schema that a graph has now."""
    digest = sidecar.details["digest"]
    schema = Recorded(
        digest,
        "applied",
        own_digest=digest,
        applied_at=now(),
        applied_by=sidecar.actor,
        revision=ledger.state.revision + 1,
    )
    state = ledger.state.with_resource(schema_address(sidecar.graph), schema)
    return with_approval_used(state, sidecar)


def without_graph(ledger: OpenLedger, sidecar: ClusterSidecar) -> ClusterState:
    """The ledger without a graph, its schema and its queries."""
    kept = {
        address: found
        for address, found in ledger.state.resources.items()
        if kind_of(address) not in ("graph", "schema", "query") or graph_of(address) != sidecar.graph
    }
    observations = {key: found for key, found in ledger.state.observations.items() if key in kept}
    return with_approval_used(replace(ledger.state, resources=kept, observations=observations), sidecar)


def with_approval_used(state: ClusterState, sidecar: ClusterSidecar) -> ClusterState:
    """The ledger in which the approval of a step is used, if it had one."""
    approval = sidecar.details.get("approval")
    if approval is None or any(used["id"] == approval for used in state.approvals_used):
        return state
    used = {"id": approval, "step": sidecar.step, "graph": sidecar.graph, "at": now(), "by": sidecar.actor}
    return replace(state, approvals_used=(*state.approvals_used, used))
