"""The S3 server of the tests: moto's S3 service alone, in a process of its own (`python -m tests.s3_server PORT`).

The program that comes with moto finds out for each request which of its hundreds of services is meant, opens a
connection for each, and lets two conditional puts of one key both win when they come at the same instant. Here one
service is served, connections are kept, and requests are answered one at a time, which is what makes put-if-absent and
put-if-match as atomic as S3 says they are.
"""

from __future__ import annotations

import io
import logging
import sys
import threading
from collections.abc import Callable, Iterable
from typing import Any

from moto.moto_server.werkzeug_app import MotoRequestHandler, create_backend_app
from werkzeug.serving import run_simple


class OneAtATime:
    """A WSGI application whose requests wait for each other, once their bodies are here."""

    def __init__(self, application: Callable[..., Iterable[bytes]]) -> None:
        self._application = application
        self._lock = threading.Lock()

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        environ["wsgi.input"] = io.BytesIO(body)
        with self._lock:
            return list(self._application(environ, start_response))


class KeepsConnections(MotoRequestHandler):
    """Answers many requests on one connection and writes no log."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_request(self, *args: Any) -> None:
        """Say nothing."""


def serve(port: int) -> None:
    """Answer on loopback until the process ends."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    application = OneAtATime(create_backend_app("s3"))
    run_simple("127.0.0.1", port, application, threaded=True, request_handler=KeepsConnections)


if __name__ == "__main__":
    serve(int(sys.argv[1]))
