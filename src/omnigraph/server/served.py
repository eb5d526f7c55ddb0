"""The graphs that a server process has open, each with policy and stored queries; and what it could not open."""

from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import omnigraph as og
from omnigraph.errors import BadRequest, NotFound, OmniGraphError, PolicyDenied, Unavailable
from omnigraph.graph import Graph
from omnigraph.policy.actions import Action
from omnigraph.policy.decide_access import Policy, only_reading, read_policy
from omnigraph.server.bearer_tokens import BearerTokens
from omnigraph.server.server_settings import GraphSettings, ServerSettings
from omnigraph.stored.registry import Registry, read_registry

_logger = logging.getLogger("omnigraph.server")


@dataclass(frozen=True, slots=True)
class Served:
    """One graph that is served, as it is now: a reload makes another."""

    settings: GraphSettings
    graph: Graph
    policy: Policy | None
    queries: Registry


@dataclass(frozen=True, slots=True)
class Quarantined:
    """A graph that cannot be served, and why."""

    settings: GraphSettings
    reason: str


def refuse_contradictions(settings: ServerSettings, tokens: BearerTokens) -> None:
    """What must not be started: a server that lets in everybody unasked, or one that could let in nobody."""
    has_policy = settings.server_policy or any(graph.policy for graph in settings.graphs)
    if tokens and settings.unauthenticated:
        raise BadRequest("there are tokens, and --unauthenticated says that nobody needs one: leave out one of the two")
    if not tokens and has_policy:
        raise BadRequest(
            "a policy allows things to actors, and without tokens the server knows none: set "
            "OMNIGRAPH_SERVER_BEARER_TOKENS_FILE, or leave the policy out"
        )
    if not tokens and not settings.unauthenticated:
        raise BadRequest(
            "no tokens are set, so anybody could read and write: set OMNIGRAPH_SERVER_BEARER_TOKENS_FILE, or start "
            "with --unauthenticated if that is what you want"
        )
    ids = [graph.id for graph in settings.graphs]
    if len(set(ids)) != len(ids) or not ids:
        raise BadRequest("a server serves one graph or several, each under an id of its own")


class ServedGraphs:
    """All graphs of a server process."""

    def __init__(self, settings: ServerSettings, tokens: BearerTokens) -> None:
        refuse_contradictions(settings, tokens)
        self._settings = settings
        self._authenticated = bool(tokens)
        self._found: dict[str, Served | Quarantined] = {}
        self.policy = self._server_policy()

    def open(self) -> None:
        """Open every graph, at once. One that cannot be served is set apart; none that can is an error."""
        with ThreadPoolExecutor(8) as threads:
            opened = list(threads.map(self._opened, self._settings.graphs))
        self._found = {found.settings.id: found for found in opened}
        broken = [found for found in opened if isinstance(found, Quarantined)]
        if broken and (self._settings.require_all_graphs or len(broken) == len(opened)):
            self.close()
            raise BadRequest("; ".join(f"graph `{one.settings.id}`: {one.reason}" for one in broken))

    def close(self) -> None:
        """Close them."""
        for found in self._found.values():
            if isinstance(found, Served):
                found.graph.close()

    def reload(self) -> None:
        """Read policies and stored queries again. What is broken now changes nothing and is told."""
        policy = self._server_policy()
        fresh: dict[str, Served | Quarantined] = {}
        for graph_id, found in self._found.items():
            if isinstance(found, Served):
                fresh[graph_id] = self._with_rules(found.settings, found.graph)
            else:
                fresh[graph_id] = self._opened(found.settings)
        self.policy = policy
        self._found = fresh
        _logger.info("policies and stored queries were read again")

    def get(self, graph_id: str, actor: str | None) -> Served:
        """The graph of that id. One that is set apart is shown as such to those only who may list graphs."""
        found = self._found.get(graph_id)
        if isinstance(found, Served):
            return found
        if found is not None and self._may_list(actor):
            raise Unavailable(f"graph `{graph_id}` is not served now: {found.reason}", graph=graph_id)
        raise NotFound(f"this server has no graph `{graph_id}`", graph=graph_id)

    def listed(self, actor: str | None) -> list[Served | Quarantined]:
        """All graphs, for those who may list them."""
        if self.policy is not None:
            self.policy.require(actor, Action.GRAPH_LIST)
        return [found for _, found in sorted(self._found.items())]

    def require_admin(self, actor: str | None) -> None:
        """`PolicyDenied` unless the actor may administrate every graph."""
        for found in self._found.values():
            if isinstance(found, Served) and found.policy is not None:
                found.policy.require(actor, Action.ADMIN)

    @property
    def opened(self) -> bool:
        """Whether `open` was called."""
        return bool(self._found)

    @property
    def ready(self) -> bool:
        """Whether every graph is served."""
        return bool(self._found) and all(isinstance(found, Served) for found in self._found.values())

    @property
    def only_id(self) -> str | None:
        """The id of the graph that the short paths are about."""
        return self._settings.graphs[0].id if len(self._settings.graphs) == 1 else None

    def _may_list(self, actor: str | None) -> bool:
        try:
            self.listed(actor)
        except PolicyDenied:
            return False
        return True

    def _server_policy(self) -> Policy | None:
        path = self._settings.server_policy
        if path is None and len(self._settings.graphs) == 1:
            path = self._settings.graphs[0].policy
        if path is not None:
            return read_policy(path)
        return only_reading() if self._authenticated else None

    def _opened(self, settings: GraphSettings) -> Served | Quarantined:
        graph = None
        try:
            graph = og.open(settings.uri, combine=self._settings.combine)
            return self._with_rules(settings, graph)
        except OmniGraphError as error:
            if graph is not None:
                graph.close()
            _logger.error("graph `%s` cannot be served: %s", settings.id, error.message)
            return Quarantined(settings, error.message)

    def _with_rules(self, settings: GraphSettings, graph: Graph) -> Served:
        policy = only_reading() if self._authenticated else None
        if settings.policy is not None:
            policy = read_policy(settings.policy)
        queries = read_registry(settings.queries, graph.under(None).catalog())
        return Served(settings, graph.under(policy), policy, queries)
