"""An S3 server that is far away: a proxy on loopback that waits before it passes each request on, and counts them.

Latency of an object store is what a small write spends its time on, and a store on loopback has none.
"""

from __future__ import annotations

import http.client
import os
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

_HOP_BY_HOP = {"connection", "keep-alive", "transfer-encoding", "content-length"}
_ROOT = Path(__file__).resolve().parents[1]


class SlowStore:
    """The proxy: `delay` seconds before each request, which can be changed at any time; `requests` counts by method."""

    def __init__(self, upstream: str, delay: float) -> None:
        self.delay = delay
        self.requests: Counter[str] = Counter()
        self.paths: list[str] = []
        self._host = urlsplit(upstream).netloc
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.endpoint = f"http://127.0.0.1:{self._server.server_address[1]}"

    def reset(self) -> None:
        """Count from nothing again."""
        with self._lock:
            self.requests.clear()
            self.paths.clear()

    def close(self) -> None:
        """Stop answering."""
        self._server.shutdown()
        self._server.server_close()

    def _note(self, method: str, path: str) -> None:
        with self._lock:
            self.requests[method] += 1
            self.paths.append(f"{method} {path}")

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        store = self

        class Forward(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True
            upstream: http.client.HTTPConnection | None = None

            def forward(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                store._note(self.command, self.path)
                time.sleep(store.delay)
                if self.upstream is None:
                    self.upstream = http.client.HTTPConnection(store._host)
                headers = {name: value for name, value in self.headers.items() if name.lower() not in _HOP_BY_HOP}
                self.upstream.request(self.command, self.path, body, {**headers, "Content-Length": str(len(body))})
                answer = self.upstream.getresponse()
                data = answer.read()
                self.send_response(answer.status)
                for name, value in answer.getheaders():
                    if name.lower() not in _HOP_BY_HOP:
                        self.send_header(name, value)
                length = answer.getheader("Content-Length") if self.command == "HEAD" else str(len(data))
                self.send_header("Content-Length", length or "0")
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(data)

            do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = forward  # noqa: N815

            def log_message(self, *args: Any) -> None:
                """Say nothing."""

        return Forward


@contextmanager
def slow_store(delay: float) -> Iterator[SlowStore]:
    """A far-away S3 server with a bucket `graphs`; the usual AWS_* variables point to it meanwhile."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = subprocess.Popen([sys.executable, "-m", "tests.s3_server", str(port)], cwd=_ROOT)
    upstream = f"http://127.0.0.1:{port}"
    _wait_for(upstream)
    store = SlowStore(upstream, 0.0)
    before = dict(os.environ)
    os.environ.update(
        AWS_ENDPOINT_URL=store.endpoint,
        AWS_ALLOW_HTTP="true",
        AWS_ACCESS_KEY_ID="test",
        AWS_SECRET_ACCESS_KEY="test",
        AWS_REGION="us-east-1",
        AWS_EC2_METADATA_DISABLED="true",
    )
    try:
        urllib.request.urlopen(urllib.request.Request(f"{upstream}/graphs", method="PUT"), timeout=10).close()
        store.delay = delay
        yield store
    finally:
        os.environ.clear()
        os.environ.update(before)
        store.close()
        server.terminate()
        server.wait(timeout=20)


def _wait_for(endpoint: str) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            urllib.request.urlopen(endpoint, timeout=2).close()
            return
        except OSError:
            time.sleep(0.1)
    raise RuntimeError("the S3 server did not answer within 60 s")
