"""A server on loopback: real HTTP, in a thread of the test's process or in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx
import uvicorn

from omnigraph.server.app import create_app
from omnigraph.server.bearer_tokens import hashed
from omnigraph.server.launch import listen
from omnigraph.server.punctual_heads import PROTOCOL
from omnigraph.server.server_settings import GraphSettings, ServerSettings


@dataclass(frozen=True)
class Running:
    """A server that runs. `app` is its application."""

    url: str
    app: Any

    def client(self, token: str | None = None) -> httpx.Client:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        return httpx.Client(base_url=self.url, headers=headers, timeout=60)


@contextmanager
def serving(*graphs: GraphSettings, tokens: Mapping[str, str] | None = None, **settings: Any) -> Iterator[Running]:
    """Serve in a thread until the block ends."""
    told = ServerSettings(graphs=graphs, unauthenticated=not tokens, drain_seconds=5)
    app = create_app(replace(told, **settings), hashed(tokens or {}))
    listener = listen("127.0.0.1", 0)
    config = uvicorn.Config(
        app, http=PROTOCOL, log_config=None, access_log=False, lifespan="on", timeout_graceful_shutdown=5
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    try:
        until(lambda: server.started or not thread.is_alive())
        assert server.started
        yield Running(f"http://127.0.0.1:{listener.getsockname()[1]}", app)
    finally:
        server.should_exit = True
        thread.join(timeout=30)


@dataclass
class Process:
    """A server in a process of its own."""

    url: str
    process: subprocess.Popen[str]
    log: Path

    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.log.read_text().splitlines() if line.startswith("{")]


@contextmanager
def process(*argv: object, folder: Path, env: Mapping[str, str] | None = None) -> Iterator[Process]:
    """`omnigraph-server` with these arguments on a free port, ready to serve."""
    log = folder / "server.log"
    with log.open("w") as errors:
        started = start(*argv, env=env, errors=errors)
    try:
        assert started.stdout is not None
        line = started.stdout.readline()
        assert line.startswith("OMNIGRAPH_LISTEN_ADDR="), log.read_text()
        url = f"http://{line.strip().partition('=')[2]}"
        # whoever is told the address can use it at once, however long the workers take to start
        assert httpx.get(f"{url}/healthz", timeout=90).status_code == 200, log.read_text()
        until(lambda: _answers(url) or started.poll() is not None)
        assert started.poll() is None, log.read_text()
        yield Process(url, started, log)
    finally:
        started.terminate()
        started.wait(timeout=60)


def start(*argv: object, env: Mapping[str, str] | None = None, errors: Any = subprocess.PIPE) -> subprocess.Popen[str]:
    code = "from omnigraph.server.launch import run; run()"
    return subprocess.Popen(
        [sys.executable, "-c", code, *(str(arg) for arg in argv), "--bind", "127.0.0.1:0"],
        stdout=subprocess.PIPE,
        stderr=errors,
        text=True,
        env={**os.environ, **(env or {})},
    )


def until(done: Any, seconds: float = 90) -> None:
    deadline = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < deadline, "it took too long"
        time.sleep(0.01)


def _answers(url: str) -> bool:
    try:
        return httpx.get(f"{url}/readyz", timeout=2).status_code == 200
    except httpx.HTTPError:
        return False
