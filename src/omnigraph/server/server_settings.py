"""What a server serves and how: plain values, from the command line and the environment. No secret is among them."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from omnigraph.config import parse_duration, parse_size
from omnigraph.errors import BadRequest

ONLY_GRAPH = "default"
"""The id of the graph of a server that was started with one URI."""


@dataclass(frozen=True, slots=True)
class GraphSettings:
    """One graph to serve. `policy` and `queries` are paths."""

    id: str
    uri: str
    policy: str | None = None
    queries: str | None = None


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """Everything that a server process is told. It travels to workers as JSON; tokens are read by each of them."""

    graphs: tuple[GraphSettings, ...] = ()
    cluster: str | None = None
    """The folder or the storage of a cluster, instead of graphs: what was applied there is served."""
    host: str = "127.0.0.1"
    port: int = 8080
    unauthenticated: bool = False
    server_policy: str | None = None
    """The policy for the server itself (`graph_list`); of a single graph its own."""
    workers: int = 1
    combine: bool = False
    require_all_graphs: bool = False
    actor_requests: int = 16
    """Requests of one actor that may be under way."""
    actor_bytes: int = 4 << 30
    """Bytes of request bodies of one actor that may be held."""
    body_bytes: int = 1 << 20
    load_bytes: int = 32 << 20
    query_seconds: float = 60.0
    """The longest that a read may take; a caller may ask for less."""
    body_seconds: float = 30.0
    """How long the next piece of a body may take to come."""
    drain_seconds: float = 30.0
    read_threads: int = 16
    write_threads: int = 64

    def to_json(self) -> str:
        """As a text that a worker reads."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> ServerSettings:
        """What `to_json` gave."""
        data: dict[str, Any] = json.loads(text)
        return cls(**{**data, "graphs": tuple(GraphSettings(**graph) for graph in data["graphs"])})


_FROM_ENVIRONMENT: dict[str, tuple[str, Callable[[str], Any]]] = {
    "actor_requests": ("OMNIGRAPH_PER_ACTOR_INFLIGHT_MAX", int),
    "actor_bytes": ("OMNIGRAPH_PER_ACTOR_BYTES_MAX", parse_size),
    "query_seconds": ("OMNIGRAPH_SERVER_QUERY_TIMEOUT", parse_duration),
    "drain_seconds": ("OMNIGRAPH_SERVER_DRAIN", parse_duration),
    "read_threads": ("OMNIGRAPH_SERVER_READ_THREADS", int),
    "write_threads": ("OMNIGRAPH_SERVER_WRITE_THREADS", int),
}


def limits_from(environment: Mapping[str, str] = os.environ) -> dict[str, Any]:
    """The limits that the environment sets."""
    found: dict[str, Any] = {}
    for name, (variable, parse) in _FROM_ENVIRONMENT.items():
        text = environment.get(variable, "").strip()
        if not text:
            continue
        try:
            value = parse(text)
        except ValueError as error:
            raise BadRequest(f"{variable}: {error}") from None
        if value <= 0:
            raise BadRequest(f"{variable} must be above zero and is {text}")
        found[name] = value
    assert found.keys() <= {field.name for field in fields(ServerSettings)}
    return found


def parse_bind(text: str) -> tuple[str, int]:
    """`HOST:PORT`, an IPv6 address in brackets; port 0 picks a free one."""
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdigit() or int(port) > 65535:
        raise BadRequest(f"`{text}` is no address to listen on: write HOST:PORT, such as 0.0.0.0:8080")
    return host.strip("[]") or "0.0.0.0", int(port)
