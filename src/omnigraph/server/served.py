"""The graphs that a server process has open, each with policy and stored queries; and what it could not open."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import omnigraph as og
from omnigraph.errors import BadRequest, NotFound, OmniGraphError, PolicyDenied, Unavailable
from omnigraph.graph import Graph
from omnigraph.policy.actions import Action
from omnigraph.policy.decide_access import Policy, only_reading
from omnigraph.server.bearer_tokens import BearerTokens
from omnigraph.server.generation import Generation
from omnigraph.server.offers import Offer, Offers, read_offers
from omnigraph.server.server_settings import GraphSettings, ServerSettings
from omnigraph.stored.registry import Registry

_logger = logging.getLogger("omnigraph.server")


@dataclass(frozen=True, slots=True)
class Served:
    """One graph that is served, as it is now: a reload makes another."""

    settings: GraphSettings
    graph: Graph
    policy: Policy | None
    queries: Registry
    identity: str = ""


@dataclass(frozen=True, slots=True)
class Quarantined:
    """A graph that cannot be served, and why."""

    settings: GraphSettings
    reason: str


def refuse_contradictions(settings: ServerSettings, tokens: BearerTokens, offers: Offers | None = None) -> None:
    """What must not be started: a server that lets in everybody unasked, or one that could let in nobody.

    Whether a cluster has policies is known only from what it offers.
    """
    has_policy = settings.server_policy or any(graph.policy for graph in settings.graphs)
    if offers is not None:
        has_policy = offers.has_policy
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
    if len(set(ids)) != len(ids) or (not ids and settings.cluster is None):
        raise BadRequest("a server serves one graph or several, each under an id of its own")


class ServedGraphs:
    """All graphs of a server process."""

    def __init__(self, settings: ServerSettings, tokens: BearerTokens, generation: Generation | None = None) -> None:
        self._settings = settings
        self._generation = generation
        self._at = generation.now if generation is not None else 0
        self._tokens = tokens
        self._authenticated = bool(tokens)
        self._found: dict[str, Served | Quarantined] = {}
        self._reloading = threading.Lock()
        self._offers = self._read_offers()
        self.policy = self._server_policy(self._offers)

    def open(self) -> None:
        """Open every graph, at once. One that cannot be served is set apart; none that can is an error."""
        with ThreadPoolExecutor(8) as threads:
            opened = list(threads.map(self._opened, self._offers.graphs))
        self._found = {found.settings.id: found for found in opened}
        broken = [found for found in opened if isinstance(found, Quarantined)]
        if broken and (self._settings.require_all_graphs or len(broken) == len(opened)):
            self.close()
            raise BadRequest("; ".join(f"graph `{one.settings.id}`: {one.reason}" for one in broken))

    def close(self) -> None:
        """Close them."""
        _close_all(self._found.values())

    def reload(self) -> int | None:
        """As `_read_again`, here and then in every other worker before it answers again."""
        with self._reloading:
            before = self._generation.now if self._generation is not None else 0
            revision = self._read_again()
            if self._generation is not None:
                # What others announced while this was read may not be in it: then there is more to catch up with.
                self._at = before if self._generation.raise_it() != before + 1 else before + 1
        return revision

    @property
    def behind(self) -> bool:
        """Whether another process has said since that there is something new to read."""
        return self._generation is not None and self._at != self._generation.now

    def catch_up(self) -> None:
        """Reload because another process said so. What is broken changes nothing, and the log has it."""
        with self._reloading:
            if self._generation is None or not self.behind:
                return
            now = self._generation.now
            try:
                self._read_again()
            except OmniGraphError as error:
                _logger.error("nothing was reloaded: %s", error.message)
            finally:
                self._at = now

    def _read_again(self) -> int | None:
        """Take policies, stored queries and the applied revision of a cluster as they are now; the revision.

        Requests that are under way end with what they began with. What is broken now changes nothing and is told: a
        graph that is served goes on as it is. One that was set apart, or is new, is tried, and set apart if it must be.
        """
        offers = self._read_offers()
        policy = self._server_policy(offers)
        fresh: dict[str, Served | Quarantined] = {}
        try:
            for offer in offers.graphs:
                fresh[offer.settings.id] = self._again(offer)
        except OmniGraphError:
            _close_all(made for name, made in fresh.items() if not self._shares_its_graph(name, made))
            raise
        before, self._found = self._found, fresh
        self.policy, self._offers = policy, offers
        left = [
            found
            for graph_id, found in before.items()
            if isinstance(found, Served) and not self._shares_its_graph(graph_id, found)
        ]
        if left:
            # Requests that began before may still read them; they have as long as when the server stops.
            timer = threading.Timer(self._settings.drain_seconds, _close_all, [left])
            timer.daemon = True
            timer.start()
        _logger.info("policies and stored queries were read again")
        return offers.revision

    @property
    def revision(self) -> int | None:
        """The applied revision that is served, of a cluster."""
        return self._offers.revision

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
        """`PolicyDenied` unless the actor may administrate every graph; of a cluster with a policy, by that."""
        if self._offers.revision is not None and self._offers.policy is not None:
            self._offers.policy.require(actor, Action.ADMIN)
            return
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
        """The id of the graph that the short paths are about: of a server that was started with one graph."""
        return self._settings.graphs[0].id if len(self._settings.graphs) == 1 else None

    def _may_list(self, actor: str | None) -> bool:
        try:
            self.listed(actor)
        except PolicyDenied:
            return False
        return True

    def _read_offers(self) -> Offers:
        if self._settings.cluster is None:
            refuse_contradictions(self._settings, self._tokens)
        offers = read_offers(self._settings)
        refuse_contradictions(self._settings, self._tokens, offers)
        return offers

    def _server_policy(self, offers: Offers) -> Policy | None:
        if offers.policy is not None:
            return offers.policy
        return only_reading() if self._authenticated else None

    def _again(self, offer: Offer) -> Served | Quarantined:
        """A graph at a reload. One that is served now and could not be any more stops the reload."""
        before = self._found.get(offer.settings.id)
        if not isinstance(before, Served):
            return self._opened(offer)
        if offer.fault is None and before.identity == offer.identity:
            return self._with_rules(offer, before.graph)
        found = self._opened(offer)
        if isinstance(found, Quarantined):
            raise BadRequest(f"graph `{offer.settings.id}`: {found.reason}")
        return found

    def _shares_its_graph(self, graph_id: str, found: Served | Quarantined) -> bool:
        """Whether what is served now uses the same opened graph."""
        now = self._found.get(graph_id)
        if not isinstance(now, Served) or not isinstance(found, Served):
            return False
        return now.identity == found.identity

    def _opened(self, offer: Offer) -> Served | Quarantined:
        graph = None
        try:
            if offer.fault is not None:
                raise BadRequest(offer.fault)
            graph = og.open(
                offer.settings.uri,
                combine=self._settings.combine,
                embedding=offer.embedding(),
                blob_bases=offer.blob_bases,
            )
            return self._with_rules(offer, graph)
        except OmniGraphError as error:
            if graph is not None:
                graph.close()
            _logger.error("graph `%s` cannot be served: %s", offer.settings.id, error.message)
            return Quarantined(offer.settings, error.message)

    def _with_rules(self, offer: Offer, graph: Graph) -> Served:
        policy = offer.policy() or (only_reading() if self._authenticated else None)
        queries = offer.queries(graph.under(None).catalog())
        return Served(offer.settings, graph.under(policy), policy, queries, offer.identity)


def _close_all(graphs: Iterable[Served | Quarantined]) -> None:
    for found in graphs:
        if isinstance(found, Served):
            found.graph.close()
