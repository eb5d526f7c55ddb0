"""A client that talks to something else than a server of graphs: it says so, in errors of the family."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

import omnigraph as og
from omnigraph import errors
from omnigraph.client.remote_graph import RemoteGraph

COUNT = "query q() { match { $p: Person } return { count($p) as n } }"
INSERT = 'query m() { insert Person { slug: "x" } }'


@contextmanager
def answering(status: int, kind: str, body: bytes, **headers: str) -> Iterator[str]:
    """Something that answers every request alike; its address."""

    class Answer(BaseHTTPRequestHandler):
        def answer(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            self.send_response(status)
            for name, value in {"Content-Type": kind, "Content-Length": str(len(body)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = do_DELETE = answer  # noqa: N815 - the library looks for these names

        def log_message(self, *_: Any) -> None:
            """Nothing on the terminal."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    threading.Thread(target=lambda: server.serve_forever(0.01), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


CALLS: dict[str, Callable[[RemoteGraph], Any]] = {
    "query": lambda g: g.query(COUNT),
    "head": lambda g: g.head(),
    "branches": lambda g: g.branch_list(),
    "mutate": lambda g: g.mutate(INSERT),
    "load": lambda g: g.load([{"type": "Person", "data": {"slug": "x"}}], mode="append"),
    "export": lambda g: list(g.export_lines()),
    "follow": lambda g: next(g.follow()),
    "blob": lambda g: g.read_blob("Person", "x", "photo"),
    "invoke": lambda g: g.invoke("people"),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize(
    ("status", "kind", "body"),
    [
        (200, "text/html", b"<html>hello</html>"),
        (200, "application/json", b'{"hello": 1}'),
        (200, "application/json", b"[1]"),
        (200, "application/json", b"{"),
        (204, "text/plain", b""),
        (302, "text/html", b""),
    ],
)
def test_what_is_no_answer_of_a_server_is_told(name: str, status: int, kind: str, body: bytes) -> None:
    with (
        answering(status, kind, body, Location="/login") as url,
        og.connect(url) as graph,
        pytest.raises(errors.Unavailable, match="not as a server of graphs"),
    ):
        CALLS[name](graph)


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, errors.BadRequest),
        (401, errors.Unauthorized),
        (403, errors.PolicyDenied),
        (404, errors.NotFound),
        (405, errors.MethodNotAllowed),
        (413, errors.ResourceLimit),
        (429, errors.TooManyRequests),
        (500, errors.Unavailable),
        (502, errors.Unavailable),
        (503, errors.Unavailable),
        (504, errors.Unavailable),
    ],
)
def test_what_a_proxy_refuses_has_its_class(status: int, kind: type[errors.OmniGraphError]) -> None:
    with answering(status, "text/html", b"<html>no</html>") as url, og.connect(url) as graph:
        for name in ("query", "head", "mutate"):
            with pytest.raises(kind, match=f"status {status}") as told:
                CALLS[name](graph)
            assert pickle.loads(pickle.dumps(told.value)).message == told.value.message


def test_an_export_that_ends_in_the_middle_of_a_line_is_no_export() -> None:
    body = b'{"type": "Person", "data": {"slug": "ada"}}\n{"type": "Per'
    with answering(200, "application/x-ndjson", body, **{"X-Request-Id": "1"}) as url, og.connect(url) as graph:
        lines = graph.export_lines()
        assert next(lines).endswith(b"}\n")
        with pytest.raises(errors.Unavailable, match="in the middle of a line"):
            next(lines)


def test_a_feed_that_ends_is_told_with_where_to_go_on() -> None:
    body = b"retry: 1000\n\n: still here\n\n"
    with answering(200, "text/event-stream", body, **{"X-Request-Id": "1"}) as url, og.connect(url) as graph:
        with pytest.raises(errors.Unavailable, match="go on with since='a-cursor'") as told:
            list(graph.follow(since="a-cursor"))
        assert told.value.details["cursor"] == "a-cursor"


def test_nobody_at_the_address() -> None:
    with og.connect("http://127.0.0.1:1") as graph:
        for call in (CALLS["query"], CALLS["mutate"]):
            with pytest.raises(errors.Unavailable, match=r"cannot be reached.*nothing was sent"):
                call(graph)
