"""HTTP to a server: connections that are kept, errors as the errors that they are, the token in a header only."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote

import httpx

from omnigraph.client.sent_records import encoded
from omnigraph.client.wire_errors import error_from
from omnigraph.errors import BadRequest, Unavailable

ARROW = "application/vnd.apache.arrow.stream"
LINES = "application/x-ndjson"


class Transport:
    """One server, and one graph of it."""

    def __init__(self, url: str, token: str | None, graph: str | None) -> None:
        if not url.startswith(("http://", "https://")):
            raise BadRequest(f"`{url}` is no address of a server: it starts with http:// or https://")
        self.url = url.rstrip("/")
        self.graph = graph
        self._base = f"/graphs/{quote(graph, safe='')}" if graph else ""
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._http = httpx.Client(
            base_url=self.url, headers=headers, timeout=httpx.Timeout(300, connect=10), follow_redirects=False
        )

    def close(self) -> None:
        """Let go of the connections."""
        self._http.close()

    def get(self, path: str, **params: Any) -> Any:
        """The JSON of a GET."""
        return self._json("GET", path, params=_given(params))

    def post(self, path: str, body: Mapping[str, Any], headers: Mapping[str, str] | None = None) -> Any:
        """The JSON of a POST."""
        return self._json("POST", path, content=encoded(_given(body)), headers=_json_headers(headers))

    def delete(self, path: str) -> Any:
        """The JSON of a DELETE."""
        return self._json("DELETE", path)

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
        *,
        body: Mapping[str, Any] | None = None,
        params: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float | None = 300,
        beyond: bool = False,
    ) -> Iterator[httpx.Response]:
        """A response that is read as it comes. `beyond`: that a range lies behind the end is no error."""
        content = None if body is None else encoded(_given(body))
        sent = dict(headers or {}) if body is None else _json_headers(headers)
        try:
            with self._http.stream(
                method,
                self._base + path,
                content=content,
                params=_given(params or {}),
                headers=sent,
                timeout=httpx.Timeout(timeout, connect=10),
            ) as response:
                if response.status_code >= 400 and not (beyond and response.status_code == 416):
                    response.read()
                    raise _refused(response)
                yield response
        except httpx.HTTPError as error:
            raise self._unreachable(error) from None

    def _json(self, method: str, path: str, **request: Any) -> Any:
        place = path if path in ("/graphs", "/healthz", "/readyz") else self._base + path
        try:
            response = self._http.request(method, place, **request)
        except httpx.HTTPError as error:
            raise self._unreachable(error) from None
        if response.status_code >= 400:
            raise _refused(response)
        return response.json()

    def _unreachable(self, error: httpx.HTTPError) -> Unavailable:
        return Unavailable(
            f"{self.url} cannot be reached, or broke off ({type(error).__name__}: {error}). A write may have been "
            "done; look before you write again",
            url=self.url,
        )


def _refused(response: httpx.Response) -> Exception:
    try:
        body = response.json()
    except ValueError:
        body = {}
    return error_from(body if isinstance(body, dict) else {}, response.status_code)


def _given(values: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value is not None}


def _json_headers(headers: Mapping[str, str] | None) -> dict[str, str]:
    return {"Content-Type": "application/json", **(headers or {})}
