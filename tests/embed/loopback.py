"""A provider on loopback that answers what it is told to, and remembers what it was asked."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from omnigraph.embed.mock import MockEmbeddings

KEY = "sk-very-secret"
Answer = Callable[[BaseHTTPRequestHandler, dict[str, Any]], None]


class Server:
    """Answers each request by the next of `answers`, and by the last one for ever."""

    def __init__(self) -> None:
        self.answers: list[Answer] = []
        self.asked: list[tuple[str, dict[str, str], dict[str, Any], float]] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                outer.asked.append((self.path, dict(self.headers.items()), body, time.monotonic()))
                answer = outer.answers.pop(0) if len(outer.answers) > 1 else outer.answers[0]
                answer(self, body)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/v1"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@contextmanager
def running() -> Iterator[Server]:
    """A server until the end of the block."""
    made = Server()
    try:
        yield made
    finally:
        made.close()


def says(status: int, content: object, **headers: str) -> Answer:
    def answer(handler: BaseHTTPRequestHandler, _: dict[str, Any]) -> None:
        data = content if isinstance(content, bytes) else json.dumps(content).encode()
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.send_header("content-length", str(len(data)))
        handler.end_headers()
        handler.wfile.write(data)

    return answer


def vectors(*numbers: list[float], mixed: bool = False) -> Answer:
    data = [{"index": at, "embedding": vector} for at, vector in enumerate(numbers)]
    return says(200, {"data": data[::-1] if mixed else data})


def hangs_up(handler: BaseHTTPRequestHandler, _: dict[str, Any]) -> None:
    handler.close_connection = True
    handler.connection.close()


def sleeps(handler: BaseHTTPRequestHandler, _: dict[str, Any]) -> None:
    time.sleep(1.6)
    hangs_up(handler, _)


def embeds(dim: int) -> Answer:
    """Answers with the vectors of the mock provider, whatever is asked."""

    def answer(handler: BaseHTTPRequestHandler, body: dict[str, Any]) -> None:
        vectors(*MockEmbeddings().embed(body["input"], dim=dim))(handler, body)

    return answer
