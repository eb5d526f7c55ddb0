"""HTTP to a server: connections that are kept, errors as the errors that they are, the token in a header only."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote

import httpx

from omnigraph.client.sent_records import encoded
from omnigraph.client.wire_errors import error_from, foreign_answer
from omnigraph.errors import BadRequest, Unavailable

ARROW = "application/vnd.apache.arrow.stream"
BYTES = "application/octet-stream"
EVENTS = "text/event-stream"
JSON = "application/json"
LINES = "application/x-ndjson"

_ONLY_READ = frozenset({"/query", "/explain", "/export", "/diff", "/schema/plan", "/verify"})
"""What is asked for by a POST and changes nothing."""

_NEVER_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.UnsupportedProtocol)


_TOKEN = re.compile(r"[\x21-\x7e]+")


class Transport:
    """One server, and one graph of it."""

    def __init__(self, url: str, token: str | None, graph: str | None) -> None:
        self.url = checked_address(url)
        self.token = token
        self.graph = graph
        self._base = f"/graphs/{quote(graph, safe='')}" if graph else ""
        self._made_in = os.getpid()
        self._http = httpx.Client(
            base_url=self.url, headers=bearer(token), timeout=httpx.Timeout(300, connect=10), follow_redirects=False
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return Transport, (self.url, self.token, self.graph)

    def close(self) -> None:
        """Let go of the connections."""
        self._http.close()

    def get(self, path: str, **params: Any) -> Any:
        """The JSON of a GET."""
        return self._json("GET", path, params=_given(params))

    def post(self, path: str, body: Mapping[str, Any], headers: Mapping[str, str] | None = None) -> Any:
        """The JSON of a POST."""
        return self._json("POST", path, content=encoded(_given(body)), headers=_json_headers(headers))

    def delete(self, path: str, **params: Any) -> Any:
        """The JSON of a DELETE."""
        return self._json("DELETE", path, params=_given(params))

    def send(
        self, path: str, lines: Iterable[bytes], params: Mapping[str, Any], headers: Mapping[str, str] | None = None
    ) -> Any:
        """The JSON that answers a stream of lines."""
        sent = {"Content-Type": LINES, **(headers or {})}
        return self._json("POST", path, content=lines, params=_given(params), headers=sent)

    @contextmanager
    def stream(
        self,
        method: str,
        path: str,
        *kinds: str,
        body: Mapping[str, Any] | None = None,
        params: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float | None = 300,
        beyond: bool = False,
    ) -> Iterator[httpx.Response]:
        """A response of one of these kinds, read as it comes. `beyond`: a range behind the end is no error."""
        content = None if body is None else encoded(_given(body))
        sent = dict(headers or {}) if body is None else _json_headers(headers)
        with (
            self._told(method, path),
            self._open().stream(
                method,
                self._base + path,
                content=content,
                params=_given(params or {}),
                headers=sent,
                timeout=httpx.Timeout(timeout, connect=10),
            ) as response,
        ):
            behind_the_end = beyond and response.status_code == 416
            if response.status_code >= 400 and not behind_the_end:
                response.read()
                raise _refused(response)
            if not behind_the_end:
                _require(response, *kinds)
            yield response

    def _json(self, method: str, path: str, **request: Any) -> Any:
        place = path if path in ("/graphs", "/healthz", "/readyz") else self._base + path
        with self._told(method, path):
            response = self._open().request(method, place, **request)
        if response.status_code >= 400:
            raise _refused(response)
        _require(response, JSON)
        try:
            found = response.json()
        except ValueError:
            found = None
        if not isinstance(found, dict):
            raise foreign_answer(response.status_code, JSON)
        return found

    def _open(self) -> httpx.Client:
        """The connections, where they may be used."""
        if self._made_in != os.getpid():
            raise BadRequest(
                f"this graph was connected to in process {self._made_in}, and this process was forked from it: both "
                "would read from the same connections. Start processes with spawn, or connect there"
            )
        if self._http.is_closed:
            raise BadRequest(f"this handle on {self.url} is closed; connect again")
        return self._http

    @contextmanager
    def _told(self, method: str, path: str) -> Iterator[None]:
        """What goes wrong on the way to a server and back, as the error that it is."""
        try:
            yield
        except httpx.HTTPError as error:
            why = f"({type(error).__name__}: {error})"
            if isinstance(error, _NEVER_SENT):
                raise Unavailable(f"{self.url} cannot be reached {why}; nothing was sent", url=self.url) from None
            told = f"{self.url} broke off before its answer was all there {why}"
            if method != "GET" and path not in _ONLY_READ:
                told += ". What was asked may have been done; look before you ask for it again"
            raise Unavailable(told, url=self.url) from None


def checked_address(url: Any) -> str:
    """The address of a server, without a slash at its end; it may have a path, as behind a proxy."""
    if not isinstance(url, str) or not url.startswith(("http://", "https://")):
        raise BadRequest(f"`{url}` is no address of a server: it starts with http:// or https://")
    try:
        parsed = httpx.URL(url)
    except httpx.InvalidURL as error:
        raise BadRequest(f"`{url}` is no address of a server: {error}") from None
    if parsed.userinfo:
        raise BadRequest("the address of a server has no name and no password: give the token by token=…")
    if not parsed.host or " " in url or parsed.query or parsed.fragment or "?" in url:
        raise BadRequest(f"`{url}` is no address of a server: write http://HOST:PORT, with a path if it has one")
    return url.rstrip("/")


def bearer(token: Any) -> dict[str, str]:
    """The header that says who asks; none without a token."""
    if token is None or token == "":
        return {}
    if not isinstance(token, str) or not _TOKEN.fullmatch(token):
        raise BadRequest("a token is a text of visible ASCII characters, without spaces or line breaks")
    return {"Authorization": f"Bearer {token}"}


def _require(response: httpx.Response, *kinds: str) -> None:
    """Refuse what something else than a server of graphs answered."""
    kind = response.headers.get("content-type", "").partition(";")[0].strip()
    if response.status_code >= 300 or kind not in kinds or "x-request-id" not in response.headers:
        raise foreign_answer(response.status_code, kind)


def _refused(response: httpx.Response) -> Exception:
    try:
        body = response.json()
    except ValueError:
        body = {}
    return error_from(body if isinstance(body, dict) else {}, response.status_code)


def _given(values: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value is not None}


def _json_headers(headers: Mapping[str, str] | None) -> dict[str, str]:
    return {"Content-Type": JSON, **(headers or {})}
