"""A resource as it is wanted: what it means, by digest; how it is bound; what it needs; what a server reads."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson


@dataclass(frozen=True, slots=True)
class Resource:
    """One resource. `payload` is what is stored for servers; `own_digest` leaves out what follows from its parts."""

    address: str
    digest: str
    binding: Mapping[str, Any] = field(default_factory=dict)
    payload: bytes | None = None
    needs: tuple[str, ...] = ()
    own_digest: str = ""

    @property
    def payload_digest(self) -> str | None:
        """What its payload is stored under."""
        return None if self.payload is None else digest_of_bytes(self.payload)


def graph_digest(own_digest: str | None, parts: Mapping[str, str | None]) -> str:
    """The digest of a graph: of its own settings, and of its schema and queries by address."""
    return digest_of({"own": own_digest, "parts": dict(parts)})


def digest_of(content: Any) -> str:
    """The digest of plain JSON data: the same for the same meaning, whatever the order of its keys."""
    return digest_of_bytes(orjson.dumps(content, option=orjson.OPT_SORT_KEYS))


def digest_of_bytes(data: bytes) -> str:
    """The digest of bytes."""
    return hashlib.sha256(data).hexdigest()
