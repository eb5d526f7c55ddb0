"""Clients that ask a server over and over, each on its own connection, and count the answers.

python -m benchmarks.http_clients URL PATH CLIENTS SECONDS BODY [KEYS]

`@unique@` in the body is another text in each request; `@key@` is a number below KEYS, another one in each request
until all have come. One process for all clients, on bare sockets: what they cost is taken from the same cores as what
they measure.
"""

from __future__ import annotations

import itertools
import json
import resource
import selectors
import socket
import sys
import time
from collections.abc import Iterator
from urllib.parse import urlsplit

UNIQUE = b"@unique@"
KEY = b"@key@"
STRIDE = 7_919
"""Keys follow each other at this distance, a prime, so that neighbours in the table are not asked for together."""


def ask(url: str, path: str, clients: int, seconds: float, body: bytes, keys: int = 1) -> int:
    """How many answers there were. Every client has one request under way, always; what is begun is waited for."""
    place = urlsplit(url)
    requests = _requests(path, body, keys)
    waiting = selectors.DefaultSelector()
    got: dict[socket.socket, bytes] = {}
    for _ in range(clients):
        one = socket.create_connection((place.hostname, place.port or 80), timeout=60)
        one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        one.sendall(next(requests))
        waiting.register(one, selectors.EVENT_READ)
        got[one] = b""
    answers = 0
    end = time.perf_counter() + seconds
    while got:
        going_on = time.perf_counter() < end
        for key, _ in waiting.select(0.1):
            one = key.fileobj
            assert isinstance(one, socket.socket)
            got[one] += one.recv(1 << 16)
            if not _is_whole(got[one]):
                continue
            assert got[one].startswith(b"HTTP/1.1 200"), got[one]
            if going_on:
                answers += 1
                got[one] = b""
                one.sendall(next(requests))
            else:
                waiting.unregister(one)
                del got[one]
                one.close()
    return answers


def _requests(path: str, body: bytes, keys: int) -> Iterator[bytes]:
    """The requests, one after the other."""
    run = f"{time.time_ns()}-".encode()
    for number in itertools.count():
        sent = body.replace(UNIQUE, run + str(number).encode()).replace(KEY, str(number * STRIDE % keys).encode())
        head = f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {len(sent)}\r\n"
        yield head.encode() + b"\r\n" + sent


def _is_whole(response: bytes) -> bool:
    head, found, rest = response.partition(b"\r\n\r\n")
    return bool(found) and len(rest) >= int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])


if __name__ == "__main__":
    url, path, clients, seconds, body, *rest = sys.argv[1:]
    answers = ask(url, path, int(clients), float(seconds), body.encode(), *map(int, rest))
    used = resource.getrusage(resource.RUSAGE_SELF)
    print(json.dumps({"answers": answers, "cpu_seconds": used.ru_utime + used.ru_stime}))
