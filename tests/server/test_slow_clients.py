"""Clients that open a connection and take their time: none keeps it for ever, and nobody else waits for them."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import httpx
import pytest

import omnigraph as og
from omnigraph.server import gate, punctual_heads
from omnigraph.server.server_settings import GraphSettings
from tests.server.running import Running, serving

READ = b'{"query": "query q() { match { $p: Person } return { $p.slug } }"}'


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Running]:
    """One whose clients have time enough on a busy machine, and not more."""
    monkeypatch.setattr(punctual_heads, "HEAD_SECONDS", 1.5)
    place = tmp_path / "g.omni"
    og.init(place, schema="node Person { slug: String @key }").close()
    with serving(GraphSettings("default", str(place)), body_seconds=1.5) as running:
        yield running


def connected(server: Running) -> socket.socket:
    place = httpx.URL(server.url)
    return socket.create_connection((place.host, place.port or 80), timeout=30)


def everything(bare: socket.socket) -> bytes:
    """What comes until the server closes the connection; it has to."""
    return b"".join(iter(lambda: bare.recv(1 << 16), b""))


@pytest.fixture
def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """For those who are to be turned away in any case."""
    monkeypatch.setattr(punctual_heads, "HEAD_SECONDS", 0.3)


@pytest.mark.usefixtures("hurry")
@pytest.mark.parametrize("sent", [b"", b"POST /query HTTP/1.1\r\nHost: x\r\nContent-"])
def test_a_head_that_does_not_come(server: Running, sent: bytes) -> None:
    with closing(connected(server)) as bare:
        bare.sendall(sent)
        assert everything(bare) == b""


def sent_until_closed(bare: socket.socket, piece: bytes, most: int, pause: float = 0.0) -> int:
    """Send a piece over and over; how many bytes went before the server closed the connection."""
    sent = 0
    while sent < most:
        try:
            sent += bare.send(piece)
        except OSError:
            break
        time.sleep(pause)
    return sent


@pytest.mark.usefixtures("hurry")
def test_a_head_that_comes_a_byte_at_a_time(server: Running) -> None:
    with closing(connected(server)) as bare:
        bare.sendall(b"GET /healthz HTTP/1.1\r\nX-Header: ")
        assert sent_until_closed(bare, b"x", 300, pause=0.1) < 300


def test_a_head_without_end(server: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(punctual_heads, "HEAD_SECONDS", 60)
    with closing(connected(server)) as bare:
        bare.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n")
        sent = sent_until_closed(bare, b"X-Header: " + b"x" * 1000 + b"\r\n", 64 << 20)
    assert sent < 16 << 20, "what the system holds is all that it takes"


def test_the_second_head_of_a_connection(server: Running) -> None:
    with closing(connected(server)) as bare:
        whole = b"POST /query HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"
        bare.sendall(whole % (len(READ), READ))
        assert bare.recv(1 << 16).startswith(b"HTTP/1.1 200")
        bare.sendall(b"POST /que")
        assert b"HTTP/1.1" not in everything(bare)


def test_a_request_that_takes_longer_than_a_head_may(server: Running) -> None:
    """The feed has no end, and its client is silent."""
    with server.client() as http, http.stream("GET", "/changes", headers={"Accept": "text/event-stream"}) as feed:
        time.sleep(2.2)
        http.post("/mutate", json={"query": 'query m() { insert Person { slug: "a" } }'})
        assert next(line for line in feed.iter_lines() if line.startswith("data:"))


def test_a_body_that_comes_a_byte_at_a_time(server: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gate, "LEAST_BYTES_A_SECOND", 1 << 20)

    def trickle() -> Iterator[bytes]:
        for byte in b"{" + b" " * 300:
            yield bytes([byte])
            time.sleep(0.1)

    with closing(connected(server)) as bare:
        bare.sendall(
            b"POST /query HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 301\r\n\r\n"
        )
        begun = time.monotonic()
        sent = trickle()
        bare.settimeout(0.01)
        answer = b""
        while not answer and time.monotonic() < begun + 30:
            bare.sendall(next(sent))
            try:
                answer = bare.recv(1 << 16)
            except TimeoutError:
                continue
    assert answer.startswith(b"HTTP/1.1 400")
    assert b"too slowly" in answer
