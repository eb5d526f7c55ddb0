"""What a server reads: the applied revision, every payload of it verified. What is merely written is not looked at."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from omnigraph.cluster.addresses import WHOLE_CLUSTER, graph_of, kind_of, provider_address
from omnigraph.cluster.folder.cluster_file import FILE, storage_of
from omnigraph.cluster.resource_values import digest_of
from omnigraph.cluster.state.cluster_state import ClusterState, Recorded
from omnigraph.cluster.state.cluster_store import ClusterStore
from omnigraph.errors import BadRequest, NotFound, OmniGraphError
from omnigraph.policy.bundle import parse_bundle
from omnigraph.policy.decide_access import Policy
from omnigraph.storage.uri import Root, parse_root
from omnigraph.stored.registry import StoredText
from omnigraph.yaml_text import parse_yaml


@dataclass(frozen=True, slots=True)
class AppliedGraph:
    """One graph of the revision. `identity` says which graph it is and how it is opened; `fault` why it cannot be."""

    id: str
    uri: str
    identity: str
    policy: Policy | None = None
    queries: tuple[StoredText, ...] = ()
    provider: Mapping[str, Any] | None = None
    provider_name: str | None = None
    blob_bases: tuple[str, ...] = ()
    fault: str | None = None


@dataclass(frozen=True, slots=True)
class AppliedCluster:
    """The newest revision that was applied."""

    name: str
    revision: int
    graphs: tuple[AppliedGraph, ...]
    policy: Policy | None
    has_policies: bool


def read_applied(location: str) -> AppliedCluster:
    """The applied revision of a cluster: its folder, or its storage.

    A missing or damaged ledger, or a damaged policy that several share, is an error that names the command that mends
    it. What is wrong with one graph is told in that graph.
    """
    store = ClusterStore(_storage(location))
    found = store.read()
    if found is None:
        raise NotFound(
            f"nothing was applied at {store.root.uri} yet, so there is nothing to serve: run `omnigraph cluster apply`"
        )
    state = found[0]
    policies, faults = _policies(store, state)
    under_way = {sidecar.graph: sidecar.step for sidecar in store.sidecars.list()}
    graphs = []
    for address, recorded in state.resources.items():
        if kind_of(address) == "graph" and recorded.digest is not None:
            graph = address.split(".")[1]
            fault = faults.get(graph)
            if graph in under_way:
                fault = f"a step ({under_way[graph]}) was cut off: run `omnigraph cluster apply`"
            graphs.append(_graph(store, state, graph, recorded, policies, fault))
    if not graphs:
        raise BadRequest(f"the cluster {state.name} has no graph that was applied: run `omnigraph cluster apply`")
    return AppliedCluster(state.name, state.revision, tuple(graphs), policies.get(WHOLE_CLUSTER), bool(policies))


def _storage(location: str) -> Root:
    folder = Path(location)
    if "://" not in location and (folder / FILE).is_file():
        return storage_of(folder)
    return parse_root(location)


def _policies(store: ClusterStore, state: ClusterState) -> tuple[dict[str, Policy], dict[str, str]]:
    """The policy of each place that has one, and the graphs whose own policy cannot be read."""
    found: dict[str, Policy] = {}
    faults: dict[str, str] = {}
    for address, recorded in state.applied("policy").items():
        places = [str(place) for place in recorded.binding["applies_to"]]
        try:
            text = store.payload(str(recorded.payload)).decode()
            policy = Policy(parse_bundle(parse_yaml(text, address)))
        except OmniGraphError as error:
            if WHOLE_CLUSTER in places or len(places) > 1:
                raise BadRequest(
                    f"{address}, which {' and '.join(places)} share, cannot be used: {error.message}"
                ) from None
            faults.update(dict.fromkeys(places, f"its {address} cannot be used: {error.message}"))
            continue
        found.update(dict.fromkeys(places, policy))
    return found, faults


def _graph(
    store: ClusterStore,
    state: ClusterState,
    graph: str,
    recorded: Recorded,
    policies: Mapping[str, Policy],
    fault: str | None,
) -> AppliedGraph:
    name = recorded.binding.get("embedding_provider")
    provider = state.resources.get(provider_address(name)) if name else None
    if name and (provider is None or provider.digest is None):
        fault = fault or f"its embedding provider `{name}` is not applied: run `omnigraph cluster apply`"
    if any(condition.type in ("unreadable", "half") for condition in recorded.conditions):
        fault = fault or f"{recorded.conditions[0].message}: mend it, then run `omnigraph cluster refresh`"
    queries: tuple[StoredText, ...] = ()
    try:
        queries = tuple(_queries(store, state, graph))
    except OmniGraphError as error:
        fault = fault or error.message
    settings = provider.binding if provider is not None else None
    bases = recorded.binding.get("blob_bases", [])
    identity = digest_of([recorded.binding.get("graph_id"), settings, bases])
    uri = store.graph_uri(graph)
    return AppliedGraph(graph, uri, identity, policies.get(graph), queries, settings, name, tuple(bases), fault)


def _queries(store: ClusterStore, state: ClusterState, graph: str) -> list[StoredText]:
    found = []
    for address, recorded in state.applied("query").items():
        if graph_of(address) == graph:
            payload = orjson.loads(store.payload(str(recorded.payload)))
            tool = payload["tool_name"]
            found.append(StoredText(payload["name"], payload["text"], address, payload["expose"], tool))
    return found
