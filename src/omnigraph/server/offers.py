"""What a server is to serve, before anything is opened: from files that were named, or from a cluster's revision."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from omnigraph.cluster.applied import AppliedGraph, read_applied
from omnigraph.embed.provider_settings import EmbeddingSettings, from_mapping
from omnigraph.policy.decide_access import Policy, read_policy
from omnigraph.schema.catalog import Catalog
from omnigraph.server.server_settings import GraphSettings, ServerSettings
from omnigraph.stored.registry import Registry, checked, read_registry


@dataclass(frozen=True, slots=True)
class Offer:
    """One graph to serve. What is read late may fail, and then only this graph does.

    A graph of another `identity` is opened anew when the server reloads; `fault` is known before anything is tried.
    """

    settings: GraphSettings
    policy: Callable[[], Policy | None]
    queries: Callable[[Catalog], Registry]
    embedding: Callable[[], EmbeddingSettings | None]
    blob_bases: tuple[str, ...] = ()
    identity: str = ""
    fault: str | None = None


@dataclass(frozen=True, slots=True)
class Offers:
    """All that is to be served. `revision` is that of the cluster."""

    graphs: tuple[Offer, ...]
    policy: Policy | None
    has_policy: bool
    revision: int | None = None


def read_offers(settings: ServerSettings) -> Offers:
    """What these settings ask for, as it is now."""
    if settings.cluster is not None:
        return _of_cluster(settings.cluster)
    path = settings.server_policy
    if path is None and len(settings.graphs) == 1:
        path = settings.graphs[0].policy
    policy = read_policy(path) if path is not None else None
    has_policy = path is not None or any(graph.policy for graph in settings.graphs)
    return Offers(tuple(_of_files(graph) for graph in settings.graphs), policy, has_policy)


def _of_files(graph: GraphSettings) -> Offer:
    def policy() -> Policy | None:
        return read_policy(graph.policy) if graph.policy is not None else None

    return Offer(graph, policy, partial(read_registry, graph.queries), lambda: None)


def _of_cluster(location: str) -> Offers:
    found = read_applied(location)
    return Offers(tuple(_of_graph(graph) for graph in found.graphs), found.policy, found.has_policies, found.revision)


def _of_graph(graph: AppliedGraph) -> Offer:
    def embedding() -> EmbeddingSettings | None:
        if graph.provider is None:
            return None
        return from_mapping(graph.provider, f"provider.embedding.{graph.provider_name}")

    return Offer(
        GraphSettings(graph.id, graph.uri),
        lambda: graph.policy,
        lambda catalog: checked(list(graph.queries), catalog),
        embedding,
        graph.blob_bases,
        graph.identity,
        graph.fault,
    )
