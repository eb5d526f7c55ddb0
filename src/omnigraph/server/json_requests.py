"""JSON bodies read as a load reads records: numbers as they are written, and no key twice."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import Request
from fastapi.routing import APIRoute
from starlette.responses import Response

from omnigraph.errors import BadRequest
from omnigraph.write.decode.json_text import Malformed, parse_line


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

        async def exact(request: Request) -> Response:
            return await handler(ExactRequest(request.scope, request.receive))

        return exact
