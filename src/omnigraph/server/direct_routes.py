"""The short way to the routes that are called most: queries, mutations, stored queries.

The framework's own way from a path to its function costs a third of a point read. Only the request that is as plain as
can be, JSON of a known length, goes this way, to the same function with the same body; every other one goes the other.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from omnigraph.errors import BadRequest
from omnigraph.server.json_requests import ExactRequest
from omnigraph.server.routes import data_routes, stored_routes
from omnigraph.server.routes.graph_calls import GraphCall, ServerState
from omnigraph.server.routes.request_bodies import Body, InvokeBody, MutateBody, QueryBody

_PATH = re.compile(r"/graphs/([^/]+)/(?:(query|mutate)|queries/([^/]+))")
_IF_COMMIT = "omnigraph-if-graph-commit"


@dataclass(frozen=True, slots=True)
class DirectRoute:
    """A route as metrics and traces name it, the body that it takes, and what answers it."""

    path: str
    body: type[Body]
    answer: Callable[[GraphCall, str, Body], Awaitable[Response]]


async def _query(call: GraphCall, _: str, body: Body) -> Response:
    assert isinstance(body, QueryBody)
    return await data_routes.query(call, body)


async def _mutate(call: GraphCall, _: str, body: Body) -> Response:
    assert isinstance(body, MutateBody)
    return await data_routes.mutate(call, body, call.request.headers.get(_IF_COMMIT))


async def _invoke(call: GraphCall, name: str, body: Body) -> Response:
    assert isinstance(body, InvokeBody)
    return await stored_routes.invoke(call, name, body, call.request.headers.get(_IF_COMMIT))


_ROUTES = {
    "query": DirectRoute("/graphs/{graph_id}/query", QueryBody, _query),
    "mutate": DirectRoute("/graphs/{graph_id}/mutate", MutateBody, _mutate),
    None: DirectRoute("/graphs/{graph_id}/queries/{name}", InvokeBody, _invoke),
}


class DirectRoutes:
    """The application, with a short way through it."""

    def __init__(self, app: ASGIApp, state: ServerState) -> None:
        self._app = app
        self._state = state

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a plain request here, and let the application answer any other."""
        posted = scope["type"] == "http" and scope["method"] == "POST" and not scope["query_string"]
        found = _PATH.fullmatch(scope["path"]) if posted else None
        if found is None or not _is_plain(Headers(scope=scope)):
            await self._app(scope, receive, send)
            return
        graph_id, name, stored = found.groups()
        route = scope["route"] = _ROUTES[name]
        request = ExactRequest(scope, receive)
        value = await _read(request)
        actor = scope["omnigraph"].actor
        call = GraphCall(request, self._state.graphs.get(graph_id, actor), self._state, actor)
        response = await route.answer(call, stored or "", _checked(value, route.body))
        await response(scope, receive, send)


def _is_plain(headers: Headers) -> bool:
    return headers.get("content-type") == "application/json" and headers.get("content-length", "0") != "0"


async def _read(request: ExactRequest) -> Any:
    try:
        return await request.json()
    except ClientDisconnect:
        raise BadRequest("the client went before its request was all there; nothing was done") from None


def _checked(value: Any, body: type[Body]) -> Body:
    """The body of a request. What is wrong with it is told as the framework tells it."""
    if value is None and body is InvokeBody:
        return InvokeBody()
    try:
        return body.model_validate(value, from_attributes=True)
    except ValidationError as error:
        problems = [{**problem, "loc": ("body", *problem["loc"])} for problem in error.errors(include_url=False)]
        raise RequestValidationError(problems) from None
