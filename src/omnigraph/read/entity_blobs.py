"""Blobs of single entities, whole, in ranges, or as a file. Only the bytes that are asked for are read."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from omnigraph.choices import Target
from omnigraph.diagnostics import did_you_mean
from omnigraph.errors import BadRequest, NotFound
from omnigraph.ledger.snapshots import entity_place
from omnigraph.ledger.values import MAIN
from omnigraph.schema.types import is_blob
from omnigraph.storage.tables import TableStore
from omnigraph.storage.values import TableVersion

if TYPE_CHECKING:
    from omnigraph.ledger.store import GraphStore

BUFFER = 1 << 20
"""Bytes that an opened blob reads ahead: on an object store each read is a request."""


class Blob(Protocol):
    """A blob that can be read in parts, wherever it lies. `name` is what errors call it."""

    @property
    def size(self) -> int:
        """How many bytes it has."""

    @property
    def name(self) -> str:
        """What errors call it."""

    def read(self, start: int, end: int) -> bytes:
        """The bytes from `start` up to `end`, which lie within it."""


@dataclass(frozen=True, slots=True)
class FoundBlob:
    """Where one blob lies, and its size in bytes. `name` is what errors call it."""

    tables: TableStore
    table: TableVersion
    row_id: int
    column: str
    size: int
    name: str

    def read(self, start: int, end: int) -> bytes:
        """The bytes from `start` up to `end`, which lie within it."""
        found = self.tables.read_blob(self.table, self.row_id, self.column, start, end)
        assert found is not None, f"{self.name} was there"
        return found


def find_blob(
    store: GraphStore, type_name: str, entity_id: Any, property_: str, at: Target = None, branch: str = MAIN
) -> FoundBlob:
    """The blob of an entity at a target. `NotFound` when there is no such entity, or when it has no value."""
    place = entity_place(store, type_name, entity_id, at, branch, "blob")
    if place is None:
        raise NotFound(f"there is no {type_name} `{entity_id}`", type=type_name)
    type_, table, row_id = place
    name = f"`{property_}` of {type_.name} `{entity_id}`"
    declared = type_.by_name.get(property_)
    blobs = [p.name for p in type_.properties if is_blob(p.type)]
    if declared is None:
        hint = did_you_mean(property_, blobs)
        raise NotFound(f"{type_.name} has no property `{property_}`{f'; {hint}' if hint else ''}", type=type_.name)
    if declared.name not in blobs:
        known = f"its blobs are {', '.join(f'`{one}`' for one in blobs)}" if blobs else "it has none"
        raise BadRequest(f"`{property_}` of {type_.name} is no blob but {declared.type}; {known}")
    size = store.tables.blob_size(table, row_id, declared.column)
    if size is None:
        raise NotFound(f"{name} has no value", type=type_.name)
    return FoundBlob(store.tables, table, row_id, declared.column, size, name)


def read_range(blob: Blob, start: int = 0, end: int | None = None) -> bytes:
    """The bytes from `start` up to `end`; what lies beyond the end of the blob is not there."""
    if start < 0 or (end is not None and end < start):
        raise BadRequest(
            f"{blob.name}: bytes {start} to {end} are no range: both count from 0, the end is not included"
        )
    stop = blob.size if end is None else min(end, blob.size)
    return blob.read(start, stop) if start < stop else b""


def opened(blob: Blob) -> io.BufferedReader:
    """The blob as a file."""
    return io.BufferedReader(BlobFile(blob), BUFFER)


class BlobFile(io.RawIOBase):
    """A blob as an unbuffered file."""

    def __init__(self, blob: Blob) -> None:
        self._blob = blob
        self._position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._blob.size}[whence]
        if start + offset < 0:
            raise ValueError(f"a position in a file is not below 0, as {start + offset} is")
        self._position = start + offset
        return self._position

    def readinto(self, buffer: Any) -> int:
        data = read_range(self._blob, self._position, self._position + len(buffer))
        buffer[: len(data)] = data
        self._position += len(data)
        return len(data)
