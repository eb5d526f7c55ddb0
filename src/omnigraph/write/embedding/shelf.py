"""Vectors that were paid for and are not committed yet, below the graph's root, by what they were made from.

One object holds what was made in a few seconds: the keys of some texts, 16 bytes each, then their vectors as F32
numbers, so that what it has is known from its first bytes. Objects are only added, by any number of processes, and go
when the run that used them is done; `cleanup` takes what a run left that never ended.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
from ulid import ULID

from omnigraph.embed.text_vectors import text_key
from omnigraph.storage.objects.object_errors import ObjectNotFound
from omnigraph.storage.objects.objects import ObjectStore

SHELF = "_embedding"
"""The directory of all shelves."""

_KEY = 16

RECENT = 100_000
"""Keys that are looked up in a dictionary; more of them go to sorted arrays, which take a tenth of the memory."""

OPEN_OBJECTS = 32
"""Objects whose vectors are held in memory."""

Matrix = np.ndarray[Any, np.dtype[np.float32]]


class Shelves:
    """The shelves of one run, by model and size: each is looked at once."""

    def __init__(self, objects: ObjectStore) -> None:
        self._objects = objects
        self._found: dict[tuple[str, int], VectorShelf] = {}

    def shelf(self, model: str, dim: int) -> VectorShelf:
        """The shelf for the vectors of a model and size."""
        if (model, dim) not in self._found:
            self._found[model, dim] = VectorShelf(self._objects, model, dim)
            self._found[model, dim].look()
        return self._found[model, dim]

    def look(self) -> None:
        """Take note of what others have put on them."""
        for shelf in self._found.values():
            shelf.look()

    def clear(self) -> None:
        """Everything that was needed of them is committed."""
        for shelf in self._found.values():
            shelf.clear()


class VectorShelf:
    """The vectors of one model and size. Not to be shared between threads."""

    def __init__(self, objects: ObjectStore, model: str, dim: int) -> None:
        self.model = model
        self.dim = dim
        self._objects = objects
        space = hashlib.blake2b(f"{model}\0{dim}".encode(), digest_size=12).hexdigest()
        self._prefix = f"{SHELF}/{space}"
        self._paths: list[str] = []
        self._recent: dict[bytes, int] = {}
        self._keys = np.empty(0, "S16")
        self._places = np.empty(0, np.int64)
        self._open: OrderedDict[int, Matrix] = OrderedDict()

    def look(self) -> None:
        """Take note of what lies there, also of what others have put there."""
        known = set(self._paths)
        for entry in self._objects.list(self._prefix):
            count = entry.size // (_KEY + 4 * self.dim)
            if entry.path in known or not count:
                continue
            try:
                data = self._objects.get_range(entry.path, 0, _KEY * count)
            except ObjectNotFound:
                continue
            self._note(entry.path, [data[at : at + _KEY] for at in range(0, len(data), _KEY)])

    def key(self, text: str) -> bytes:
        """What the vector of a text is known by here."""
        return text_key(text, self.dim, self.model)

    def has(self, key: bytes) -> bool:
        """Whether the vector is there."""
        return self._place(key) is not None

    def put(self, keys: Sequence[bytes], matrix: Matrix) -> None:
        """Add vectors."""
        path = f"{self._prefix}/{ULID()}.arrow"
        self._objects.put(path, b"".join(keys) + np.ascontiguousarray(matrix, "<f4").tobytes())
        self._hold(len(self._paths), matrix)
        self._note(path, keys)

    def take(self, keys: Sequence[bytes]) -> list[Matrix | None]:
        """The vectors of these keys, None for those that are not there (any more)."""
        found: list[Matrix | None] = []
        for key in keys:
            place = self._place(key)
            matrix = None if place is None else self._vectors(place >> 32)
            found.append(None if matrix is None or place is None else matrix[place & 0xFFFFFFFF])
        return found

    def clear(self) -> None:
        """Remove the objects that were seen: what was needed of them is committed."""
        for path in self._paths:
            self._objects.delete(path)

    def _note(self, path: str, keys: Sequence[bytes]) -> None:
        number = len(self._paths)
        self._paths.append(path)
        self._recent.update((key, (number << 32) + row) for row, key in enumerate(keys))
        if len(self._recent) > RECENT:
            all_keys = np.concatenate([self._keys, np.array(list(self._recent), "S16")])
            places = np.concatenate([self._places, np.fromiter(self._recent.values(), np.int64)])
            order = np.argsort(all_keys, kind="stable")
            self._keys, self._places, self._recent = all_keys[order], places[order], {}

    def _place(self, key: bytes) -> int | None:
        if key in self._recent:
            return self._recent[key]
        at = int(np.searchsorted(self._keys, np.array(key, "S16")))
        if at < len(self._keys) and self._keys[at] == np.array(key, "S16"):
            return int(self._places[at])
        return None

    def _vectors(self, number: int) -> Matrix | None:
        if number not in self._open:
            try:
                data = self._objects.get(self._paths[number])[0]
            except ObjectNotFound:
                return None
            count = len(data) // (_KEY + 4 * self.dim)
            self._hold(number, np.frombuffer(data, "<f4", offset=_KEY * count).reshape(count, self.dim))
        self._open.move_to_end(number)
        return self._open[number]

    def _hold(self, number: int, matrix: Matrix) -> None:
        self._open[number] = matrix
        while len(self._open) > OPEN_OBJECTS:
            self._open.popitem(last=False)


def remove_old_shelves(objects: ObjectStore, older_than: float) -> int:
    """Remove vectors that no run has used for so many seconds; how many objects went."""
    oldest = datetime.now(UTC) - timedelta(seconds=older_than)
    old = [entry.path for entry in objects.list(SHELF) if entry.modified < oldest]
    for path in old:
        objects.delete(path)
    return len(old)
