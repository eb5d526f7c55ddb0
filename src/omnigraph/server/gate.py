"""What every request passes before it reaches a route: its id, who asks, how much it may send; and after it, the log.

Plain ASGI, around the framework: nothing of a body is read for somebody who is not known.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
import time
from contextlib import nullcontext
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send
from ulid import ULID

from omnigraph.errors import BadRequest, PolicyDenied, ResourceLimit, Unauthorized
from omnigraph.server.bearer_tokens import BearerTokens
from omnigraph.server.error_bodies import error_response
from omnigraph.server.metrics import Metrics
from omnigraph.server.served import ServedGraphs
from omnigraph.server.server_settings import ServerSettings
from omnigraph.server.tracing import is_configured, request_span

_access = logging.getLogger("omnigraph.server.access")

FOR_EVERYBODY = frozenset({"/healthz", "/readyz", "/openapi.json"})
OF_THE_SERVER = FOR_EVERYBODY | {"/metrics", "/reload", "/graphs"}
_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_SUCCESSORS = {"read": "query", "change": "mutate", "ingest": "load"}
_OLDER_PATH = re.compile(r"(/graphs/[A-Za-z0-9_.-]+)/(read|change|ingest)")


class Gate:
    """The outermost part of the application."""

    def __init__(
        self, app: ASGIApp, settings: ServerSettings, tokens: BearerTokens, metrics: Metrics, graphs: ServedGraphs
    ) -> None:
        self._app = app
        self._settings = settings
        self._tokens = tokens
        self._metrics = metrics
        self._graphs = graphs
        self._only_graph = graphs.only_id
        self._traced = is_configured()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let one request through, or answer it here."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = {name.lower(): value.decode("latin-1") for name, value in scope["headers"]}
        passage = _Passage(scope, send, _request_id(headers.get(b"x-request-id", "")))
        scope["omnigraph"] = passage
        started = time.perf_counter()
        self._metrics.under_way.inc()
        try:
            with request_span(scope, headers, passage) if self._traced else nullcontext():
                await self._pass(scope, headers, receive, passage)
        finally:
            self._metrics.under_way.dec()
            self._record(scope, passage, time.perf_counter() - started)

    async def _pass(self, scope: Scope, headers: dict[bytes, str], receive: Receive, passage: _Passage) -> None:
        try:
            scope["path"] = self._whole_path(scope["path"])
            scope["raw_path"] = scope["path"].encode()
            tokens = [value for name, value in scope["headers"] if name == b"authorization"]
            passage.actor = self._actor(scope["path"], tokens[0].decode("latin-1") if len(tokens) == 1 else None)
            if self._settings.unauthenticated and b"origin" in headers:
                _refuse_other_sites(scope["path"], headers)
            body = _Body(receive, self._most(scope["path"]), self._settings.body_seconds, passage)
            body.expect(headers.get(b"content-length"))
            if self._graphs.behind:
                await asyncio.to_thread(self._graphs.catch_up)
            await self._app(scope, body, passage.send)
        except Exception as error:
            if passage.status:
                raise  # the response has begun: all that is left is to break it off
            await error_response(error, passage.request_id)(scope, receive, passage.send)

    def _whole_path(self, path: str) -> str:
        """The short paths of a server with one graph stand for those of that graph."""
        if self._only_graph is None or path in OF_THE_SERVER or path.startswith("/graphs/"):
            return path
        return f"/graphs/{self._only_graph}{path}"

    def _actor(self, path: str, header: str | None) -> str | None:
        if self._settings.unauthenticated or path in FOR_EVERYBODY:
            return None
        scheme, _, token = (header or "").partition(" ")
        actor = self._tokens.actor(token.strip()) if scheme.lower() == "bearer" else None
        if actor is None:
            raise Unauthorized(
                "a valid bearer token is needed: send `Authorization: Bearer …`, or keep one with `omnigraph login`"
            )
        return actor

    def _most(self, path: str) -> int | None:
        if path.endswith("/load/ndjson"):
            return None
        return self._settings.load_bytes if path.endswith(("/load", "/ingest")) else self._settings.body_bytes

    def _record(self, scope: Scope, passage: _Passage, seconds: float) -> None:
        route = getattr(scope.get("route"), "path", "none")
        method = scope["method"]
        status = passage.status or 499
        self._metrics.answered(method, route, status, seconds)
        self._metrics.bytes_in.inc(passage.bytes_in)
        self._metrics.bytes_out.inc(passage.bytes_out)
        if _access.isEnabledFor(logging.INFO):
            _access.info(
                "request",
                extra={
                    "request_id": passage.request_id,
                    "method": method,
                    "path": scope["path"],
                    "route": route,
                    "status": status,
                    "actor": passage.actor,
                    "milliseconds": round(seconds * 1000, 3),
                    "bytes_in": passage.bytes_in,
                    "bytes_out": passage.bytes_out,
                },
            )


class _Passage:
    """What is known of one request on its way, and how its response leaves."""

    def __init__(self, scope: Scope, send: Send, request_id: str) -> None:
        self._scope = scope
        self._send = send
        self.request_id = request_id
        self.actor: str | None = None
        self.status = 0
        self.bytes_in = 0
        self.bytes_out = 0

    async def send(self, message: Message) -> None:
        """Pass a part of the response on."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            own = [(b"x-request-id", self.request_id.encode()), *_successor_headers(self._scope["path"])]
            headers = [*message.get("headers", ()), *own]
            message = {**message, "headers": headers}
        elif message["type"] == "http.response.body":
            self.bytes_out += len(message.get("body", b""))
        await self._send(message)


LEAST_BYTES_A_SECOND = 1 << 16
"""How quickly a body of a bounded size has to come, once its time for a first piece is over."""


class _Body:
    """The body as it comes in: not more of it than is allowed, and no piece later than it may be.

    A bounded one has an end too: a byte at a time, each of them in time, would keep a connection for weeks.
    """

    def __init__(self, receive: Receive, most: int | None, seconds: float, passage: _Passage) -> None:
        self._receive = receive
        self._most = most
        self._seconds = seconds
        self._passage = passage
        self._whole = False
        self._end = time.monotonic() + seconds + most / LEAST_BYTES_A_SECOND if most is not None else None

    def expect(self, length: str | None) -> None:
        """What the request says it will send."""
        if length is not None and length.isdigit() and self._most is not None and int(length) > self._most:
            raise self._too_large()

    async def __call__(self) -> Message:
        """The next piece."""
        if self._whole:
            return await self._receive()
        left = self._seconds if self._end is None else min(self._seconds, self._end - time.monotonic())
        try:
            async with asyncio.timeout(left):
                message = await self._receive()
        except TimeoutError:
            if left < self._seconds:
                raise BadRequest("the body came too slowly to be waited for; nothing was done") from None
            raise BadRequest(f"the body did not go on for {self._seconds:g} s; nothing was done") from None
        if message["type"] == "http.request":
            self._passage.bytes_in += len(message.get("body", b""))
            if self._most is not None and self._passage.bytes_in > self._most:
                raise self._too_large()
        self._whole = not message.get("more_body", False)
        return message

    def _too_large(self) -> ResourceLimit:
        return ResourceLimit(
            f"the body is larger than {self._most} bytes, which is the most that this path takes; send records as a "
            "stream to /load/ndjson",
            limit="body_bytes",
            limit_value=self._most,
        )


class JsonLines(logging.Formatter):
    """One JSON object for each line of the log."""

    _OWN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "color_message", "taskName"}

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        line: dict[str, Any] = {
            "time": self.formatTime(record, "%Y-%m-%dT%H:%M:%S") + f".{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **{key: value for key, value in vars(record).items() if key not in self._OWN},
        }
        if record.exc_info:
            line["trace"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str, ensure_ascii=False)

    converter = staticmethod(time.gmtime)


def _refuse_other_sites(path: str, headers: dict[bytes, str]) -> None:
    """Refuse what a page of another site sends. Its reader's browser reaches a server that its author does not, and
    where nobody needs a token that is all it takes to write.
    """
    own = headers[b"origin"].partition("://")[2] == headers.get(b"host", "")
    if not own and headers.get(b"sec-fetch-site") not in ("same-origin", "none") and path not in FOR_EVERYBODY:
        raise PolicyDenied("a page of another site asks for this; a server without tokens answers only its own")


def _request_id(given: str) -> str:
    return given if _REQUEST_ID.fullmatch(given) else str(ULID())


def _successor_headers(path: str) -> list[tuple[bytes, bytes]]:
    """What the response of a path that older clients call says of the one that took its place, also when it refuses."""
    found = _OLDER_PATH.fullmatch(path)
    if found is None:
        return []
    successor = f'<{found[1]}/{_SUCCESSORS[found[2]]}>; rel="successor-version"'
    return [(b"deprecation", b"true"), (b"link", successor.encode())]
