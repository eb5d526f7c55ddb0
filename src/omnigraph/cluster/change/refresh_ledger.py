"""Drift: look at the real graphs and payloads, and record where they are not what the ledger says.

What is missing is planned again. What cannot be read is an error, and is left alone: it may be sound.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from omnigraph.cluster.addresses import graph_of, kind_of, schema_address
from omnigraph.cluster.change.graph_looks import GraphLook, look_at
from omnigraph.cluster.change.open_ledger import OpenLedger
from omnigraph.cluster.change.resume import settle_all
from omnigraph.cluster.state.cluster_state import ClusterState, Recorded, Status

_LOOKED_FOR = frozenset(
    {"missing", "half", "unreadable", "changed", "replaced", "payload_missing", "payload_damaged", "payload_unreadable"}
)


@dataclass(frozen=True, slots=True)
class Finding:
    """One resource that is not as the ledger says, or is again."""

    address: str
    condition: str
    message: str

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data."""
        return {"address": self.address, "condition": self.condition, "message": self.message}


@dataclass(frozen=True, slots=True)
class RefreshResult:
    """What a refresh found. `unknown_graphs` lie in the storage, and the ledger has never heard of them."""

    revision: int
    changed: bool
    findings: tuple[Finding, ...]
    unknown_graphs: tuple[str, ...]
    recovered: tuple[Mapping[str, Any], ...]

    @property
    def has_errors(self) -> bool:
        """Whether something could not be looked at."""
        return any(found.condition in ("unreadable", "half", "payload_unreadable") for found in self.findings)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data."""
        return {
            "revision": self.revision,
            "changed": self.changed,
            "drift": [found.to_json() for found in self.findings],
            "unknown_graphs": list(self.unknown_graphs),
            "recovered": list(self.recovered),
        }


def find_drift(ledger: OpenLedger) -> RefreshResult:
    """Look at everything that is recorded, and record what is seen."""
    before = ledger.state.revision
    recovered = settle_all(ledger)
    state = ledger.state
    findings: list[Finding] = []
    looks = {
        address: look_at(ledger.store.graph_uri(address.split(".")[1]))
        for address in state.resources
        if kind_of(address) == "graph"
    }
    for address, found in list(state.resources.items()):
        if kind_of(address) == "graph":
            condition = _of_graph(found, looks[address])
        elif kind_of(address) == "schema":
            condition = _of_schema(found, looks.get(f"graph.{graph_of(address)}"))
        else:
            condition = _of_payload(ledger, found)
        state = state.with_resource(address, _recorded(ledger, address, found, condition, looks))
        if condition is not None:
            findings.append(Finding(address, *condition))
    observations = {address: look.to_json() for address, look in looks.items()}
    ledger.publish(replace(state, observations=observations, converged=state.converged and not findings))
    return RefreshResult(
        ledger.state.revision,
        ledger.state.revision != before,
        tuple(findings),
        tuple(_unknown(ledger, state)),
        tuple(recovered),
    )


_Found = tuple[str, str] | None


def _of_graph(found: Recorded, look: GraphLook) -> _Found:
    if look.seen != "found":
        return (look.seen, str(look.reason)) if found.digest is not None or look.seen != "missing" else None
    known = found.binding.get("graph_id")
    if known is not None and known != look.graph_id:
        return "replaced", f"another graph lies there than the one that was made: {look.graph_id} instead of {known}"
    return None


def _of_schema(found: Recorded, look: GraphLook | None) -> _Found:
    if look is None or found.digest is None:
        return None
    if look.seen == "missing":
        return "missing", str(look.reason)
    if look.seen == "found" and look.schema_digest != found.digest:
        return "changed", "the schema of the graph was changed by other means than this cluster"
    return None


def _of_payload(ledger: OpenLedger, found: Recorded) -> _Found:
    if found.payload is None or found.digest is None:
        return None
    health = ledger.store.payload_health(found.payload)
    if health == "sound":
        return None
    return f"payload_{health}", f"its payload {found.payload[:12]} is {health}"


def _recorded(
    ledger: OpenLedger, address: str, found: Recorded, condition: _Found, looks: Mapping[str, GraphLook]
) -> Recorded:
    if condition is None:
        if not any(one.type in _LOOKED_FOR for one in found.conditions):
            return found
        rest = tuple(one for one in found.conditions if one.type not in _LOOKED_FOR)
        status: Status = "applied" if found.digest is not None and not rest else "planned"
        return replace(found, status=status, conditions=rest)
    bad = condition[0] in ("half", "unreadable", "payload_unreadable")
    marked = ledger.marked(address, "error" if bad else "drifted", [condition])
    if condition[0] == "missing":
        return replace(marked, digest=None)
    if condition[0] == "changed":
        return replace(marked, digest=looks[f"graph.{graph_of(address)}"].schema_digest)
    return marked


def _unknown(ledger: OpenLedger, state: ClusterState) -> list[str]:
    """Graphs below the storage that are in no ledger."""
    known = {address.split(".")[1] for address in state.resources if kind_of(address) == "graph"}
    return [
        graph for graph in graphs_below(ledger) if graph not in known and schema_address(graph) not in state.resources
    ]


def graphs_below(ledger: OpenLedger) -> list[str]:
    """The names of what lies where graphs lie."""
    names = ledger.store.names_of_graphs()
    return [name.removesuffix(".omni") for name in names if name.endswith(".omni")]
