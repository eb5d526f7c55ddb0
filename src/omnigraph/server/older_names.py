"""Paths that older clients call: each answers like its successor, says so, and names it, also when it refuses."""

from __future__ import annotations

import re

_SUCCESSORS = {"read": "query", "change": "mutate", "ingest": "load"}
_PATH = re.compile(r"(/graphs/[A-Za-z0-9_.-]+)/(read|change|ingest)")


def successor_headers(path: str) -> list[tuple[bytes, bytes]]:
    """What the response of an older path says beside its content; nothing for any other path."""
    found = _PATH.fullmatch(path)
    if found is None:
        return []
    successor = f'<{found[1]}/{_SUCCESSORS[found[2]]}>; rel="successor-version"'
    return [(b"deprecation", b"true"), (b"link", successor.encode())]
