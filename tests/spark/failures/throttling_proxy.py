"""A server before an S3 server that answers some requests with 503, as S3 does when it is asked too much."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar
from urllib.parse import urlsplit

_SLOW_DOWN = b'<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>SlowDown</Code><Message>slow down</Message></Error>'
_OF_THE_CONNECTION = frozenset({"connection", "transfer-encoding", "content-length"})


class Throttle:
    """Which requests are refused. `refused` counts them."""

    def __init__(self) -> None:
        self.refuses: Callable[[int, str, str], bool] = lambda number, method, path: False
        self.refused = 0
        self._number = 0
        self._lock = threading.Lock()

    def lets_pass(self, method: str, path: str) -> bool:
        """Take note of a request; whether it may go on."""
        with self._lock:
            self._number += 1
            if self.refuses(self._number, method, path):
                self.refused += 1
                return False
            return True


@contextmanager
def throttled(endpoint: str) -> Iterator[tuple[str, Throttle]]:
    """The address of a server that passes requests on to `endpoint`, and what decides which."""
    target = urlsplit(endpoint)
    throttle = Throttle()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        connections: ClassVar[threading.local] = threading.local()

        def answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            if not throttle.lets_pass(self.command, self.path):
                self.reply(503, [("Content-Type", "application/xml")], _SLOW_DOWN)
                return
            connection = http.client.HTTPConnection(target.hostname or "", target.port or 80, timeout=60)
            connection.request(self.command, self.path, body, dict(self.headers))
            got = connection.getresponse()
            self.reply(got.status, got.getheaders(), got.read(), length=got.getheader("Content-Length"))
            connection.close()

        def reply(self, status: int, headers: list[tuple[str, str]], body: bytes, *, length: str | None = None) -> None:
            self.send_response_only(status)
            for name, value in headers:
                if name.lower() not in _OF_THE_CONNECTION:
                    self.send_header(name, value)
            # The answer to HEAD has the length of what it leaves out.
            self.send_header("Content-Length", length if self.command == "HEAD" and length else str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = answer  # noqa: N815 - names of the base class

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", throttle
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
