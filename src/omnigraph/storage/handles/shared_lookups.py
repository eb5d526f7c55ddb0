"""Readers that wait share one look-up.

To look up one row by its id costs Lance about as much as to look up ten: most of it is planning and starting, not
reading. So while one look-up runs, those who want other rows of the same version in the same columns wait, and the next
one asks for all of them at once. Nobody waits on purpose: who comes alone asks at once, and who has waited for
`PATIENCE` asks beside the one that runs, for all who wait with him. Only readers of one version, of the same columns
and fragments of it, ever share anything.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import pyarrow as pa

MOST_TOGETHER = 64
"""Rows that one look-up asks for. Beyond that there is little to win, and the first would wait for the last."""

AT_ONCE = 2
"""Look-ups of a table that run beside each other before others wait for them: two readers do not disturb each other
where there are two cores, and have little to share."""

PATIENCE = 0.005
"""Seconds that a reader waits for a look-up of others. On a disk one takes a millisecond; over a network it may take so
long that a second one beside it is better."""

LOOK_ROUND = 0.05
"""Seconds after which a reader who waits for rows that are being read looks whether he may still wait."""

Ask = Callable[[Sequence[str]], pa.Table]
"""Reads the rows with these ids, in the order of the table, with their column of ids."""


@dataclass(slots=True, eq=False)
class _Reader:
    """Somebody who waits: for his rows, or for his turn to read them for a group."""

    wanted: str
    turn: threading.Lock = field(default_factory=threading.Lock)
    taken: bool = False
    group: list[_Reader] | None = None
    rows: pa.Table | None = None
    """What was found; None when whoever read for the group has failed."""


class SharedLookups:
    """The look-ups by id that are under way in one opened graph. Safe to share between threads."""

    def __init__(self, id_column: str) -> None:
        self._id_column = id_column
        self._lock = threading.Lock()
        self._waiting: dict[Hashable, list[_Reader]] = {}
        self._under_way: dict[Hashable, int] = {}

    def get(self, table: Hashable, wanted: str, ask: Ask, check: Callable[[], None] | None = None) -> pa.Table:
        """The rows with an id. `table` is what readers have to have in common; `check` raises who may wait no more."""
        reader = self._entered(table, wanted)
        if reader is None:
            try:
                return ask((wanted,))
            finally:
                self._left(table)
        group = self._waited(table, reader, check)
        if group is not None:
            # When it fails, what is wrong with a row everybody finds out for himself, he who read for all too.
            with suppress(Exception):
                self._read(table, group, ask)
        return reader.rows if reader.rows is not None else ask((wanted,))

    def _entered(self, table: Hashable, wanted: str) -> _Reader | None:
        """A place among those who wait; None when few are reading, and there is nobody to wait for."""
        with self._lock:
            under_way = self._under_way.get(table, 0)
            if under_way < AT_ONCE:
                self._under_way[table] = under_way + 1
                return None
            reader = _Reader(wanted)
            reader.turn.acquire()
            self._waiting.setdefault(table, []).append(reader)
            return reader

    def _waited(self, table: Hashable, reader: _Reader, check: Callable[[], None] | None) -> list[_Reader] | None:
        """Wait for the rows, or for the group to read for."""
        if not reader.turn.acquire(timeout=PATIENCE):
            with self._lock:
                if not reader.taken:
                    self._under_way[table] += 1
                    return self._taken(table, reader)
            while not reader.turn.acquire(timeout=LOOK_ROUND):
                try:
                    if check is not None:
                        check()
                except BaseException:
                    self._gone(table, reader)
                    raise
        return reader.group

    def _read(self, table: Hashable, group: list[_Reader], ask: Ask) -> None:
        """Read for a group, and give everybody his rows."""
        try:
            wanted = list(dict.fromkeys(reader.wanted for reader in group))
            found = by_id(ask(wanted), wanted, self._id_column)
            for reader in group:
                reader.rows = found[reader.wanted]
        finally:
            self._left(table)
            for reader in group:
                reader.turn.release()

    def _gone(self, table: Hashable, reader: _Reader) -> None:
        """Somebody waits no more. If it was just his turn to read for a group, it is another's."""
        with self._lock:
            if reader.group is None:
                return
        rest = reader.group[1:]
        if rest:
            rest[0].group = rest
            rest[0].turn.release()
        else:
            self._left(table)

    def _left(self, table: Hashable) -> None:
        """A look-up is over: let those who wait go on, or forget the table when nobody does."""
        with self._lock:
            group = self._taken(table)
            if group:
                group[0].group = group
            elif self._under_way[table] > 1:
                self._under_way[table] -= 1
            else:
                del self._under_way[table]
        if group:
            group[0].turn.release()

    def _taken(self, table: Hashable, first: _Reader | None = None) -> list[_Reader]:
        """Take as many as go together from those who wait, one of them first."""
        waiting = self._waiting.pop(table, [])
        if first is not None:
            waiting.remove(first)
            waiting.insert(0, first)
        group, left = waiting[:MOST_TOGETHER], waiting[MOST_TOGETHER:]
        if left:
            self._waiting[table] = left
        for reader in group:
            reader.taken = True
        return group


def by_id(rows: pa.Table, ids: Sequence[str], id_column: str) -> dict[str, pa.Table]:
    """The rows of each id, in their order. Each is a copy: a slice would hold on to what others asked for."""
    places: dict[str, list[int]] = {}
    for place, found in enumerate(rows.column(id_column).to_pylist()):
        places.setdefault(found, []).append(place)
    return {wanted: rows.take(pa.array(places.get(wanted, ()), pa.int64())) for wanted in ids}
