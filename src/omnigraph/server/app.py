"""The application: routes behind the gate, graphs that are open as long as it runs."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import FrameType
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import ASGIApp

import omnigraph
from omnigraph.errors import BadRequest, OmniGraphError
from omnigraph.server.agents.endpoint import AgentEndpoint, agent_route
from omnigraph.server.bearer_tokens import BearerTokens, read_tokens
from omnigraph.server.calls.admission import Admission
from omnigraph.server.calls.threads import Threads
from omnigraph.server.direct_routes import DirectRoutes
from omnigraph.server.error_bodies import error_response
from omnigraph.server.gate import Gate
from omnigraph.server.generation import Generation
from omnigraph.server.metrics import Metrics
from omnigraph.server.process.collector_pace import collect_less_often
from omnigraph.server.process.few_heaps import share_heaps
from omnigraph.server.routes import (
    blob_routes,
    branch_routes,
    data_routes,
    history_routes,
    schema_routes,
    server_routes,
    stored_routes,
    undo_routes,
    upkeep_routes,
)
from omnigraph.server.routes.graph_calls import ServerState
from omnigraph.server.served import ServedGraphs
from omnigraph.server.server_settings import ServerSettings
from omnigraph.server.tracing import start_tracing

SETTINGS_VARIABLE = "OMNIGRAPH_SERVER_SETTINGS"
"""How a worker process is told what to serve."""

_DESCRIPTION = """\
A typed, versioned property graph. Every path below `/graphs/{graph_id}` also stands without that prefix on a server
with one graph: `/query` is the same as `/graphs/default/query`. Errors have one body, and a status by their kind.
"""


_ROUTES = (
    server_routes,
    data_routes,
    schema_routes,
    branch_routes,
    undo_routes,
    history_routes,
    stored_routes,
    blob_routes,
    upkeep_routes,
)


def create_app(settings: ServerSettings, tokens: BearerTokens, generation: Generation | None = None) -> ASGIApp:
    """The ASGI application of a server."""
    graphs = ServedGraphs(settings, tokens, generation)
    metrics = Metrics()
    state = ServerState(
        settings,
        graphs,
        Threads(settings.read_threads, settings.write_threads),
        Admission(settings.actor_requests, settings.actor_bytes),
        metrics,
    )

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        start_tracing()
        if not graphs.opened:
            await asyncio.to_thread(graphs.open)
        _stop_streams_on_signals(state)
        try:
            async with endpoint.running():
                yield
        finally:
            state.stopping = True
            await asyncio.to_thread(_stop, state)

    endpoint = AgentEndpoint(state)
    app = bare_app(lifespan)
    app.state.omnigraph = state
    app.router.routes.append(agent_route(endpoint))
    gate = Gate(DirectRoutes(app, state), settings, tokens, metrics, graphs)
    gate.state = state  # type: ignore[attr-defined]  # for those who start the program
    return gate


def bare_app(lifespan: Any = None) -> FastAPI:
    """The routes without anything to serve: what the OpenAPI document is made from."""
    app = FastAPI(
        title="OmniGraph",
        version=omnigraph.__version__,
        description=_DESCRIPTION,
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
        generate_unique_id_function=lambda route: route.name,
        redirect_slashes=False,
    )
    for room in _ROUTES:
        app.include_router(room.router)
    for kind in (OmniGraphError, RequestValidationError, HTTPException, Exception):
        app.add_exception_handler(kind, _answer)
    return app


def app_of_this_process() -> ASGIApp:
    """The application that the environment describes, for a worker."""
    text = os.environ.get(SETTINGS_VARIABLE)
    if not text:
        raise BadRequest(f"{SETTINGS_VARIABLE} is not set; start the server with `omnigraph-server`")
    share_heaps()
    app = create_app(ServerSettings.from_json(text), read_tokens(), Generation.of_this_process())
    collect_less_often()
    return app


async def _answer(request: Request, error: Exception) -> Response:
    return error_response(error, request.scope["omnigraph"].request_id)


def _stop_streams_on_signals(state: ServerState) -> None:
    """Tell streams that have no end of their own that the server stops; it would wait for them otherwise."""
    if threading.current_thread() is not threading.main_thread():
        return
    for number in (signal.SIGTERM, signal.SIGINT):
        before = signal.getsignal(number)

        def stop(given: int, frame: FrameType | None, before: Any = before) -> None:
            state.stopping = True
            if callable(before):
                before(given, frame)

        signal.signal(number, stop)


def _stop(state: ServerState) -> None:
    state.threads.close()
    state.graphs.close()
