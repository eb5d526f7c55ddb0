"""One request on its way to a graph: authorised first, then admitted, then run in a thread."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, Depends, Path, Request
from starlette.responses import Response

from omnigraph.errors import BadRequest
from omnigraph.graph import Graph
from omnigraph.handle.asked import ReadAsk
from omnigraph.handle.asking import ask as plan_read
from omnigraph.policy.actions import TO_A_BRANCH, Action
from omnigraph.read.result.result import Result
from omnigraph.read.state.control import CancelToken
from omnigraph.server.calls.admission import Admission, Ticket
from omnigraph.server.calls.rounds import Begun, NamedQuery
from omnigraph.server.calls.threads import HeldStream, Threads
from omnigraph.server.error_bodies import encoded
from omnigraph.server.json_requests import ExactRoute
from omnigraph.server.metrics import Metrics
from omnigraph.server.routes.reply_shapes import ErrorReply
from omnigraph.server.served import Served, ServedGraphs
from omnigraph.server.server_settings import ServerSettings

T = TypeVar("T")

JSON = "application/json"
LINES = "application/x-ndjson"
Responses = dict[int | str, dict[str, Any]]
WHOLE = 1 << 18
"""Bytes from which on a response is sent in pieces."""


@dataclass(slots=True)
class ServerState:
    """What all requests of a server process share."""

    settings: ServerSettings
    graphs: ServedGraphs
    threads: Threads
    admission: Admission
    metrics: Metrics
    stopping: bool = False
    open_streams: set[Any] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Need:
    """An action that a request needs, on a branch or to one. None: the engine finds out which branch it is."""

    action: Action
    branch: str | None = None


@dataclass(frozen=True, slots=True)
class GraphCall:
    """A request about one graph."""

    request: Request
    served: Served
    state: ServerState
    actor: str | None

    @property
    def graph(self) -> Graph:
        """The graph, under its policy. Every call on it names the actor."""
        return self.served.graph

    def admit(self, *needs: Need) -> Ticket:
        """Ask the policy, then for admission. Whoever gets the ticket releases it."""
        policy = self.served.policy
        for need in needs:
            if policy is not None and need.action is Action.ADMIN:
                policy.require(self.actor, need.action)
            elif policy is not None and need.branch is not None:
                key = "target" if need.action in TO_A_BRANCH else "branch"
                policy.require(self.actor, need.action, **{key: need.branch})
        ticket = self.state.admission.enter(self.actor)
        try:
            ticket.hold(self.request.scope["omnigraph"].bytes_in)
        except BaseException:
            ticket.release()
            raise
        return ticket

    async def read(self, work: Callable[[CancelToken], T], *needs: Need) -> T:
        """Run a read in a thread; it is cancelled when the client goes."""
        ticket = self.admit(*needs)
        try:
            return await self.state.threads.read(self.request, work)
        finally:
            ticket.release()

    async def write(self, work: Callable[[], T], *needs: Need) -> T:
        """Run a write in a thread."""
        ticket = self.admit(*needs)
        try:
            return await self.state.threads.write(work)
        finally:
            ticket.release()

    async def stream(self, make: Callable[[CancelToken], Iterator[bytes]], media_type: str, *needs: Need) -> Response:
        """A response that is made as it is taken, or sent whole where it is small.

        What goes wrong before its first bytes are sent is an ordinary error.
        """
        return await self._sent(
            lambda: self.state.threads.read(self.request, lambda token: _begun(make(token))), media_type, *needs
        )

    async def rows(
        self, ask: ReadAsk, pieces: Callable[[Result], Iterator[bytes]], media_type: str, *needs: Need
    ) -> Response:
        """The rows of a query, streamed as `stream` does. Look-ups by key that come at the same time run together."""
        return await self._sent(lambda: self._read(ask, pieces), media_type, *needs)

    async def _read(self, ask: ReadAsk, pieces: Callable[[Result], Iterator[bytes]]) -> Begun:
        threads = self.state.threads
        query = NamedQuery(self.served.settings.id, str(ask.source), ask.name)
        if query in threads.lookups:
            begun = await threads.rounds.read(self.request, self.graph, ask, lambda result: _begun(pieces(result)))
            if begun is not None:
                return begun

        def work(token: CancelToken) -> Begun:
            read = plan_read(self.graph, replace(ask, cancel=token))
            threads.lookups.note(query, read.row is not None)
            return _begun(pieces(read.result()))

        return await threads.read(self.request, work, ask.timeout)

    async def _sent(self, begin: Callable[[], Awaitable[Begun]], media_type: str, *needs: Need) -> Response:
        """A response whose first bytes are made now."""
        ticket = self.admit(*needs)
        try:
            first, rest = await begin()
        except BaseException:
            ticket.release()
            raise
        if rest is not None:
            return HeldStream(_from(first, self.state.threads.pull(rest)), ticket, media_type)
        ticket.release()
        return Response(first, media_type=media_type)

    @property
    def seconds(self) -> float:
        """How long a read may take: what the caller asks for, up to what the server allows."""
        most = self.state.settings.query_seconds
        text = self.request.headers.get("omnigraph-timeout")
        if text is None:
            return most
        try:
            asked = float(text)
        except ValueError:
            asked = 0.0
        if not asked > 0:
            raise BadRequest(f"Omnigraph-Timeout is a number of seconds above 0, not `{text[:20]}`")
        return min(asked, most)


async def graph_call(
    request: Request, graph_id: Annotated[str, Path(description="The graph; GET /graphs lists them.")]
) -> GraphCall:
    """The call that a request is."""
    state: ServerState = request.app.state.omnigraph
    actor = request.scope["omnigraph"].actor
    return GraphCall(request, state.graphs.get(graph_id, actor), state, actor)


Call = Annotated[GraphCall, Depends(graph_call)]


def graph_router() -> APIRouter:
    """A router for paths below a graph, every one of which may answer with an error."""
    return APIRouter(prefix="/graphs/{graph_id}", responses={"default": {"model": ErrorReply}}, route_class=ExactRoute)


def replies(model: Any) -> Responses:
    """What a route answers when all goes well."""
    return {200: {"model": model, "description": "done"}}


def json_reply(content: Any, status: int = 200) -> Response:
    """A JSON response."""
    return Response(content if isinstance(content, bytes) else encoded(content), status, media_type=JSON)


def _begun(pieces: Iterator[bytes]) -> Begun:
    held: list[bytes] = []
    size = 0
    for piece in pieces:
        held.append(piece)
        size += len(piece)
        if size >= WHOLE:
            return b"".join(held), pieces
    return b"".join(held), None


async def _from(first: bytes, rest: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield first
    async for piece in rest:
        yield piece
