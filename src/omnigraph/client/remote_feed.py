"""The live change feed of a graph behind a server: its events as pages, and what is told when they stop."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from typing import Any

from omnigraph.client.transport import EVENTS, Transport
from omnigraph.client.wire_errors import error_from
from omnigraph.client.wire_values import RemotePage, block
from omnigraph.errors import Unavailable

SIGN_OF_LIFE_SECONDS = 60.0
"""A server that has nothing to tell says so four times in this time."""


def followed(transport: Transport, asked: Mapping[str, Any], timeout: float | None) -> Iterator[RemotePage]:
    """A page for each event. It ends after a `timeout` without one; a feed that ends by itself is an error."""
    quiet_since = time.monotonic()
    patience = SIGN_OF_LIFE_SECONDS if timeout is None else max(min(timeout, SIGN_OF_LIFE_SECONDS), 0.01)
    cursor = asked["since"]
    kind = ""
    try:
        with transport.stream(
            "GET", "/changes", EVENTS, params=asked, headers={"Accept": EVENTS}, timeout=patience
        ) as response:
            for line in response.iter_lines():
                name, _, value = line.partition(": ")
                if name == "event":
                    kind = value
                elif name == "id":
                    cursor = value
                elif name == "data":
                    content = json.loads(value)
                    if kind == "error":
                        raise error_from(content, 500)
                    found = block(content)
                    yield RemotePage((found,), found.cursor)
                    quiet_since = time.monotonic()
                elif timeout is not None and time.monotonic() - quiet_since >= timeout:
                    return
    except Unavailable:
        if timeout is not None and time.monotonic() - quiet_since >= timeout:
            return
        raise
    raise Unavailable(f"the feed has ended, since the server stops; go on with since={cursor!r}", cursor=cursor)
