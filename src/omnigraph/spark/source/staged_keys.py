"""The keys of a frame write on their way from its tasks to the commit, which checks across rows.

What Spark passes from tasks to a commit goes through the memory of the driver. Few keys may; of many, the task puts
pieces below the mark of the write and tells only where they are. They go with the mark, or by `cleanup`.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa

from omnigraph.spark.load.load_messages import from_bytes, to_bytes
from omnigraph.storage.objects.objects import ObjectStore, open_objects
from omnigraph.storage.uri import parse_root
from omnigraph.write.load.mapped_tables import MappedTables

FEW_BYTES = 64 << 10
"""Keys of one task up to this size are told as they are."""

PIECE_BYTES = 32 << 20
"""What a task holds before it puts a piece."""


class StagedKeys:
    """Takes the keys of one attempt at a task. `mark` is where the mark of the write is."""

    def __init__(self, uri: str, mark: str, attempt: str) -> None:
        self._uri = uri
        self._place = f"{_below(mark)}/{attempt}"
        self._held: list[pa.Table] = []
        self._bytes = 0
        self._put: list[str] = []

    def put(self, keys: pa.Table) -> None:
        """Take the keys of some rows."""
        self._held.append(keys)
        self._bytes += keys.nbytes
        if self._bytes >= PIECE_BYTES:
            self._put_piece()

    def finish(self) -> tuple[list[bytes], list[str]]:
        """All keys: some as they are, of the others where they have been put."""
        if self._held and not self._put and self._bytes <= FEW_BYTES:
            return [to_bytes(self._together())], []
        if self._held:
            self._put_piece()
        return [], self._put

    def _put_piece(self) -> None:
        path = f"{self._place}-{len(self._put):04d}.arrow"
        open_objects(parse_root(self._uri)).put(path, to_bytes(self._together()))
        self._put.append(path)
        self._held, self._bytes = [], 0

    def _together(self) -> pa.Table:
        return pa.concat_tables(self._held).unify_dictionaries()


def fetch_keys(
    objects: ObjectStore, given: Iterable[tuple[list[bytes], list[str]]], directory: Path
) -> pa.Table | None:
    """All keys in the order of the tasks, from temporary files when they are many; None when there are none."""
    tables = MappedTables(directory)
    for own, paths in given:
        for data in own:
            tables.add(from_bytes(data))
        for path in paths:
            tables.add(from_bytes(objects.get(path)[0]))
    return tables.table()


def clear_keys(objects: ObjectStore, mark: str) -> None:
    """Remove all pieces, those of attempts that did not count included."""
    for entry in objects.list(_below(mark)):
        objects.delete(entry.path)


def _below(mark: str) -> str:
    return mark.removesuffix(".json")
