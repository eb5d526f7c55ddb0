"""The ids that small data files hold, and which of these files hold an id. Bounded; what was used least goes first.

Names of data files are never used again and their content never changes, so what is kept here is right for ever.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

MOST_FILES = 8_192
"""Files whose ids are kept: as many as eight tables in pieces can have. Every small write leaves one, and those that a
compaction put together are looked into no more."""

IDS_OF_A_FILE = 4
"""A file takes up as much as so many ids beside those that it holds: files of one row are what small writes leave."""


@dataclass(frozen=True, slots=True)
class Held:
    """Which files hold each of some ids, as far as that is known; of the files asked about, those not known; and when
    it was so."""

    files: dict[str, tuple[str, ...]]
    unknown: tuple[str, ...]
    moment: int


class IdsOfFiles:
    """The ids of files. Safe to share between threads."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._ids = self._room = self._dropped = 0
        self._files: OrderedDict[str, tuple[str, ...]] = OrderedDict()
        self._holders: dict[str, str | tuple[str, ...]] = {}
        self._lock = threading.Lock()

    def keep(self, files: Mapping[str, Iterable[str]]) -> None:
        """Keep the ids of files, and forget those of others where there is no room for all."""
        with self._lock:
            for file, given in files.items():
                if file not in self._files:
                    ids = self._files[file] = tuple(dict.fromkeys(given))
                    for each in ids:
                        before = self._holders.get(each)
                        self._holders[each] = file if before is None else (*_several(before), file)
                    self._ids += len(ids)
                    self._room += len(ids) + IDS_OF_A_FILE
            while (self._room > self._most or len(self._files) > MOST_FILES) and len(self._files) > 1:
                self._forget_one()

    def holders(self, wanted: Iterable[str], files: Collection[str], complete_at: int | None = None) -> Held:
        """The files that hold each of some ids, and which of `files` are not known at all. A caller who was told so
        before, that none is unknown, says when that was: nothing is looked through then unless files were dropped."""
        with self._lock:
            found = {each: _several(self._holders.get(each, ())) for each in wanted}
            if complete_at == self._dropped:
                return Held(found, (), self._dropped)
            unknown = []
            for file in files:
                if file in self._files:
                    self._files.move_to_end(file)
                else:
                    unknown.append(file)
            return Held(found, tuple(unknown), self._dropped)

    def of(self, file: str) -> tuple[str, ...] | None:
        """The ids of a file, if they are known."""
        return self._files.get(file)

    def __len__(self) -> int:
        """How many ids are held."""
        return self._ids

    def _forget_one(self) -> None:
        file, ids = self._files.popitem(last=False)
        for each in ids:
            left = tuple(other for other in _several(self._holders.pop(each)) if other != file)
            if left:
                self._holders[each] = left[0] if len(left) == 1 else left
        self._ids -= len(ids)
        self._room -= len(ids) + IDS_OF_A_FILE
        self._dropped += 1


def _several(files: str | tuple[str, ...]) -> tuple[str, ...]:
    """Nearly all ids are in one file, and a tuple for each would take up more than the name does."""
    return (files,) if isinstance(files, str) else files
