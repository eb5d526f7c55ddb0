"""Requests read exactly: JSON as a load reads records, no name twice, and none that a path does not know."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from typing import Any

from fastapi import Request
from fastapi.routing import APIRoute
from starlette.datastructures import QueryParams
from starlette.responses import Response

from omnigraph.diagnostics import did_you_mean
from omnigraph.errors import BadRequest
from omnigraph.write.decode.json_text import Malformed, parse_line

MEANS_NOTHING = frozenset({"actor", "actor_id"})
"""Names that are passed over where nothing has them: who asks is said by the token alone, whatever a client writes."""


class ExactRequest(Request):
    """A request whose JSON loses nothing."""

    async def json(self) -> Any:
        """The value of the body."""
        if not hasattr(self, "_exact"):
            body = await self.body()
            try:
                text = body.decode()
            except UnicodeDecodeError:
                raise BadRequest("the body makes no sense: it is not UTF-8 text") from None
            found = parse_line(text)
            if isinstance(found, Malformed):
                raise BadRequest(f"the body makes no sense: {found.reason}")
            self._exact = found
        return self._exact


class ExactRoute(APIRoute):
    """A route for such requests."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The handler of the route."""
        handler = super().get_route_handler()
        known = {
            parameter.alias: "list[" in str(parameter.field_info.annotation)
            for parameter in self.dependant.query_params
        }

        async def exact(request: Request) -> Response:
            if request.scope["query_string"]:
                _require_known(request.query_params, known)
            return await handler(ExactRequest(request.scope, request.receive))

        return exact


def _require_known(given: QueryParams, known: Mapping[str, bool]) -> None:
    """Refuse a name that the path does not take, and one that stands twice without being a list."""
    for name in given:
        if name in MEANS_NOTHING and name not in known:
            continue
        if name not in known:
            hint = did_you_mean(name, list(known))
            raise BadRequest(f"the query string of this path takes no `{name}`{f'; {hint}' if hint else ''}")
        if not known[name] and len(given.getlist(name)) > 1:
            raise BadRequest(f"`{name}` stands twice in the query string; give it once")
