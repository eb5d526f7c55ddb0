"""A blob behind a server: its size is asked for once, its bytes in the ranges that are read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from omnigraph.client.transport import BYTES, Transport


@dataclass(frozen=True, slots=True)
class RemoteBlob:
    """One blob of one commit. `name` is what errors call it."""

    transport: Transport
    place: Mapping[str, str]
    size: int
    name: str

    @classmethod
    def found(cls, transport: Transport, place: Mapping[str, str]) -> Self:
        """The blob at a place, which names a commit; `NotFound` when there is none."""
        # The answer to a HEAD has no body, so it could not say what is wrong.
        first = {"Range": "bytes=0-0"}
        with transport.stream("GET", "/blob", BYTES, params=place, headers=first, beyond=True) as response:
            size = int(response.headers["Content-Range"].rpartition("/")[2])
        return cls(transport, place, size, f"`{place['property']}` of {place['type']} `{place['id']}`")

    def read(self, start: int, end: int) -> bytes:
        """The bytes from `start` up to `end`, which lie within it."""
        headers = {"Range": f"bytes={start}-{end - 1}"}
        with self.transport.stream("GET", "/blob", BYTES, params=self.place, headers=headers) as response:
            return response.read()
