"""Clients that ask a server the same thing over and over, each on its own connection, and count the answers.

python -m benchmarks.http_clients URL CLIENTS SECONDS BODY

One process for all of them, on bare sockets: what they cost is taken from the same cores as what they measure.
"""

from __future__ import annotations

import json
import resource
import selectors
import socket
import sys
import time
from urllib.parse import urlsplit


def ask(url: str, clients: int, seconds: float, body: bytes, path: str = "/query") -> int:
    """How many answers there were. Every client has one request under way, always."""
    place = urlsplit(url)
    head = (
        f"POST {path} HTTP/1.1\r\nHost: loopback\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    )
    request = head.encode() + b"\r\n" + body
    waiting = selectors.DefaultSelector()
    got: dict[socket.socket, bytes] = {}
    for _ in range(clients):
        one = socket.create_connection((place.hostname, place.port or 80), timeout=60)
        one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        one.sendall(request)
        waiting.register(one, selectors.EVENT_READ)
        got[one] = b""
    answers = 0
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        for key, _ in waiting.select(0.1):
            one = key.fileobj
            assert isinstance(one, socket.socket)
            got[one] += one.recv(1 << 16)
            if _is_whole(got[one]):
                assert got[one].startswith(b"HTTP/1.1 200"), got[one]
                answers += 1
                got[one] = b""
                one.sendall(request)
    for one in got:
        one.close()
    return answers


def _is_whole(response: bytes) -> bool:
    head, found, rest = response.partition(b"\r\n\r\n")
    return bool(found) and len(rest) >= int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])


if __name__ == "__main__":
    url, clients, seconds, body = sys.argv[1:]
    answers = ask(url, int(clients), float(seconds), body.encode())
    used = resource.getrusage(resource.RUSAGE_SELF)
    print(json.dumps({"answers": answers, "cpu_seconds": used.ru_utime + used.ru_stime}))
