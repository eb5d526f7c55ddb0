"""The MCP endpoint of a graph: streamable HTTP, without sessions, so that any worker answers any request."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.requests import Request
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from omnigraph.read.state.control import CancelToken
from omnigraph.server.agents.agent_tools import AgentTools
from omnigraph.server.agents.protocol import protocol_server
from omnigraph.server.routes.graph_calls import GraphCall, ServerState

PATH = "/graphs/{graph_id}/mcp"


@dataclass(frozen=True, slots=True)
class _Named:
    """A route as metrics, the log and traces name it."""

    path: str


class AgentEndpoint:
    """An ASGI application that speaks MCP for whichever graph its path names."""

    def __init__(self, state: ServerState) -> None:
        self._state = state
        self._server = protocol_server(self._with_tools)
        self._manager = StreamableHTTPSessionManager(self._server, json_response=True, stateless=True)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """As long as the application runs."""
        async with self._manager.run():
            yield

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request. Whether the graph is there for this actor is told before anything is read."""
        scope["route"] = _Named(PATH)
        self._call(Request(scope, receive))
        await self._manager.handle_request(scope, receive, send)

    def _call(self, request: Request) -> GraphCall:
        actor = request.scope["omnigraph"].actor
        served = self._state.graphs.get(request.path_params["graph_id"], actor)
        return GraphCall(request, served, self._state, actor)

    async def _with_tools(self, work: Callable[[AgentTools], Any], name: str | None) -> Any:
        request = self._server.request_context.request
        assert isinstance(request, Request)
        call = self._call(request)

        def tools(cancel: CancelToken | None = None) -> AgentTools:
            seconds = self._state.settings.query_seconds
            return AgentTools(call.graph, call.served.queries, call.served.policy, call.actor, seconds, cancel)

        if name is not None and tools().changes(name):
            return await call.write(lambda: work(tools()))
        return await call.read(lambda cancel: work(tools(cancel)))


def agent_route(endpoint: AgentEndpoint) -> Route:
    """The route of the endpoint. It has nothing to tell by itself, so there is no stream to listen to by a GET."""
    return Route(PATH, endpoint, methods=["POST"], include_in_schema=False)
