"""Take in graphs that exist: the first ledger of a cluster younger than its graphs, or graphs that were put there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from omnigraph.cluster.addresses import kind_of, schema_address
from omnigraph.cluster.change.graph_looks import look_at
from omnigraph.cluster.change.open_ledger import OpenLedger
from omnigraph.cluster.change.refresh_ledger import graphs_below
from omnigraph.cluster.change.resume import settle_all
from omnigraph.cluster.folder.read_folder import Desired
from omnigraph.cluster.state.cluster_state import Recorded
from omnigraph.cluster.state.cluster_store import now


@dataclass(frozen=True, slots=True)
class ImportResult:
    """What was taken in, what of the folder does not exist yet, and what could not be taken in with the reason."""

    revision: int
    imported: tuple[str, ...]
    missing: tuple[str, ...]
    refused: Mapping[str, str]
    undeclared: tuple[str, ...]
    recovered: tuple[Mapping[str, Any], ...]

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data."""
        return {
            "revision": self.revision,
            "imported": list(self.imported),
            "missing": list(self.missing),
            "refused": dict(self.refused),
            "undeclared_graphs": list(self.undeclared),
            "recovered": list(self.recovered),
        }


def take_in(desired: Desired, ledger: OpenLedger) -> ImportResult:
    """Record the graphs of the folder that exist and that the ledger does not know, each with the schema it has."""
    recovered = settle_all(ledger)
    state = ledger.state
    imported, missing, refused = [], [], {}
    for address in desired.resources:
        known = state.resources.get(address)
        if kind_of(address) != "graph" or (known is not None and known.digest is not None):
            continue
        graph = address.split(".")[1]
        look = look_at(ledger.store.graph_uri(graph))
        if look.seen == "missing":
            missing.append(graph)
            continue
        if look.seen != "found":
            refused[graph] = str(look.reason)
            continue
        # Its settings are not recorded: what the folder says of them is for the next apply to apply.
        stamp: dict[str, Any] = {"applied_at": now(), "applied_by": ledger.actor, "revision": state.revision + 1}
        graph_record = Recorded("new", "applied", {"graph_id": look.graph_id}, own_digest=None, **stamp)
        schema = Recorded(look.schema_digest, "applied", own_digest=look.schema_digest, **stamp)
        state = state.with_resource(address, graph_record).with_resource(schema_address(graph), schema)
        state = replace(state, observations={**state.observations, address: look.to_json()})
        imported.append(graph)
    ledger.publish(replace(state, name=desired.name))
    declared = {address.split(".")[1] for address in desired.resources if kind_of(address) == "graph"}
    undeclared = [name for name in graphs_below(ledger) if name not in declared]
    return ImportResult(
        ledger.state.revision, tuple(imported), tuple(missing), refused, tuple(undeclared), tuple(recovered)
    )
